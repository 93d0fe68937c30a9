//! Barriers made of notices, for machines that have none.
//!
//! Dissemination: in round k every member i tells member i + 2^k (mod n) that it, and all members it
//! has heard of, have arrived. After ceil(log2 n) rounds every member has heard of all.
//!
//! ```text
//!   arrive(i)      a fence with the waits of the barrier operation
//!   round k        i -> i + 2^k   waits for arrive(i) and everything i has heard
//!   leave(i)       a fence that waits for arrive(i) and everything i has heard
//! ```
//!
//! Operations that waited for a barrier wait for the fence that leaves it. All these waits are edges
//! of the schedule, so the result is verified like any other. Other transforms find hazards again
//! and drop notices, so this one must come last.
//!
//! Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization" (IJPP 1988).

use crate::error::{Result, ScheduleError};
use crate::ir::{Edge, Op, OpKind, Schedule, MAX_OPS};

const NONE: u32 = u32::MAX;

/// Replace every barrier by notices.
pub fn disseminate(schedule: &Schedule) -> Result<Schedule> {
    let mut out = Rewriter {
        schedule: Schedule {
            ops: Vec::with_capacity(schedule.ops.len()),
            edges: Vec::with_capacity(schedule.edges.len()),
            ..schedule.header()
        },
        new_ids: vec![NONE; schedule.ops.len()],
    };
    // Members of each set that have arrived: (old id, new id of their fence).
    let mut arrived: Vec<Vec<(u32, u32)>> = vec![Vec::new(); schedule.sets.len()];
    for (id, op) in (0u32..).zip(schedule.ops()) {
        let waits: Vec<Edge> = (schedule.after(id).iter())
            .map(|&edge| out.moved(edge))
            .collect();
        if op.kind != OpKind::Barrier {
            out.new_ids[id as usize] = out.push(*op, &waits)?;
            continue;
        }
        let arrive = out.push(fence(op), &waits)?;
        let members = &mut arrived[op.to as usize];
        members.push((id, arrive));
        if members.len() == schedule.sets[op.to as usize].len() {
            let members = std::mem::take(members);
            out.barrier(schedule, &members)?;
        }
    }
    Ok(out.schedule)
}

fn fence(op: &Op) -> Op {
    Op {
        kind: OpKind::Fence,
        to: op.from,
        ..*op
    }
}

struct Rewriter {
    schedule: Schedule,
    new_ids: Vec<u32>,
}

impl Rewriter {
    /// The edge with the new id of its operation.
    fn moved(&self, edge: Edge) -> Edge {
        let id = self.new_ids[edge.op() as usize];
        match edge.is_acknowledged() {
            true => Edge::acknowledged(id),
            false => Edge::on(id),
        }
    }

    fn push(&mut self, op: Op, waits: &[Edge]) -> Result<u32> {
        let out = &mut self.schedule;
        if out.ops.len() >= MAX_OPS {
            return Err(ScheduleError::TooLarge(MAX_OPS as u64));
        }
        out.ops.push(op);
        out.edges.extend_from_slice(waits);
        out.end_edges()?;
        Ok(out.ops.len() as u32 - 1)
    }

    /// All members have arrived: the rounds, and the fences that leave.
    fn barrier(&mut self, schedule: &Schedule, members: &[(u32, u32)]) -> Result<()> {
        let count = members.len();
        let mut heard: Vec<Vec<Edge>> = members
            .iter()
            .map(|&(_, arrive)| vec![Edge::on(arrive)])
            .collect();
        let mut distance = 1;
        while distance < count {
            // What is heard in a round is passed on in the next.
            let mut news = Vec::with_capacity(count);
            for (i, &(id, _)) in members.iter().enumerate() {
                let listener = (i + distance) % count;
                let from = &schedule.ops[id as usize];
                let to = schedule.ops[members[listener].0 as usize].from;
                let notice = from.notice(from.from, to);
                news.push((listener, self.push(notice, &heard[i])?));
            }
            for (listener, notice) in news {
                heard[listener].push(Edge::on(notice));
            }
            distance *= 2;
        }
        for (&(id, _), heard) in members.iter().zip(&heard) {
            let leave = fence(&schedule.ops[id as usize]);
            self.new_ids[id as usize] = self.push(leave, heard)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Shape};
    use crate::spec::Collective;

    fn kinds(schedule: &Schedule, kind: OpKind) -> usize {
        schedule.ops().iter().filter(|op| op.kind == kind).count()
    }

    #[test]
    fn a_barrier_becomes_rounds_of_notices() {
        for ranks in [1, 2, 3, 5, 8] {
            let mut b = Builder::new(Collective::Pattern, &Shape::new(ranks, 4));
            let everyone: Vec<u32> = (0..ranks).collect();
            b.barrier(&everyone);
            b.barrier(&everyone);
            let lowered = disseminate(&b.finish().unwrap()).unwrap();
            assert_eq!(kinds(&lowered, OpKind::Barrier), 0);
            assert_eq!(kinds(&lowered, OpKind::Fence), 4 * ranks as usize);
            let rounds = ranks.next_power_of_two().ilog2();
            assert_eq!(
                kinds(&lowered, OpKind::Notice),
                (2 * rounds * ranks) as usize
            );
        }
    }

    #[test]
    fn what_comes_out_is_verified_like_anything_else() {
        let shared_memory = crate::collectives::find("allreduce/shared_memory").unwrap();
        for ranks in [1, 2, 3, 6, 8] {
            let schedule = (shared_memory.build)(&Shape::new(ranks, 48)).unwrap();
            let lowered = disseminate(&schedule).unwrap();
            crate::verify::verify(&lowered).unwrap_or_else(|e| panic!("{ranks} ranks: {e}"));
        }
    }

    #[test]
    fn everybody_who_leaves_has_heard_of_everybody() {
        for ranks in 1..12u32 {
            let mut b = Builder::new(Collective::Pattern, &Shape::new(ranks, 4));
            b.barrier(&(0..ranks).collect::<Vec<_>>());
            let lowered = disseminate(&b.finish().unwrap()).unwrap();
            // Bit r of `knows`: the arrival of r is among what the operation waits for.
            let mut knows: Vec<u32> = Vec::new();
            for (id, op) in (0u32..).zip(lowered.ops()) {
                let waits = lowered.after(id);
                assert!(waits.iter().all(|edge| edge.op() < id));
                let mut known = waits.iter().fold(0, |k, e| k | knows[e.op() as usize]);
                if waits.is_empty() {
                    known |= 1 << op.from;
                }
                knows.push(known);
            }
            let leave = &knows[knows.len() - ranks as usize..];
            assert!(
                leave.iter().all(|&k| k == (1 << ranks) - 1),
                "{ranks}: {leave:?}"
            );
        }
    }
}
