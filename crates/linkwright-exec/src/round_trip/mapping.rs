//! Buffers of words: shared with the server, or private to each process once either writes to them.

use super::error::{Result, RoundTripError};
use crate::mapping::Mapping;

/// Words in memory that lives as long as its [`Region`].
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

/// Memory for up to four buffers.
#[derive(Debug)]
pub(super) struct Region {
    pages: Mapping,
    used: usize,
}

const PAGE: usize = 4096;
/// Two lines: what a prefetcher fetches together belongs to one buffer.
const ALIGN: usize = 128;
/// Buffers whose addresses agree in the low twelve bits make loads wait for unrelated stores.
const STAGGER: usize = 5 * ALIGN;

impl Region {
    /// `flags`: `MAP_SHARED`, which a forked process sees too, or `MAP_PRIVATE`, of which it has its own copy.
    pub fn new(bytes: usize, flags: libc::c_int) -> Result<Region> {
        let bytes = (bytes + 4 * (ALIGN + STAGGER)).next_multiple_of(PAGE);
        let what = "mapping memory";
        let pages =
            Mapping::new(bytes, flags).map_err(|error| RoundTripError::System { what, error })?;
        Ok(Region { pages, used: 0 })
    }

    /// The next buffer of this many bytes, on cache lines of its own.
    pub fn words(&mut self, bytes: usize) -> Words {
        let start = self.used;
        self.used = (start + bytes).next_multiple_of(ALIGN) + STAGGER;
        assert!(
            start + bytes <= self.pages.bytes(),
            "the region holds four buffers"
        );
        Words {
            // SAFETY: the offset lies within the mapping.
            start: unsafe { self.pages.base().add(start) }.cast(),
            len: bytes / size_of::<u64>(),
        }
    }

    /// The start of the region as a `T`, whose all-zero state must be valid.
    pub fn as_ref<T>(&self) -> &T {
        assert!(size_of::<T>() <= self.pages.bytes() && align_of::<T>() <= PAGE);
        // SAFETY: big enough, aligned to a page, zeroed by the kernel; T consists of atomics.
        unsafe { &*self.pages.base().cast() }
    }
}
