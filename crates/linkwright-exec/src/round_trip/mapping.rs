//! Memory from `mmap`: shared with the server, or private to each process once either writes to it.

use super::error::{Result, RoundTripError};

/// Some words in memory that lives as long as its [`Mapping`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub start: *mut u64,
    pub len: usize,
}

impl Words {
    /// Bytes of it.
    pub fn bytes(self) -> usize {
        self.len * size_of::<u64>()
    }
}

/// Pages of this process and of its forks.
#[derive(Debug)]
pub(super) struct Mapping {
    base: *mut u8,
    bytes: usize,
    used: usize,
}

// SAFETY: plain memory; who may touch what when is the business of the transport.
unsafe impl Send for Mapping {}

const PAGE: usize = 4096;
/// Two lines: what a prefetcher fetches together belongs to one buffer.
const ALIGN: usize = 128;
/// Buffers whose addresses agree in the low twelve bits make loads wait for unrelated stores.
const STAGGER: usize = 5 * ALIGN;

impl Mapping {
    /// Memory that a forked process sees, too.
    pub fn shared(bytes: usize) -> Result<Mapping> {
        Mapping::new(bytes, libc::MAP_SHARED)
    }

    /// Memory of which a forked process has its own copy.
    pub fn private(bytes: usize) -> Result<Mapping> {
        Mapping::new(bytes, libc::MAP_PRIVATE)
    }

    fn new(bytes: usize, kind: libc::c_int) -> Result<Mapping> {
        let bytes = (bytes + 4 * (ALIGN + STAGGER)).next_multiple_of(PAGE);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = kind | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(RoundTripError::last("mapping memory"));
        }
        Ok(Mapping {
            base: base.cast(),
            bytes,
            used: 0,
        })
    }

    /// The next buffer of so many bytes, on lines of its own.
    pub fn words(&mut self, bytes: usize) -> Words {
        let start = self.used;
        self.used = (start + bytes).next_multiple_of(ALIGN) + STAGGER;
        assert!(
            start + bytes <= self.bytes,
            "the mapping holds four buffers"
        );
        Words {
            // SAFETY: the offset lies within the mapping.
            start: unsafe { self.base.add(start) }.cast(),
            len: bytes / size_of::<u64>(),
        }
    }

    /// The start of the mapping as a `T`, whose all-zero state must be valid.
    pub fn as_ref<T>(&self) -> &T {
        assert!(size_of::<T>() <= self.bytes && align_of::<T>() <= PAGE);
        // SAFETY: big enough, aligned to a page, zeroed by the kernel; T consists of atomics.
        unsafe { &*self.base.cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and nothing outlives the mapping that points into it.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
