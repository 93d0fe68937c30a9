//! Every edge leads to a smaller id that its waiter can see, and every barrier is complete.
//!
//! The k-th arrivals of all ranks of a set form one barrier. It is finished when the last of them
//! has arrived, so whoever waits for it needs an id above all of its arrivals; otherwise running
//! the operations by id would stop there.

use super::outcome::{Verified, VerifyError};
use crate::ir::{Op, OpKind, Schedule};
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// The arrivals of each barrier.
pub(super) struct Barriers {
    /// Barrier of each operation; empty where the schedule has none.
    of: Vec<u32>,
    arrivals: Vec<Vec<u32>>,
    /// The same as (rank, operation), ascending.
    by_rank: Vec<Vec<(u32, u32)>>,
}

impl Barriers {
    /// The barrier that operation `op` is an arrival of, if any.
    #[inline]
    pub fn of(&self, op: u32) -> Option<u32> {
        match self.of.get(op as usize) {
            Some(&barrier) if barrier != NONE => Some(barrier),
            _ => None,
        }
    }

    /// Number of barriers.
    pub fn count(&self) -> usize {
        self.arrivals.len()
    }

    /// The arrivals at a barrier, ascending.
    pub fn arrivals(&self, barrier: u32) -> &[u32] {
        &self.arrivals[barrier as usize]
    }

    /// The arrival of `rank` at a barrier.
    pub fn arrival_of(&self, barrier: u32, rank: u32) -> Option<u32> {
        let ranks = &self.by_rank[barrier as usize];
        let at = ranks.binary_search_by_key(&rank, |arrival| arrival.0);
        at.ok().map(|at| ranks[at].1)
    }

    /// The largest id of an arrival at a barrier.
    pub fn last(&self, barrier: u32) -> u32 {
        *self.arrivals(barrier).last().expect("someone arrived")
    }
}

/// Check all edges and barriers, and count messages.
pub(super) fn check(schedule: &Schedule, report: &mut Verified) -> Result<Barriers, VerifyError> {
    let barriers = barriers(schedule)?;
    for (id, op, edges) in schedule.ops_with_edges() {
        report.messages += u64::from(op.is_message());
        report.notices += u64::from(op.kind == OpKind::Notice);
        for edge in edges {
            let (target, rank) = (edge.op(), op.initiator());
            let plain = target < id && barriers.count() == 0;
            if plain && schedule.completion(*edge, rank).is_some() {
                continue;
            }
            if target >= id {
                let problem = format!(
                    "waits for t{target}, which is not earlier; sort the operations so that \
                     every edge leads to a smaller id"
                );
                return Err(error(id, op, problem));
            }
            if schedule.completion(*edge, rank).is_none() {
                let problem = format!(
                    "waits for {}t{target}, which rank {rank} cannot see; let rank {} send a notice",
                    if edge.is_acknowledged() { "the acknowledgement of " } else { "" },
                    schedule.ops()[target as usize].initiator()
                );
                return Err(error(id, op, problem));
            }
            if let Some(last) = barriers.of(target).map(|b| barriers.last(b)) {
                if last >= id {
                    let problem = format!(
                        "waits for the barrier of t{target}, at which t{last} arrives only later; \
                         put all arrivals before it"
                    );
                    return Err(error(id, op, problem));
                }
            }
        }
    }
    Ok(barriers)
}

fn error(id: u32, op: &Op, problem: String) -> VerifyError {
    VerifyError::Order {
        step: op.step,
        op: id,
        rank: op.initiator(),
        problem,
    }
}

fn barriers(schedule: &Schedule) -> Result<Barriers, VerifyError> {
    let ops = schedule.ops();
    let mut found = Barriers {
        of: Vec::new(),
        arrivals: Vec::new(),
        by_rank: Vec::new(),
    };
    if !schedule.has(OpKind::Barrier) {
        return Ok(found);
    }
    found.of = vec![NONE; ops.len()];
    // How often a rank arrived at a set's barriers, and the barriers of each set in turn.
    let mut arrived: HashMap<(u32, u32), usize> = HashMap::new();
    let mut of_set: HashMap<u32, Vec<u32>> = HashMap::new();
    for (id, op) in (0u32..)
        .zip(ops)
        .filter(|(_, op)| op.kind == OpKind::Barrier)
    {
        let turn = arrived.entry((op.from, op.to)).or_default();
        let turns = of_set.entry(op.to).or_default();
        if *turn == turns.len() {
            turns.push(found.arrivals.len() as u32);
            found.arrivals.push(Vec::new());
        }
        let barrier = turns[*turn];
        *turn += 1;
        found.of[id as usize] = barrier;
        found.arrivals[barrier as usize].push(id);
    }
    for arrivals in &found.arrivals {
        let first = &ops[arrivals[0] as usize];
        let set = &schedule.sets[first.to as usize];
        if arrivals.len() == set.len() {
            continue;
        }
        let missing = (set.iter())
            .find(|&&rank| !arrivals.iter().any(|&id| ops[id as usize].from == rank))
            .expect("a rank arrives at a barrier once");
        let problem = format!(
            "waits at a barrier of set s{} at which rank {missing} never arrives; \
             let it arrive or leave it out of the set",
            first.to
        );
        return Err(error(arrivals[0], first, problem));
    }
    let ranks = |arrivals: &Vec<u32>| {
        let rank = |&id: &u32| (ops[id as usize].from, id);
        let mut ranks: Vec<_> = arrivals.iter().map(rank).collect();
        ranks.sort_unstable();
        ranks
    };
    found.by_rank = found.arrivals.iter().map(ranks).collect();
    Ok(found)
}
