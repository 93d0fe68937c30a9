//! The memory of one participant: all its buffers, first touched by the thread that owns it.
//!
//! The kernel places a page near the core that touches it first, so each rank fills its own.
//! Buffers begin on a pair of cache lines of their own, staggered by some lines each, because
//! buffers whose addresses agree in the low twelve bits make loads wait for unrelated stores.
//! Large arenas are aligned to, and ask for, huge pages: fewer misses of the address translation
//! and less scatter between launches.

use crate::buffers::Contents;
use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};

const LINES: usize = 128;
const STAGGER: usize = 5 * LINES;
const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

/// Owned memory of one participant.
#[derive(Debug)]
pub(crate) struct Arena {
    base: *mut u8,
    layout: Layout,
    /// Offset and length of each buffer.
    buffers: Vec<(usize, usize)>,
}

// SAFETY: the arena is plain memory; who may touch what when is the schedule's business.
unsafe impl Send for Arena {}

impl Arena {
    /// Allocates the buffers of `participant` without touching them.
    pub(crate) fn new(contents: &Contents, participant: u32) -> Self {
        let buffers = 0..contents.schedule.buffers.len();
        Arena::of_sizes(buffers.map(|buffer| contents.bytes(participant, buffer)))
    }

    /// Allocates buffers of these sizes without touching them.
    pub(crate) fn of_sizes(sizes: impl Iterator<Item = usize>) -> Self {
        let mut end = 0;
        let buffers: Vec<(usize, usize)> = sizes
            .map(|bytes| {
                let start = end;
                end = (start + bytes).next_multiple_of(LINES) + STAGGER;
                (start, bytes)
            })
            .collect();
        let align = if end >= HUGE_PAGE { HUGE_PAGE } else { PAGE };
        let layout = Layout::from_size_align(end.max(LINES).next_multiple_of(align), align)
            .expect("sizes were checked against the memory of the machine");
        // SAFETY: the size is not zero.
        let base = unsafe { alloc(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }
        if align == HUGE_PAGE {
            // SAFETY: advice on memory that we own; without huge pages nothing changes.
            unsafe { libc::madvise(base.cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        Arena {
            base,
            layout,
            buffers,
        }
    }

    /// First byte of a buffer.
    pub(crate) fn address(&self, buffer: usize) -> *mut u8 {
        // SAFETY: the offset lies within the allocation.
        unsafe { self.base.add(self.buffers[buffer].0) }
    }

    /// The bytes of a buffer.
    ///
    /// # Safety
    /// There is no concurrent write to it.
    pub(crate) unsafe fn get(&self, buffer: usize) -> &[u8] {
        // SAFETY: within the allocation; as promised by the caller.
        unsafe { std::slice::from_raw_parts(self.address(buffer), self.bytes(buffer)) }
    }

    /// The bytes of a buffer.
    pub(crate) fn get_mut(&mut self, buffer: usize) -> &mut [u8] {
        // SAFETY: within the allocation, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address(buffer), self.bytes(buffer)) }
    }

    /// Length of a buffer.
    pub(crate) fn bytes(&self, buffer: usize) -> usize {
        self.buffers[buffer].1
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base, self.layout) }
    }
}
