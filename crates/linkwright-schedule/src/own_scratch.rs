//! Scratch of its own for every arrival, so that no rank waits until another one's scratch is ready.
//!
//! ```text
//!   one scratch buffer     step 0   put 0:output -> 1:scratch    1 adds it to its output
//!                          step 1   1 tells 2 "ready"            put 2:output -> 1:scratch
//!   of its own             step 1                                put 2:output -> 1:scratch1
//! ```
//!
//! Small messages save a latency in each step, for as many times the vector in memory as a chunk has
//! arrivals. The limit is [`OWN_SCRATCH_BYTES`](crate::builder::OWN_SCRATCH_BYTES).
//!
//! The transform undoes what a builder has made of the conflicts of a step, and writes the schedule again with
//! [`Builder::own_scratch`](crate::builder::Builder::own_scratch). Scratch that an author uses otherwise stays as
//! it is, and so does a schedule with waits besides its hazards.

use crate::builder::{rewrite, Builder};
use crate::error::Result;
use crate::ir::{ranges_of, BufferId, Combine, Op, OpKind, Schedule};
use crate::transforms::{has_own_waits, loosen};
use std::collections::{HashMap, HashSet};

/// Let every contribution that arrives land in scratch of its own, within the limit.
pub fn own_scratch(schedule: &Schedule) -> Result<Schedule> {
    if has_own_waits(schedule)? {
        return Ok(schedule.clone());
    }
    let mut draft = loosen(schedule)?;
    direct(&mut draft);
    rewrite(draft, Builder::own_scratch)
}

/// A message through scratch and the local operation that brings it to its place, by position.
type Landing = (usize, usize);

/// Send what lands in scratch where it belongs, and forget that scratch.
pub(crate) fn direct(draft: &mut Schedule) {
    let landings = landings(draft);
    let mut kept = vec![true; draft.ops.len()];
    for &(message, local) in &landings {
        let into = draft.ops[local];
        let op = &mut draft.ops[message];
        (op.dst_buffer, op.combine) = (into.dst_buffer, into.combine);
        kept[local] = false;
    }
    let mut kept = kept.into_iter();
    draft.ops.retain(|_| kept.next() == Some(true));
    drop_unused(draft);
}

/// All landings in scratch that nothing else uses.
fn landings(draft: &Schedule) -> Vec<Landing> {
    let mut landings = Vec::new();
    let mut others: HashSet<BufferId> = HashSet::new();
    let mut first = 0;
    for step in draft.ops.chunk_by(|a, b| a.step == b.step) {
        let mut arrivals: HashMap<(u32, BufferId, u32), usize> = HashMap::new();
        for (index, op) in (first..).zip(step) {
            let brings = op.kind == OpKind::Local && is_scratch(draft, op.src_buffer);
            if let Some(message) = brings.then(|| arrivals.remove(&chunk(draft, op, true))) {
                match message.filter(|&m| lands(draft, &draft.ops[m], op)) {
                    Some(message) => landings.push((message, index)),
                    None => drop(others.insert(op.src_buffer)),
                }
                continue;
            }
            if op.moves_data() && is_scratch(draft, op.src_buffer) {
                others.insert(op.src_buffer);
            }
            if op.moves_data() && is_scratch(draft, op.dst_buffer) {
                let alone = op.kind == OpKind::Put || op.kind == OpKind::Get;
                let arrival = (chunk(draft, op, false), index);
                if !alone || arrivals.insert(arrival.0, arrival.1).is_some() {
                    others.insert(op.dst_buffer);
                }
            }
        }
        let left = arrivals.keys().map(|arrival| arrival.1);
        others.extend(left);
        first += step.len();
    }
    landings.retain(|&(message, _)| !others.contains(&draft.ops[message].dst_buffer));
    landings
}

pub(crate) fn is_scratch(draft: &Schedule, buffer: BufferId) -> bool {
    draft.buffers[usize::from(buffer.0)].is_scratch()
}

/// Where an operation first reads, or writes: participant, buffer, chunk.
fn chunk(draft: &Schedule, op: &Op, reads: bool) -> (u32, BufferId, u32) {
    let first = ranges_of(op, &draft.ranges).next();
    let (src, dst, _) = first.unwrap_or((0, 0, 0));
    match reads {
        true => (op.from, op.src_buffer, src),
        false => (op.to, op.dst_buffer, dst),
    }
}

/// Whether `local` brings all of `message`, and nothing else, to the same chunks of another buffer.
fn lands(draft: &Schedule, message: &Op, local: &Op) -> bool {
    let [scratch, place] =
        [local.src_buffer, local.dst_buffer].map(|id| &draft.buffers[id.0 as usize]);
    let written = ranges_of(message, &draft.ranges).map(|(_, dst, count)| (dst, dst, count));
    message.combine == Combine::Replace
        && scratch.same_cut(place)
        && scratch.owner == place.owner
        && written.eq(ranges_of(local, &draft.ranges))
}

/// Leave out scratch that no operation uses any more.
fn drop_unused(draft: &mut Schedule) {
    let mut used = vec![false; draft.buffers.len()];
    for op in draft.ops.iter().filter(|op| op.moves_data()) {
        used[op.src_buffer.0 as usize] = true;
        used[op.dst_buffer.0 as usize] = true;
    }
    let mut new = Vec::new();
    let mut buffers = Vec::new();
    for (buffer, used) in draft.buffers.drain(..).zip(used) {
        new.push(BufferId(buffers.len() as u8));
        if used || !buffer.is_scratch() {
            buffers.push(buffer);
        }
    }
    draft.buffers = buffers;
    for op in draft.ops.iter_mut().filter(|op| op.moves_data()) {
        op.src_buffer = new[op.src_buffer.0 as usize];
        op.dst_buffer = new[op.dst_buffer.0 as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Shape, OWN_SCRATCH_BYTES};
    use crate::collectives::{build, REGISTRY};
    use crate::ir::Buffer;
    use crate::spec::Collective;
    use crate::text::print;
    use crate::transforms::unfuse;
    use crate::verify::verify;

    fn notices(schedule: &Schedule) -> usize {
        let ops = schedule.ops().iter();
        ops.filter(|op| op.kind == OpKind::Notice).count()
    }

    #[test]
    fn every_algorithm_stays_right_and_waits_for_no_more() {
        for algorithm in REGISTRY {
            for p in (1..=33).chain([64]) {
                let line = Shape::new(p, u64::from(p) + 1);
                let rows = (2..=p.isqrt()).rev().find(|rows| p % rows == 0);
                let grid = rows.map(|rows| line.clone().with_grid(p / rows, rows));
                for shape in [Some(line), grid].into_iter().flatten() {
                    let Ok(before) = (algorithm.build)(&shape) else {
                        continue;
                    };
                    let own = own_scratch(&before).unwrap();
                    let key = algorithm.key();
                    verify(&own).unwrap_or_else(|e| panic!("{key} {shape:?}: {e}"));
                    verify(&unfuse(&own).unwrap()).unwrap();
                    assert!(notices(&own) <= notices(&before), "{key} {shape:?}");
                }
            }
        }
    }

    /// Recursive doubling and Swing over 64: 5 of 6 exchanges, or halvings, waited for 64 notices each.
    #[test]
    fn exchanges_wait_for_nothing_but_data() {
        for key in [
            "allreduce/recursive_doubling_latency",
            "allreduce/recursive_doubling_bandwidth",
            "allreduce/swing_latency",
            "allreduce/swing_bandwidth",
            "reduce_scatter/recursive_halving",
        ] {
            let schedule = build(key, &Shape::new(64, 640).with_grid(8, 8)).unwrap();
            let after = own_scratch(&schedule).unwrap();
            assert_eq!((notices(&schedule), notices(&after)), (320, 0), "{key}");
        }
    }

    #[test]
    fn what_has_it_already_is_not_changed() {
        for key in ["allreduce/ring", "allreduce/swing_multiport_bandwidth"] {
            let schedule = build(key, &Shape::new(16, 100).with_grid(4, 4)).unwrap();
            let again = own_scratch(&schedule).unwrap();
            assert!(print(&again) == print(&schedule), "{key}");
        }
    }

    #[test]
    fn a_vector_beyond_the_limit_changes_nothing() {
        let shape = Shape::new(8, OWN_SCRATCH_BYTES / 4 + 1);
        let schedule = build("allreduce/recursive_doubling_latency", &shape).unwrap();
        assert_eq!(own_scratch(&schedule).unwrap(), schedule);
    }

    /// What an author puts into `scratch` is read a step later, so the transform must leave it.
    #[test]
    fn scratch_of_an_author_stays() {
        let mut b = Builder::new(Collective::Allreduce, &Shape::new(2, 8));
        let data = b.buffer(Buffer::vector("output", 1));
        let scratch = b.buffer(Buffer::vector("scratch", 1));
        b.step();
        b.put(0, data.at(0), 1, scratch.at(0));
        b.put(1, data.at(0), 0, scratch.at(0));
        b.step();
        b.local(0, scratch.at(0), data.at(0)).reduce();
        b.local(1, scratch.at(0), data.at(0)).reduce();
        let schedule = b.finish().unwrap();
        assert_eq!(own_scratch(&schedule).unwrap(), schedule);
    }
}
