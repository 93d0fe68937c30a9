//! Sums apart from the data, so that no rank waits until others have read what is about to be overwritten.
//!
//! ```text
//!   in place   1 reads 0:output into scratch    0:output += scratch   waits until 1 has read
//!   aside      1 reads 0:output into scratch    0:scratch += output   waits for no one
//! ```
//!
//! In an allreduce in place by reads ([`crate::pull`]), every sum would wait for a notice of everyone who reads its
//! operand. Aside, contributions land in scratch of their own and the sum grows there: what is left of a chunk has moved,
//! and all that reads it later reads it there. In the end the sums are copied back, behind notices that are long there.
//!
//! It is what a compiler does to registers (*renaming*): a value gets a new place when it is written, so that only reads
//! after writes are left. It costs a copy of what was summed. Schedules with copies or sums in the network, or of which some
//! scratch is used twice, stay as they are, and so do those of other collectives: only an allreduce overwrites what others need.
//!
//! Source: Tomasulo, *An efficient algorithm for exploiting multiple arithmetic units*, IBM Journal 1967.

use crate::error::Result;
use crate::ir::{ranges_of, BufferId, Combine, Op, OpKind, Schedule, COMPUTE_LANE};
use crate::order::order;
use crate::own_scratch::{is_scratch, own_scratch};
use crate::spec::Collective;
use crate::transforms::{loosen, push, unfuse};
use std::collections::{BTreeMap, HashSet};

/// A chunk of a rank.
type Chunk = (u32, BufferId, u32);

/// First source chunk, first destination chunk, count.
type Range = (u32, u32, u32);

/// Let the sums of an allreduce grow in scratch of their own.
pub fn sums_aside(schedule: &Schedule) -> Result<Schedule> {
    if schedule.spec.collective != Collective::Allreduce || !schedule.ops().iter().all(is_plain) {
        return Ok(schedule.clone());
    }
    let apart = unfuse(&own_scratch(schedule)?)?;
    let mut draft = loosen(&apart)?;
    let ops = std::mem::take(&mut draft.ops);
    if !lands_once(&draft, &ops) {
        return Ok(schedule.clone());
    }
    let mut moved = Moved::default();
    for op in &ops {
        if !moved.rewrite(&mut draft, op) {
            return Ok(schedule.clone());
        }
    }
    moved.bring_back(&mut draft, ops.last().map_or(0, |op| op.step + 1));
    order(draft)
}

/// Whether it only moves data, from one source to one target.
fn is_plain(op: &Op) -> bool {
    let kinds = [OpKind::Put, OpKind::Get, OpKind::Local, OpKind::Notice];
    kinds.contains(&op.kind) && !op.fenced
}

/// Whether each chunk of scratch is written once and read once, so that a sum may take its place.
fn lands_once(draft: &Schedule, ops: &[Op]) -> bool {
    let (mut landed, mut taken) = (HashSet::new(), HashSet::new());
    let once = |ranks: &[u32], buffer: BufferId, chunks: Vec<u32>, seen: &mut HashSet<Chunk>| {
        let mut all = ranks
            .iter()
            .flat_map(|&rank| chunks.iter().map(move |&chunk| (rank, buffer, chunk)));
        !is_scratch(draft, buffer) || all.all(|chunk| seen.insert(chunk))
    };
    ops.iter().all(|op| {
        ranges_of(op, &draft.ranges).all(|(src, dst, count)| {
            let written = (dst..dst + count).collect();
            let read = (src..src + count).collect();
            once(draft.targets(op), op.dst_buffer, written, &mut landed)
                && once(draft.sources(op), op.src_buffer, read, &mut taken)
        })
    })
}

/// Where the sums are that do not lie in their places.
#[derive(Default)]
struct Moved {
    places: BTreeMap<Chunk, (BufferId, u32)>,
}

impl Moved {
    fn place(&self, (rank, buffer, chunk): Chunk) -> (BufferId, u32) {
        let place = self.places.get(&(rank, buffer, chunk));
        place.copied().unwrap_or((buffer, chunk))
    }

    /// Write `op` for the places where its operands are; whether that is possible.
    fn rewrite(&mut self, draft: &mut Schedule, op: &Op) -> bool {
        let ranges: Vec<Range> = ranges_of(op, &draft.ranges).collect();
        let adds = op.kind == OpKind::Local && op.combine == Combine::Reduce;
        let [from, into] =
            [op.src_buffer, op.dst_buffer].map(|id| &draft.buffers[usize::from(id.0)]);
        if adds && is_scratch(draft, op.src_buffer) && from.same_cut(into) {
            return self.add(draft, op, &ranges);
        }
        if op.combine == Combine::Reduce {
            return false;
        }
        let Some((buffer, read)) = self.read(op.from, op.src_buffer, &ranges) else {
            return false;
        };
        for &target in &draft.targets(op).to_vec() {
            for (_, dst, count) in &ranges {
                for chunk in *dst..dst + count {
                    self.places.remove(&(target, op.dst_buffer, chunk));
                }
            }
        }
        let op = Op {
            src_buffer: buffer,
            ..*op
        };
        push(draft, op, read);
        true
    }

    /// Add what is summed so far to what has landed; the sum is there from now on.
    fn add(&mut self, draft: &mut Schedule, op: &Op, ranges: &[Range]) -> bool {
        let summed = ranges.iter().map(|&(src, dst, count)| (dst, src, count));
        let summed: Vec<Range> = summed.collect();
        let Some((buffer, read)) = self.read(op.from, op.dst_buffer, &summed) else {
            return false;
        };
        for &(src, dst, count) in ranges {
            for k in 0..count {
                let chunk = (op.from, op.dst_buffer, dst + k);
                self.places.insert(chunk, (op.src_buffer, src + k));
            }
        }
        let op = Op {
            src_buffer: buffer,
            dst_buffer: op.src_buffer,
            ..*op
        };
        push(draft, op, read);
        true
    }

    /// The same ranges where they are now, if that is one buffer.
    fn read(
        &self,
        rank: u32,
        buffer: BufferId,
        ranges: &[Range],
    ) -> Option<(BufferId, Vec<Range>)> {
        let mut read: Vec<Range> = Vec::new();
        let mut found = None;
        for &(src, dst, count) in ranges {
            for k in 0..count {
                let (there, chunk) = self.place((rank, buffer, src + k));
                if *found.get_or_insert(there) != there {
                    return None;
                }
                match read.last_mut() {
                    Some((s, d, n)) if (*s + *n, *d + *n) == (chunk, dst + k) => *n += 1,
                    _ => read.push((chunk, dst + k, 1)),
                }
            }
        }
        Some((found.unwrap_or(buffer), read))
    }

    /// Copy the sums to their places, in step `step`.
    fn bring_back(self, draft: &mut Schedule, step: u32) {
        let mut copies: BTreeMap<(u32, BufferId, BufferId), Vec<Range>> = BTreeMap::new();
        for ((rank, buffer, chunk), (there, src)) in self.places {
            let ranges = copies.entry((rank, there, buffer)).or_default();
            match ranges.last_mut() {
                Some((s, d, n)) if (*s + *n, *d + *n) == (src, chunk) => *n += 1,
                _ => ranges.push((src, chunk, 1)),
            }
        }
        for ((rank, there, buffer), ranges) in copies {
            let copy = Op {
                from: rank,
                to: rank,
                src: 0,
                dst: 0,
                count: 0,
                step,
                kind: OpKind::Local,
                combine: Combine::Replace,
                src_buffer: there,
                dst_buffer: buffer,
                lane: COMPUTE_LANE,
                hint: Default::default(),
                scattered: false,
                fenced: false,
            };
            push(draft, copy, ranges);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::collectives::{build, samples};
    use crate::pull::{pull, Pulled};
    use crate::text;
    use crate::transforms::has_own_waits;
    use crate::verify::verify;

    fn notices(schedule: &Schedule) -> usize {
        let ops = schedule.ops().iter();
        ops.filter(|op| op.kind == OpKind::Notice).count()
    }

    #[test]
    fn every_algorithm_stays_right() {
        for (name, before) in samples() {
            if has_own_waits(&before).unwrap() {
                assert!(pull(&before, Pulled::Initial, None).is_err());
                continue;
            }
            let after = sums_aside(&before).unwrap();
            for one in [
                pull(&after, Pulled::Initial, None).unwrap(),
                pull(&after, Pulled::Everything, None).unwrap(),
                after,
            ] {
                verify(&one).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(one.sent_bytes(), before.sent_bytes(), "{name}");
                let written = text::print(&one);
                assert!(
                    text::print(&text::parse(&written).unwrap()) == written,
                    "{name}"
                );
            }
        }
    }

    /// Recursive doubling over 8 by reads: in place each of three sums waits for the reader of its operand. Aside, each
    /// partner tells that its operand is there, from the second exchange on, and the copy waits for the first reader.
    #[test]
    fn reads_of_sums_aside_wait_for_fewer_notices() {
        let doubling = build("allreduce/recursive_doubling_latency", &Shape::new(8, 80)).unwrap();
        let own = own_scratch(&doubling).unwrap();
        let read = |schedule: &Schedule| pull(schedule, Pulled::Everything, None).unwrap();
        assert_eq!(notices(&read(&own)), 8 * (3 + 2));
        assert_eq!(notices(&read(&sums_aside(&doubling).unwrap())), 8 * (1 + 2));
    }
}
