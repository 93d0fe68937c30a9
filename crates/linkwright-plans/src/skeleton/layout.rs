//! The goal of a plan, and the map from `i`, `o` and `s` to the chunks of a schedule's buffers.
//!
//! The formats have chunks of one length and one scratch buffer. A schedule may have several buffers with chunks of
//! different lengths: each of its chunks is then a run of the format's, and its scratch buffers follow one another in
//! `s`.

use super::{Place, Space};
use crate::divisor::{gcd, lcm};
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::{Buffer, MAX_CHUNKS};
use linkwright_schedule::{Collective, Schedule, Spec};

/// Where messages in flight are kept: after everything else in scratch.
pub(crate) const RELAY: u32 = 1 << 31;

/// The collective that a plan carries out, and the number of equal *parts* of its vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub spec: Spec,
    pub ranks: u32,
    /// Parts of the whole vector.
    pub vector: u32,
    /// Parts of a chunk of the plan.
    pub fine: u32,
}

impl Goal {
    /// The goal of a schedule, with the fewest parts that align with the chunks of every buffer, at most `most`.
    pub fn of(schedule: &Schedule, most: u64) -> Result<Self> {
        let mut vector = 1;
        for buffer in &schedule.buffers {
            let parts = u64::from(buffer.blocks) * u64::from(buffer.slices) * u64::from(buffer.div);
            vector = lcm(vector, parts / gcd(parts, u64::from(buffer.mul)));
            if vector > most {
                return Err(PlanError::whole(format!(
                    "buffer {} is cut so that a vector would have more than {most} chunks; cut buffers alike",
                    buffer.name
                )));
            }
        }
        Ok(Goal {
            spec: schedule.spec,
            ranks: schedule.ranks,
            vector: vector as u32,
            fine: 1,
        })
    }

    /// Whether input and output are the same memory.
    pub fn in_place(&self) -> bool {
        self.spec.collective.is_in_place() && !self.spec.out_of_place
    }

    /// Parts of `i` and `o`.
    pub fn lengths(&self) -> [u32; 2] {
        let block = self.vector / self.ranks;
        match self.spec.collective {
            Collective::Allgather | Collective::Gather => [block, self.vector],
            Collective::ReduceScatter | Collective::Scatter => [self.vector, block],
            _ => [self.vector, self.vector],
        }
    }

    /// The space that holds the only vector of an in-place collective: the one where the format has all of it.
    fn whole(&self) -> Space {
        match self.spec.collective {
            Collective::Allgather => Space::Output,
            _ => Space::Input,
        }
    }

    /// The canonical name of a place: in-place, input and output are parts of one buffer.
    pub fn canonical(&self, gpu: u32, place: Place) -> Place {
        let space = self.whole();
        if !self.in_place() || place.space == Space::Scratch || place.space == space {
            return place;
        }
        let before = match self.spec.collective {
            Collective::Allgather | Collective::ReduceScatter => gpu * (self.vector / self.ranks),
            _ => 0,
        };
        let at = before + place.at;
        Place { space, at }
    }

    /// The space of the buffer with this name.
    fn space(&self, name: &str) -> Space {
        match name {
            "input" => Space::Input,
            "output" if self.in_place() => self.whole(),
            "output" => Space::Output,
            _ => Space::Scratch,
        }
    }
}

/// The buffers of a schedule, and where each is in the plan's spaces.
pub(crate) struct Layout {
    pub buffers: Vec<Buffer>,
    spans: Vec<Span>,
    /// Number of parts of `s` that they take.
    pub scratch: u32,
}

/// Where a buffer is.
#[derive(Clone, Copy)]
struct Span {
    space: Space,
    /// First part.
    start: u32,
    /// Parts of a chunk of the buffer.
    unit: u32,
    /// Chunks of the buffer.
    chunks: u32,
}

impl Layout {
    /// Place `buffers`.
    pub fn of(goal: &Goal, buffers: Vec<Buffer>) -> Result<Self> {
        let (mut spans, mut scratch) = (Vec::with_capacity(buffers.len()), 0);
        for buffer in &buffers {
            let space = goal.space(&buffer.name);
            let start = if space == Space::Scratch { scratch } else { 0 };
            let span = span(goal, buffer, space, start)?;
            if space == Space::Scratch {
                scratch += span.unit * span.chunks;
            }
            spans.push(span);
        }
        Ok(Layout {
            buffers,
            spans,
            scratch,
        })
    }

    /// The buffers of a plan that names none, cut into the blocks of its collective, and those into parts.
    pub fn plain(goal: &Goal, scratch: u32) -> Result<Self> {
        let Goal {
            ranks,
            vector,
            fine,
            ..
        } = *goal;
        let per_rank = matches!(
            goal.spec.collective,
            Collective::Allgather
                | Collective::ReduceScatter
                | Collective::Alltoall
                | Collective::Gather
                | Collective::Scatter
        );
        let of_vector = |name: &str, length: u32| match per_rank {
            true if length < vector => cut(name, (1, ranks), 1, length),
            true => cut(name, (1, 1), ranks, vector / ranks),
            false => cut(name, (1, 1), vector / fine, fine),
        };
        let [input, output] = goal.lengths();
        let mut buffers = match goal.in_place() {
            true => vec![of_vector("output", vector)],
            false => vec![of_vector("input", input), of_vector("output", output)],
        };
        if scratch > 0 {
            buffers.push(cut("scratch", (scratch, vector), scratch / fine, fine));
        }
        Layout::of(goal, buffers)
    }

    /// Add a buffer of `chunks` chunks at [`RELAY`].
    pub fn with_relay(mut self, goal: &Goal, chunks: u32) -> Self {
        if chunks > 0 {
            self.buffers
                .push(cut("relay", (chunks, goal.vector), chunks, 1));
            self.spans.push(Span {
                space: Space::Scratch,
                start: RELAY,
                unit: 1,
                chunks,
            });
        }
        self
    }

    /// Buffer, first chunk and number of chunks for `count` parts from the canonical `place` on; `None` if they are not
    /// whole chunks of one buffer.
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

    /// The place of `count` chunks of a buffer from `chunk` on, and their number of parts.
    pub fn place(&self, buffer: usize, chunk: u32, count: u32) -> (Place, u32) {
        let span = &self.spans[buffer];
        let at = span.start + chunk * span.unit;
        let space = span.space;
        (Place { space, at }, count * span.unit)
    }
}

/// A buffer that holds a fraction of the vector, in blocks of slices.
fn cut(name: &str, (mul, div): (u32, u32), blocks: u32, slices: u32) -> Buffer {
    Buffer {
        mul,
        div,
        slices,
        ..Buffer::vector(name, blocks)
    }
}

fn span(goal: &Goal, buffer: &Buffer, space: Space, start: u32) -> Result<Span> {
    let most = u64::from(MAX_CHUNKS);
    let chunks = u64::from(buffer.blocks) * u64::from(buffer.slices);
    let length = u64::from(goal.vector) * u64::from(buffer.mul);
    let pieces = chunks.min(most + 1) * u64::from(buffer.div);
    let unit = length.checked_div(pieces).unwrap_or(0);
    if unit == 0 || length % pieces != 0 || u64::from(start) + unit * chunks > most {
        return Err(PlanError::whole(format!(
            "buffer {} is cut into {chunks} chunks, which are not whole chunks of {} in the vector, or more than {most} \
             with the others; delete `linkwright` and all that belongs to it",
            buffer.name.escape_debug(),
            goal.vector
        )));
    }
    Ok(Span {
        space,
        start,
        unit: unit as u32,
        chunks: chunks as u32,
    })
}
