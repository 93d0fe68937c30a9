//! Zeroed pages from `mmap`.

use std::io;

/// Pages of this process, and of its forks if they are shared; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory; whoever hands out its addresses says why each access is sound.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New pages; `flags` such as `MAP_SHARED` or `MAP_PRIVATE`.
    pub(crate) fn new(bytes: usize, flags: libc::c_int) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            let (access, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_ANONYMOUS,
            );
            libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = base.cast();
        Ok(Mapping { base, bytes })
    }

    /// First byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Length.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and nothing outlives the mapping that points into it.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
