//! What every byte of a traffic pattern is before and after it, so that its messages can be checked.
//!
//! A pattern has no result to achieve, but its messages have contents. Every participant begins with
//! bytes of its own in all of its buffers, its *stream*; the operations, followed by id, then say for
//! every byte at the end whose stream it comes from, and from where in it:
//!
//! ```text
//!   before      rank 0: 0000 ....   rank 1: 1111 ....      input and output, each with its own bytes
//!   0 -> 1      rank 1: 1111 0000                          the output is rank 0's input now
//! ```
//!
//! All memory is compared, so a message that is lost, damaged or misplaced shows, and so does one that
//! writes where it should not. A message that returns what its target sent cannot be told from none.
//! Where hazards have no order (a pattern need not be free of races), nothing is known at the end.

use crate::aligned::AlignedBytes;
use crate::dtype::DType;
use crate::fill::Fill;
use linkwright_schedule::ir::{Combine, Op, Schedule};
use std::ops::Range;

/// A byte of a participant's stream.
type Origin = (u32, usize);

/// Neighbouring bytes that come from the same places.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    at: Range<usize>,
    /// Of the first byte; several where contributions were combined.
    from: Vec<Origin>,
}

impl Segment {
    /// The part within `range`, if any.
    fn within(&self, range: &Range<usize>) -> Option<Segment> {
        let at = self.at.start.max(range.start)..self.at.end.min(range.end);
        let skipped = at.start.saturating_sub(self.at.start);
        let from = self.from.iter().map(|&(who, first)| (who, first + skipped));
        (at.start < at.end).then(|| Segment {
            from: from.collect(),
            at: at.clone(),
        })
    }
}

/// The origins of one buffer, in the order of its bytes.
#[derive(Clone, Debug, Default)]
struct Origins(Vec<Segment>);

impl Origins {
    fn slice(&self, range: Range<usize>) -> Vec<Segment> {
        let first = self.0.partition_point(|held| held.at.end <= range.start);
        let held = self.0[first..].iter();
        held.map_while(|held| held.within(&range)).collect()
    }

    fn replace(&mut self, range: Range<usize>, by: Vec<Segment>) {
        let first = self.0.partition_point(|held| held.at.end <= range.start);
        let last = self.0.partition_point(|held| held.at.start < range.end);
        let border = |part: Option<&Segment>, outside: Range<usize>| {
            part.and_then(|held| held.within(&outside))
        };
        let before = border(self.0[first..last].first(), 0..range.start);
        let after = border(self.0[first..last].last(), range.end..usize::MAX);
        let new = before.into_iter().chain(by).chain(after);
        self.0.splice(first..last, new);
    }

    /// Adds the contributions of `moved` to what is there.
    fn combine(&mut self, moved: Segment) {
        let mut both = self.slice(moved.at.clone());
        for held in &mut both {
            held.from
                .extend(moved.within(&held.at).expect("a part of it").from);
        }
        self.replace(moved.at, both);
    }
}

/// The contents of all buffers before and after a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    fill: Fill,
    buffers: usize,
    /// By participant and buffer: its first byte in the participant's stream.
    first: Vec<usize>,
    /// By participant and buffer, at the end.
    ends: Vec<Origins>,
}

/// Bytes compared at a time.
const PIECE: usize = 1 << 15;

impl Traffic {
    /// All memory before the first operation; `sizes` are the bytes by participant and buffer.
    pub(crate) fn new(schedule: &Schedule, own: Fill, sizes: Vec<usize>) -> Traffic {
        let mut ops = schedule.ops().iter();
        let combines = ops.any(|op| op.combine == Combine::Reduce);
        // Bytes that are only copied need no type; whole words are the cheapest to make.
        let words = Fill {
            dtype: DType::I64,
            ..own
        };
        let mut traffic = Traffic {
            fill: if combines { own } else { words },
            buffers: schedule.buffers.len(),
            first: Vec::new(),
            ends: Vec::new(),
        };
        for (who, sizes) in (0..).zip(sizes.chunks(traffic.buffers.max(1))) {
            let mut first = 0;
            for &bytes in sizes {
                let from = vec![(who, first)];
                let whole = (bytes > 0).then_some(Segment { at: 0..bytes, from });
                traffic.ends.push(Origins(whole.into_iter().collect()));
                traffic.first.push(first);
                first += bytes.next_multiple_of(8);
            }
        }
        traffic
    }

    /// One contiguous piece of the next operation: these bytes of its source arrive from `to` on.
    pub(crate) fn follow(&mut self, schedule: &Schedule, op: &Op, bytes: Range<usize>, to: usize) {
        let source = self.slot(op.from, op.src_buffer.0.into());
        let mut moved = self.ends[source].slice(bytes.clone());
        for segment in &mut moved {
            let there = |place: usize| place - bytes.start + to;
            segment.at = there(segment.at.start)..there(segment.at.end);
        }
        for &target in schedule.targets(op) {
            let slot = self.slot(target, op.dst_buffer.0.into());
            let end = &mut self.ends[slot];
            match op.combine {
                Combine::Replace => end.replace(to..to + bytes.len(), moved.clone()),
                Combine::Reduce => moved.iter().for_each(|part| end.combine(part.clone())),
            }
        }
    }

    fn slot(&self, participant: u32, buffer: usize) -> usize {
        participant as usize * self.buffers + buffer
    }

    /// Writes what a buffer holds before the pattern.
    pub(crate) fn initialise(&self, participant: u32, buffer: usize, memory: &mut [u8]) {
        let first = self.first[self.slot(participant, buffer)];
        let mut room = Room::new();
        for (number, piece) in memory.chunks_mut(PIECE).enumerate() {
            piece.copy_from_slice(room.bytes(
                &self.fill,
                &[(participant, first + number * PIECE)],
                piece.len(),
            ));
        }
    }

    /// The first byte of a buffer that is not what the pattern leaves there, and how many bytes were compared.
    pub(crate) fn compare(
        &self,
        participant: u32,
        buffer: usize,
        memory: &[u8],
    ) -> (Option<usize>, usize) {
        let mut room = Room::new();
        let mut compared = 0;
        for segment in &self.ends[self.slot(participant, buffer)].0 {
            if segment.from.len() > self.fill.ranks.max(1) as usize {
                continue; // more contributions than the values stay exact for
            }
            for start in segment.at.clone().step_by(PIECE) {
                let part = segment
                    .within(&(start..start + PIECE))
                    .expect("a part of it");
                let want = room.bytes(&self.fill, &part.from, part.at.len());
                let got = &memory[part.at.clone()];
                if got != want {
                    let differs = got.iter().zip(want).position(|(got, want)| got != want);
                    return (differs.map(|place| start + place), compared);
                }
                compared += got.len();
            }
        }
        (None, compared)
    }
}

/// Memory for expected values.
struct Room([AlignedBytes; 2]);

impl Room {
    fn new() -> Self {
        // A piece that begins inside an element touches one element more.
        Room([PIECE + 8; 2].map(AlignedBytes::new))
    }

    /// `bytes` bytes from `from` on, combined.
    fn bytes(&mut self, fill: &Fill, from: &[Origin], bytes: usize) -> &[u8] {
        let size = fill.dtype.size();
        // Only bytes that are copied begin inside an element, and they have one origin.
        let skipped = from[0].1 % size;
        let whole = (skipped + bytes).next_multiple_of(size);
        let elements: Vec<(u32, usize)> = from
            .iter()
            .map(|&(who, first)| (who, first / size))
            .collect();
        let [want, scratch] = &mut self.0;
        fill.expect(&elements, &mut want.get_mut()[..whole], scratch.get_mut());
        &want.get()[skipped..skipped + bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::{Buffers, Contents, Data};
    use crate::dtype::ReduceOp;
    use crate::error::ExecError;
    use crate::reference;
    use linkwright_schedule::builder::{Builder, Shape};
    use linkwright_schedule::ir::Buffer;
    use linkwright_schedule::patterns::{self, REGISTRY};
    use linkwright_schedule::Collective;

    const DATA: Data = Data::sums(DType::U8, 3);

    /// A pattern of messages of 11 bytes, which end inside a word.
    fn pattern(name: &str, ranks: u32) -> Option<Schedule> {
        let mut shape = Shape::new(ranks, 11);
        shape.element_bytes = 1;
        let traffic = patterns::Traffic {
            count: 2,
            both_ways: true,
            ..patterns::Traffic::new(shape)
        };
        (patterns::find(name).unwrap().build)(&traffic).ok()
    }

    fn left(schedule: &Schedule) -> (Contents<'_>, Buffers) {
        let contents = Contents::new(schedule, DATA).unwrap();
        let state = reference::execute(&contents).unwrap();
        (contents, state)
    }

    #[test]
    fn the_reference_leaves_what_follows_from_the_operations() {
        for pattern_of in REGISTRY {
            for ranks in 2..=9 {
                let Some(schedule) = pattern(pattern_of.name, ranks) else {
                    continue;
                };
                let (contents, state) = left(&schedule);
                let checked = state.check(&contents, "reference").unwrap();
                let all: usize = (0..ranks)
                    .flat_map(|rank| (0..schedule.buffers.len()).map(move |buffer| (rank, buffer)))
                    .map(|(rank, buffer)| contents.bytes(rank, buffer))
                    .sum();
                assert_eq!(checked, all as u64, "{}", pattern_of.name);
            }
        }
    }

    #[test]
    fn a_damaged_byte_of_any_message_is_found() {
        for pattern_of in REGISTRY {
            let Some(schedule) = pattern(pattern_of.name, 6) else {
                continue;
            };
            let (contents, state) = left(&schedule);
            for (id, op) in schedule.ops().iter().enumerate() {
                let extent = contents.extents(id as u32, op).unwrap()[0];
                for place in [extent.dst, extent.dst + extent.bytes - 1] {
                    let mut damaged = state.clone();
                    damaged.buffer_mut(op.to, op.dst_buffer.0.into())[place] ^= 4;
                    let error = damaged.check(&contents, "threads").unwrap_err();
                    let found =
                        matches!(error, ExecError::WrongResult { rank, .. } if rank == op.to);
                    assert!(found, "{}: {error}", pattern_of.name);
                }
            }
        }
    }

    #[test]
    fn a_message_that_never_came_is_found_wherever_it_brings_something() {
        for pattern_of in REGISTRY {
            let Some(schedule) = pattern(pattern_of.name, 6) else {
                continue;
            };
            let contents = Contents::new(&schedule, DATA).unwrap();
            let before = Buffers::initial(&contents);
            assert!(
                before.check(&contents, "threads").is_err(),
                "{}",
                pattern_of.name
            );
        }
    }

    #[test]
    fn what_a_pattern_of_ones_own_combines_is_checked_too() {
        let mut b = Builder::new(Collective::Pattern, &Shape::new(3, 6));
        let data = b.buffer(Buffer::vector("output", 2));
        b.step();
        b.put(1, data.at(0), 0, data.at(0)).reduce();
        b.step();
        b.put(0, data.at(0), 2, data.at(1));
        let schedule = b.finish().unwrap();
        for (dtype, op) in [(DType::F32, ReduceOp::Sum), (DType::I32, ReduceOp::Prod)] {
            let contents = Contents::new(&schedule, Data { dtype, op, seed: 1 }).unwrap();
            let mut state = reference::execute(&contents).unwrap();
            assert_eq!(state.check(&contents, "reference").unwrap(), 18);
            state.buffer_mut(2, 0)[12] ^= 1;
            let error = state.check(&contents, "reference").unwrap_err().to_string();
            assert!(error.starts_with("rank 2: output[1] is wrong"), "{error}");
        }
    }

    #[test]
    fn a_race_leaves_nothing_to_compare_with() {
        let text =
            "linkwright-schedule 1\nranks 3\nelements 4\nelement_bytes 1\nspec pattern\nroot 0\n\
                    buffer input 1\nbuffer output 1\nedges given\nstep 1\n\
                    t0 put 0:input[0] -> 2:output[0] replace src_after=- dst_after=-\n\
                    t1 put 1:input[0] -> 2:output[0] replace src_after=- dst_after=-\nend\n";
        let schedule = linkwright_schedule::text::parse(text).unwrap();
        let (contents, state) = left(&schedule);
        assert_eq!(state.check(&contents, "reference").unwrap(), 0);
    }
}
