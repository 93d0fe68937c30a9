//! The chunks of rank 0: by which operation each was written last, and by which it was read since.

use crate::accesses::Accesses;
use crate::ir::{Buffer, BufferId};

/// Accesses to all chunks of rank 0, buffer after buffer.
pub(super) struct Cells {
    pub accesses: Accesses,
    /// Place of chunk 0 of each buffer.
    first: Vec<usize>,
}

impl Cells {
    pub fn new(buffers: &[Buffer]) -> Self {
        let mut count = 0;
        let place = |buffer: &Buffer| {
            count += buffer.chunks() as usize;
            count - buffer.chunks() as usize
        };
        let first = buffers.iter().map(place).collect();
        Cells {
            accesses: Accesses::new(count),
            first,
        }
    }

    /// Place of a chunk.
    #[inline]
    pub fn at(&self, buffer: BufferId, chunk: u32) -> usize {
        self.first[buffer.0 as usize] + chunk as usize
    }
}
