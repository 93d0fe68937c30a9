//! The same operations in an order that lets the longest chain of them begin first.
//!
//! A lane issues its operations in order. Where several are ready, it should first issue the one on which the
//! longest chain of others waits (*list scheduling*):
//!
//! ```text
//!   tail(X)  = weight(X) + the largest tail of what must come after X
//!   weight   = `start_bytes` + bytes of the operation
//!   each lane, when it is idle: of its ready operations the one with the largest tail, then the first
//! ```
//!
//! "Must come after" are the hazards of the data: read after write, write after read, write after write. The weights
//! know no machine, except for `start_bytes`: what it could move in the time that a message takes to start.
//! A new step begins where an operation follows another one of its step. Schedules with barriers, fences or computes
//! keep their order, because it is what these are for.
//!
//! Source: Graham, *Bounds on multiprocessing timing anomalies*, SIAM J. Appl. Math. 1969.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::accesses::{Accesses, NONE};
use crate::chunks::Chunks;
use crate::error::Result;
use crate::ir::{Op, Schedule};
use crate::order::order;
use crate::transforms::loosen;

/// Let the operations with the longest tails go first, in what freedom the hazards leave.
pub fn reorder(schedule: &Schedule, start_bytes: u64) -> Result<Schedule> {
    let mut draft = loosen(schedule)?;
    if !draft.ops.iter().all(Op::moves_data) {
        return Ok(schedule.clone());
    }
    let weights: Vec<u64> = draft
        .ops
        .iter()
        .map(|op| start_bytes.max(1) + schedule.op_bytes(op))
        .collect();
    let hazards = Hazards::of(schedule, &draft);
    let placed = list(&draft.ops, &hazards, &weights);
    let mut step = 0;
    let mut in_step = vec![false; draft.ops.len()];
    let mut members: Vec<usize> = Vec::new();
    let mut ops = Vec::with_capacity(draft.ops.len());
    for id in placed {
        if hazards.before[id]
            .iter()
            .any(|&before| in_step[before as usize])
        {
            step += 1;
            members.drain(..).for_each(|member| in_step[member] = false);
        }
        in_step[id] = true;
        members.push(id);
        ops.push(Op {
            step,
            ..draft.ops[id]
        });
    }
    draft.ops = ops;
    order(draft)
}

/// Which operations must stay before which, by position.
struct Hazards {
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
}

impl Hazards {
    fn of(schedule: &Schedule, draft: &Schedule) -> Self {
        let mut found = Hazards {
            before: vec![Vec::new(); draft.ops.len()],
            after: vec![Vec::new(); draft.ops.len()],
        };
        let chunks = Chunks::of(schedule);
        let mut accesses = Accesses::new(chunks.len());
        for (id, op) in (0u32..).zip(&draft.ops) {
            let (read, written) = chunks.touched(schedule, op);
            let mut before = earlier(&accesses, &read, &written);
            before.sort_unstable();
            before.dedup();
            for &earlier in &before {
                found.after[earlier as usize].push(id);
            }
            found.before[id as usize] = before;
            read.into_iter()
                .for_each(|chunk| accesses.add_reader(chunk, id));
            written
                .into_iter()
                .for_each(|chunk| accesses.write(chunk, id, |_| {}));
        }
        found
    }
}

/// The operations behind which those accesses must stay.
fn earlier(accesses: &Accesses, read: &[usize], written: &[usize]) -> Vec<u32> {
    let all = read.iter().chain(written);
    let writers = all.map(|&chunk| accesses.writer(chunk));
    let mut found: Vec<u32> = writers.filter(|&writer| writer != NONE).collect();
    for &chunk in written {
        accesses.each_reader(chunk, |reader| found.push(reader));
    }
    found
}

/// The operations, by position, in the order in which idle lanes would begin them.
fn list(ops: &[Op], hazards: &Hazards, weights: &[u64]) -> Vec<usize> {
    let tails = tails(hazards, weights);
    let mut waits: Vec<usize> = hazards.before.iter().map(Vec::len).collect();
    let mut lanes: BTreeMap<(u32, u8), Lane> = BTreeMap::new();
    for (id, op) in ops.iter().enumerate() {
        let lane = lanes.entry((op.initiator(), op.lane)).or_default();
        if waits[id] == 0 {
            lane.ready.push((tails[id], Reverse(id)));
        }
    }
    let mut placed = Vec::with_capacity(ops.len());
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for lane in lanes.values_mut() {
        lane.begin(0, weights, &mut placed, &mut ends);
    }
    while let Some(Reverse((now, id))) = ends.pop() {
        let own = (ops[id].initiator(), ops[id].lane);
        lanes.entry(own).or_default().busy = false;
        let mut idle = vec![own];
        for &later in &hazards.after[id] {
            let later = later as usize;
            waits[later] -= 1;
            if waits[later] == 0 {
                let lane = (ops[later].initiator(), ops[later].lane);
                lanes
                    .entry(lane)
                    .or_default()
                    .ready
                    .push((tails[later], Reverse(later)));
                idle.push(lane);
            }
        }
        for lane in idle {
            let lane = lanes.entry(lane).or_default();
            lane.begin(now, weights, &mut placed, &mut ends);
        }
    }
    placed
}

/// One lane of a rank: what it could begin, and whether it is at work.
#[derive(Default)]
struct Lane {
    ready: BinaryHeap<(u64, Reverse<usize>)>,
    busy: bool,
}

impl Lane {
    /// Begin the ready operation with the longest tail, if the lane is idle.
    fn begin(
        &mut self,
        now: u64,
        weights: &[u64],
        placed: &mut Vec<usize>,
        ends: &mut BinaryHeap<Reverse<(u64, usize)>>,
    ) {
        if self.busy {
            return;
        }
        if let Some((_, Reverse(id))) = self.ready.pop() {
            self.busy = true;
            placed.push(id);
            ends.push(Reverse((now + weights[id], id)));
        }
    }
}

/// The weight of the heaviest chain that begins with each operation.
fn tails(hazards: &Hazards, weights: &[u64]) -> Vec<u64> {
    let mut tails = weights.to_vec();
    for id in (0..tails.len()).rev() {
        let rest = hazards.after[id].iter().map(|&later| tails[later as usize]);
        tails[id] += rest.max().unwrap_or(0);
    }
    tails
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Shape};
    use crate::collectives::samples;
    use crate::ir::Buffer;
    use crate::own_scratch::own_scratch;
    use crate::spec::Collective;
    use crate::text;
    use crate::transforms::{has_own_waits, pipeline, unfuse};
    use crate::verify::verify;

    /// Every algorithm on several shapes, whole and in slices: right, with the same operations, readable again.
    #[test]
    fn every_algorithm_stays_right() {
        for (name, before) in samples() {
            if has_own_waits(&before).unwrap() {
                assert!(reorder(&before, 100).is_err());
                continue;
            }
            let before = own_scratch(&before).unwrap();
            for schedule in [pipeline(&before, 2).ok(), Some(before)]
                .into_iter()
                .flatten()
            {
                let after = reorder(&schedule, 100).unwrap();
                verify(&after).unwrap_or_else(|e| panic!("{name}: {e}"));
                verify(&unfuse(&after).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(after.sent_bytes(), schedule.sent_bytes(), "{name}");
                let written = text::print(&after);
                assert!(
                    text::print(&text::parse(&written).unwrap()) == written,
                    "{name}"
                );
            }
        }
    }

    /// Rank 0 has two puts: to 1, which ends there, and to 2, from where the data go on to 3. The second has the longer
    /// tail, so it goes first.
    #[test]
    fn the_longer_tail_goes_first() {
        let mut b = Builder::new(Collective::Broadcast, &Shape::new(4, 8));
        let data = b.buffer(Buffer::vector("output", 1)).at(0);
        b.step();
        b.put(0, data, 1, data);
        b.put(0, data, 2, data);
        b.step();
        b.put(2, data, 3, data);
        let after = reorder(&b.finish().unwrap(), 0).unwrap();
        let moves: Vec<_> = after.ops().iter().map(|op| (op.from, op.to)).collect();
        assert_eq!(moves, [(0, 2), (0, 1), (2, 3)]);
    }
}
