//! Chunks as an author addresses them, and the operation that moves them.

use crate::ir::{BufferId, Combine, Hint, Op, OpKind, COMPUTE_LANE};
use std::ops::Range;

/// A buffer as an author addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub(crate) BufferId);

impl Slot {
    /// One chunk.
    pub fn at(self, chunk: u32) -> Chunks {
        self.chunks(chunk, 1)
    }

    /// Consecutive chunks.
    pub fn range(self, chunks: Range<u32>) -> Chunks {
        self.chunks(chunks.start, chunks.end.saturating_sub(chunks.start))
    }

    /// `count` chunks from `start` on.
    pub fn chunks(self, start: u32, count: u32) -> Chunks {
        Chunks {
            buffer: self.0,
            start,
            count,
        }
    }
}

/// Consecutive chunks of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    pub(crate) buffer: BufferId,
    pub(crate) start: u32,
    pub(crate) count: u32,
}

/// List `runs` (first source chunk, first destination chunk, count) behind those of `ranges`, joined where
/// they are contiguous; gives the place of the first.
pub(crate) fn list_runs(
    ranges: &mut Vec<(u32, u32, u32)>,
    runs: impl Iterator<Item = (u32, u32, u32)>,
) -> usize {
    let first = ranges.len();
    for (a, b, n) in runs {
        match ranges[first..].last_mut() {
            Some((x, y, count)) if (*x + *count, *y + *count) == (a, b) => *count += n,
            _ => ranges.push((a, b, n)),
        }
    }
    first
}

/// An operation as it is written: no options, local work in the compute lane.
pub(crate) fn operation(kind: OpKind, from: u32, src: Chunks, to: u32, dst: Chunks) -> Op {
    Op {
        from,
        to,
        src: src.start,
        dst: dst.start,
        count: src.count,
        step: 0,
        kind,
        combine: Combine::Replace,
        src_buffer: src.buffer,
        dst_buffer: dst.buffer,
        lane: match kind {
            OpKind::Local | OpKind::Compute => COMPUTE_LANE,
            _ => 0,
        },
        hint: Hint::None,
        scattered: false,
        fenced: false,
    }
}
