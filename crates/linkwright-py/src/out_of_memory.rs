//! The end of a process that gets no more memory: one message, and status 1.
//!
//! Rust's own answer is an abort with a stack trace. The trace needs memory, so it may come late or wait for itself for
//! ever, and it tells a user nothing. Nothing here allocates. What was written so far stays, as if the process had been
//! killed: runs are resumed from their journal.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

const MESSAGE: &str = "linkwright: out of memory; ask for less at once, use fewer threads (`sweep -j 1`), or raise the \
                       limit (`ulimit -v`)\n";

/// Whether a thread is about to end the process; the others wait for that.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The system's allocator, which never fails.
pub struct OrEnd;

// SAFETY: every call goes to the system's allocator unchanged, and a block that it refuses is never returned.
unsafe impl GlobalAlloc for OrEnd {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what holds for the caller of this function holds for that one.
        there(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        there(unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above; the block is the system's, because all are.
        there(unsafe { System.realloc(block, layout, bytes) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn there(block: *mut u8) -> *mut u8 {
    match block.is_null() {
        true => end(),
        false => block,
    }
}

#[cold]
fn end() -> ! {
    if ENDING.swap(true, Ordering::Relaxed) {
        loop {
            // SAFETY: it only waits for a signal.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: the message is as long as stated, and neither call returns to code that relies on the missing block.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(1)
    }
}
