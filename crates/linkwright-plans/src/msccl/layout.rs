//! Which chunks of `i`, `o` and `s` are which chunks of a schedule's buffers.
//!
//! The format knows chunks of one length and one scratch buffer. A schedule may have several buffers, cut in
//! several ways: each of its chunks is then a run of the format's, and its scratch buffers stand in `s` one after
//! another.

use super::plan::{Head, Place, Space};
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::{Buffer, MAX_CHUNKS};
use linkwright_schedule::Collective;

/// Where a buffer stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub space: Space,
    /// First chunk of the format.
    pub start: u32,
    /// Chunks of the format for each chunk of the buffer.
    pub unit: u32,
    /// Chunks of the buffer.
    pub chunks: u32,
}

/// The buffers of a schedule, and where each stands.
pub(super) struct Layout {
    pub buffers: Vec<Buffer>,
    pub spans: Vec<Span>,
    /// Chunks of `s` that they take.
    pub scratch: u32,
}

impl Layout {
    /// Place `buffers` in a plan that begins with `head`.
    pub fn of(head: &Head, buffers: Vec<Buffer>) -> Result<Self> {
        let vector = head.vector();
        let (mut spans, mut scratch) = (Vec::with_capacity(buffers.len()), 0);
        for buffer in &buffers {
            let parts = u64::from(buffer.div) * u64::from(buffer.blocks) * u64::from(buffer.slices);
            let unit = (vector * u64::from(buffer.mul))
                .checked_rem(parts)
                .filter(|&rest| rest == 0);
            let unit = unit.map(|_| vector * u64::from(buffer.mul) / parts);
            let chunks = u64::from(buffer.blocks) * u64::from(buffer.slices);
            let length = unit.unwrap_or(0) * chunks;
            let space = space_of(head, &buffer.name);
            let start = if space == Space::Scratch { scratch } else { 0 };
            if length == 0 || start + length > u64::from(MAX_CHUNKS) {
                let problem = format!(
                    "buffer {} is cut into {chunks} chunks, which are not whole chunks of {vector} in the vector",
                    buffer.name
                );
                return Err(PlanError::whole(problem));
            }
            if space == Space::Scratch {
                scratch += length;
            }
            spans.push(Span {
                space,
                start: start as u32,
                unit: (length / chunks) as u32,
                chunks: chunks as u32,
            });
        }
        Ok(Layout {
            buffers,
            spans,
            scratch: scratch as u32,
        })
    }

    /// The buffers of a plan that does not name any: one chunk for each of the format's.
    pub fn plain(head: &Head, scratch: u32) -> Result<Self> {
        let vector = head.vector() as u32;
        let mut buffers = Vec::new();
        if !head.in_place() {
            buffers.push(cut(head, "input", head.lengths()[0] as u32));
        }
        let output = match head.in_place() {
            true => vector,
            false => head.lengths()[1] as u32,
        };
        buffers.push(cut(head, "output", output));
        if scratch > 0 {
            buffers.push(loose("scratch", scratch, vector));
        }
        Layout::of(head, buffers)
    }

    /// The same with one more buffer of `chunks` chunks, whose first one it gives.
    pub fn with_relay(self, head: &Head, chunks: u32) -> Result<Self> {
        if chunks == 0 {
            return Ok(self);
        }
        let mut buffers = self.buffers;
        buffers.push(loose("relay", chunks, head.vector() as u32));
        Layout::of(head, buffers)
    }

    /// Buffer and chunks of `count` chunks from `place` on, which has its one name.
    pub fn find(&self, place: Place, count: u32) -> Option<(usize, u32, u32)> {
        let holds = |span: &Span| {
            let end = u64::from(span.start) + u64::from(span.unit) * u64::from(span.chunks);
            span.space == place.space
                && span.start <= place.at
                && u64::from(place.at) + u64::from(count) <= end
        };
        let index = self.spans.iter().position(holds)?;
        let span = &self.spans[index];
        let (from, whole) = (place.at - span.start, |n: u32| n % span.unit == 0);
        (whole(from) && whole(count)).then(|| (index, from / span.unit, count / span.unit))
    }

    /// Where `count` chunks of a buffer from `chunk` on stand, and how many chunks of the format they are.
    pub fn place(&self, buffer: usize, chunk: u32, count: u32) -> (Place, u32) {
        let span = &self.spans[buffer];
        let at = span.start + chunk * span.unit;
        let space = span.space;
        (Place { space, at }, count * span.unit)
    }
}

/// Where a buffer of this name stands.
fn space_of(head: &Head, name: &str) -> Space {
    match name {
        "input" => Space::Input,
        "output" if !head.in_place() || head.spec.collective == Collective::Allgather => {
            Space::Output
        }
        "output" => Space::Input,
        _ => Space::Scratch,
    }
}

/// A buffer of the collective, of `chunks` chunks.
fn cut(head: &Head, name: &str, chunks: u32) -> Buffer {
    let vector = head.vector() as u32;
    let per_rank = matches!(
        head.spec.collective,
        Collective::Allgather
            | Collective::ReduceScatter
            | Collective::Alltoall
            | Collective::Gather
            | Collective::Scatter
    );
    if chunks < vector {
        return Buffer {
            slices: chunks,
            ..Buffer::block(name, head.ranks)
        };
    }
    match per_rank {
        true => Buffer {
            slices: vector / head.ranks,
            ..Buffer::vector(name, head.ranks)
        },
        false => Buffer::vector(name, vector),
    }
}

/// A buffer of `chunks` chunks, of which a vector has `vector`.
fn loose(name: &str, chunks: u32, vector: u32) -> Buffer {
    Buffer {
        mul: chunks,
        div: vector,
        ..Buffer::vector(name, chunks)
    }
}
