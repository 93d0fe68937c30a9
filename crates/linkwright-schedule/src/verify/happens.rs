//! What has certainly happened before an operation starts.
//!
//! ```text
//!   start(Y)   comes after the completion that each edge of Y names,
//!              and after start(X) of the operation X before it in the lane of its initiator
//!   finish(Y)  comes after start(Y); a barrier's after the starts of all its arrivals
//! ```
//!
//! There is no other order: a lane issues in order and completes in any order.
//!
//! There are two ways to prove that X comes before Y. *Chains*: every operation continues the chain
//! of an operation whose delivery it waits for, so "same chain, later place" proves in one comparison
//! that a chunk has travelled round the ring. Otherwise, a *search* goes backwards from Y: first a
//! short one along edges; what it leaves open is settled at the end, by a search of the whole past
//! along edges and lanes, or by [`clocks`] if much is open. Both are complete, so the answer is exact.
//!
//! [`clocks`]: super::clocks

use super::clocks::{settle, Lanes};
use super::hazard::{meets, Hazard, Need};
use super::order::Barriers;
use crate::ir::{Completion, Edge, Op, Schedule};

const NONE: u32 = u32::MAX;

/// Set in [`Happens::chain`] where the operation is the last of its chain.
const LAST: u32 = 1 << 31;

/// Operations that the first, short search visits.
const SHORT: usize = 96;

/// The order of a schedule, grown operation by operation.
pub(super) struct Happens<'a> {
    schedule: &'a Schedule,
    barriers: &'a Barriers,
    /// Made on first use.
    lanes: Option<Lanes>,
    /// Chain of each operation: the id of its first one, and whether the operation is its last so far.
    /// Ids ascend along a chain.
    chain: Vec<u32>,
    /// Search in which an operation, or a barrier, was last visited.
    seen: Vec<u32>,
    seen_barrier: Vec<u32>,
    /// Search in which an operation was last in question.
    asked: Vec<u32>,
    /// Likewise of chains, by their first operation, with the first operation in question.
    asked_chain: Vec<(u32, u32)>,
    search: u32,
    queue: Vec<u32>,
}

impl<'a> Happens<'a> {
    pub fn new(schedule: &'a Schedule, barriers: &'a Barriers) -> Self {
        let count = schedule.ops().len();
        Happens {
            schedule,
            barriers,
            lanes: None,
            chain: Vec::with_capacity(count),
            seen: Vec::new(),
            seen_barrier: Vec::new(),
            asked: Vec::new(),
            asked_chain: Vec::new(),
            search: 0,
            queue: Vec::new(),
        }
    }

    /// Let the next operation, `id`, continue a chain or open one.
    #[inline]
    pub fn append(&mut self, id: u32, op: &Op, edges: &[Edge]) {
        let waiter = op.initiator();
        for &edge in edges {
            let chain = self.chain[edge.op() as usize];
            if chain & LAST != 0
                && self.schedule.completion(edge, waiter) == Some(Completion::Delivered)
            {
                self.chain[edge.op() as usize] = chain & !LAST;
                self.chain.push(chain);
                return;
            }
        }
        self.chain.push(id | LAST);
    }

    /// The chain of `op`.
    #[inline]
    fn chain(&self, op: u32) -> u32 {
        self.chain[op as usize] & !LAST
    }

    fn lanes(&mut self) -> &Lanes {
        let schedule = self.schedule;
        self.lanes.get_or_insert_with(|| Lanes::of(schedule))
    }

    /// Whether the chain or the edges of `later`, the operation appended last, prove that `op` meets the need.
    #[inline]
    pub fn at_once(&self, later: u32, op: u32, need: Need) -> bool {
        if self.follows(later, op) {
            return true;
        }
        let waiter = self.schedule.ops()[later as usize].initiator();
        (self.schedule.after(later).iter()).any(|edge| {
            self.follows(edge.op(), op)
                || (edge.op() == op && meets(self.schedule.completion(*edge, waiter), need, waiter))
        })
    }

    /// Whether `op` was delivered before `later` started, because both are in one chain.
    #[inline]
    fn follows(&self, later: u32, op: u32) -> bool {
        later > op && self.chain(later) == self.chain(op)
    }

    /// Drop from `hazards` what a short search finds to be ordered before `later`.
    pub fn prove_shortly(&mut self, later: u32, hazards: &mut Vec<Hazard>) {
        self.search(later, hazards, SHORT, false);
    }

    /// Drop from `open`, ascending by operation, all that is ordered; the first that remains is a race.
    pub fn prove(&mut self, open: &mut Vec<(u32, Vec<Hazard>)>) {
        if open.is_empty() {
            return;
        }
        let past = |(later, hazards): &(u32, Vec<Hazard>)| {
            let first = hazards.iter().map(|hazard| hazard.op).min();
            u64::from(later - first.unwrap_or(*later))
        };
        // Clocks are compared eight or more at a time, operations visited one by one.
        let by_search: u64 = open.iter().map(past).sum();
        let by_clock = self.schedule.ops().len() as u64 * self.lanes().count as u64 / 8;
        let (schedule, barriers) = (self.schedule, self.barriers);
        if by_clock < by_search && settle(schedule, barriers, self.lanes(), open) {
            return;
        }
        self.search_all(open);
    }

    /// Drop from `open` all that is ordered, up to the first operation with a race.
    fn search_all(&mut self, open: &mut Vec<(u32, Vec<Hazard>)>) {
        for (later, hazards) in open.iter_mut() {
            self.search(*later, hazards, usize::MAX, true);
            if !hazards.is_empty() {
                break;
            }
        }
        open.retain(|(_, hazards)| !hazards.is_empty());
    }

    fn search(&mut self, later: u32, hazards: &mut Vec<Hazard>, limit: usize, by_lanes: bool) {
        if self.seen.is_empty() {
            self.seen = vec![0; self.schedule.ops().len()];
            self.seen_barrier = vec![0; self.barriers.count()];
            self.asked = vec![0; self.schedule.ops().len()];
        }
        self.asked_chain.resize(self.chain.len(), (0, 0));
        self.search += 1;
        self.queue.clear();
        self.queue.push(later);
        // Nothing below the earliest operation in question can lead to it.
        let mut floor = u32::MAX;
        for hazard in hazards.iter() {
            floor = floor.min(hazard.op);
            self.asked[hazard.op as usize] = self.search;
            self.ask_chain(hazard.op);
        }
        let mut next = 0;
        while next < self.queue.len().min(limit) && !hazards.is_empty() {
            let at = self.queue[next];
            next += 1;
            let waiter = self.schedule.ops()[at as usize].initiator();
            for &edge in self.schedule.after(at) {
                if self.asked[edge.op() as usize] == self.search {
                    let known = self.schedule.completion(edge, waiter);
                    hazards.retain(|h| h.op != edge.op() || !meets(known, h.need, waiter));
                }
                self.started(edge.op(), hazards, floor);
                if let Some(barrier) = self.barriers.of(edge.op()) {
                    match by_lanes {
                        true => self.passed(barrier, hazards, floor),
                        false => self.passed_by_those_in_question(barrier, hazards, floor),
                    }
                }
            }
            if by_lanes {
                let before = self.lanes().before[at as usize];
                if before != NONE {
                    self.started(before, hazards, floor);
                }
            }
        }
    }

    fn ask_chain(&mut self, op: u32) {
        let chain = self.chain(op);
        let asked = &mut self.asked_chain[chain as usize];
        *asked = match asked.0 == self.search {
            true => (self.search, op.min(asked.1)),
            false => (self.search, op),
        };
    }

    /// Operation `op` has started.
    fn started(&mut self, op: u32, hazards: &mut Vec<Hazard>, floor: u32) {
        if op <= floor || self.seen[op as usize] == self.search {
            return;
        }
        self.seen[op as usize] = self.search;
        self.queue.push(op);
        let chain = self.chain(op);
        let asked = self.asked_chain[chain as usize];
        if asked.0 == self.search && op > asked.1 {
            hazards.retain(|h| !self.follows(op, h.op));
            self.asked_chain[chain as usize].0 = 0;
            for hazard in hazards.iter() {
                if self.chain(hazard.op) == chain {
                    self.ask_chain(hazard.op);
                }
            }
        }
    }

    /// The initiators of the first hazards have arrived at `barrier`; they know most about them.
    fn passed_by_those_in_question(&mut self, barrier: u32, hazards: &mut Vec<Hazard>, floor: u32) {
        let mut arrivals = [None; 4];
        for (arrival, hazard) in arrivals.iter_mut().zip(hazards.iter()) {
            let rank = self.schedule.ops()[hazard.op as usize].initiator();
            *arrival = self.barriers.arrival_of(barrier, rank);
        }
        for arrival in arrivals.into_iter().flatten() {
            self.started(arrival, hazards, floor);
        }
    }

    /// All ranks have arrived at `barrier`.
    fn passed(&mut self, barrier: u32, hazards: &mut Vec<Hazard>, floor: u32) {
        if self.seen_barrier[barrier as usize] == self.search {
            return;
        }
        self.seen_barrier[barrier as usize] = self.search;
        let barriers = self.barriers;
        for &arrival in barriers.arrivals(barrier) {
            self.started(arrival, hazards, floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{random, random_schedule};
    use super::*;
    use crate::verify::{bounds, order, Verified};

    /// Every pair of operations, as if it were a hazard.
    fn pairs(schedule: &Schedule, later: u32) -> Vec<Hazard> {
        let needs = |op: u32| {
            let rank = schedule.ops()[op as usize].initiator();
            [
                Need::SourceFree,
                Need::DeliveredAt(rank),
                Need::DeliveredAt(0),
            ]
            .map(|need| Hazard {
                op,
                need,
                buffer: 0,
                participant: 0,
                chunk: op,
            })
        };
        (0..later).flat_map(needs).collect()
    }

    #[test]
    fn searches_and_clocks_find_the_same() {
        let mut choose = random(11);
        for _ in 0..300 {
            let Some(schedule) = random_schedule(&mut choose) else {
                continue;
            };
            bounds::check(&schedule).unwrap();
            let barriers = order::check(&schedule, &mut Verified::default()).unwrap();
            let mut happens = Happens::new(&schedule, &barriers);
            for (id, op, edges) in schedule.ops_with_edges() {
                happens.append(id, op, edges);
            }
            let count = schedule.ops().len() as u32;
            let all: Vec<_> = (0..count).map(|id| (id, pairs(&schedule, id))).collect();
            let mut by_clocks = all.clone();
            assert!(settle(
                &schedule,
                &barriers,
                happens.lanes(),
                &mut by_clocks
            ));
            for (later, mut hazards) in all {
                happens.search(later, &mut hazards, usize::MAX, true);
                let left = by_clocks.iter().find(|open| open.0 == later);
                let found: Vec<_> = hazards.iter().map(|h| (h.op, h.need)).collect();
                let due = left.map_or(Vec::new(), |(_, left)| {
                    left.iter().map(|h| (h.op, h.need)).collect()
                });
                assert_eq!(found, due, "t{later} of\n{}", crate::text::print(&schedule));
            }
        }
    }
}
