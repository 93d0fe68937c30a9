//! What has certainly happened before an operation starts.
//!
//! ```text
//!   start(Y)   comes after the completion that each edge of Y names,
//!              and after start(X) of the operation X before it in the lane of its initiator
//!   finish(Y)  comes after start(Y); a barrier's after the starts of all its arrivals
//! ```
//!
//! Nothing else orders anything: a lane issues in order and completes in any order.
//!
//! Two ways to an answer. *Chains*: every operation continues the chain of an operation whose
//! delivery it waits for, so "same chain, later place" proves in one comparison that a chunk has
//! travelled round the ring. Otherwise a *search* backwards from Y, first a short one along edges,
//! then one over the whole past with the lanes. The second is complete, so the answer is exact.

use super::order::Barriers;
use crate::ir::{Completion, Op, Schedule};

const NONE: u32 = u32::MAX;

/// Operations that the first, short search visits.
const SHORT: usize = 96;

/// What must have happened to an earlier operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Its source may be overwritten.
    SourceFree,
    /// Its data are at this participant.
    DeliveredAt(u32),
}

/// A pair to prove: before the later operation starts, `op` meets `need`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hazard {
    pub op: u32,
    pub need: Need,
    pub buffer: u8,
    pub participant: u32,
    pub chunk: u32,
}

/// The order of a schedule, grown operation by operation.
pub(super) struct Happens<'a> {
    schedule: &'a Schedule,
    barriers: &'a Barriers,
    /// Operation before each one in its lane.
    lane_before: Vec<u32>,
    /// Chain and place in it of each operation.
    chain: Vec<(u32, u32)>,
    /// Last operation of each chain.
    tail: Vec<u32>,
    /// Search in which an operation, or a barrier, was last visited.
    seen: Vec<u32>,
    seen_barrier: Vec<u32>,
    search: u32,
    queue: Vec<u32>,
    /// Searches over the whole past.
    pub long_searches: u64,
}

impl<'a> Happens<'a> {
    pub fn new(schedule: &'a Schedule, barriers: &'a Barriers) -> Self {
        let count = schedule.ops().len();
        Happens {
            schedule,
            barriers,
            lane_before: lanes(schedule),
            chain: Vec::with_capacity(count),
            tail: Vec::new(),
            seen: Vec::new(),
            seen_barrier: Vec::new(),
            search: 0,
            queue: Vec::new(),
            long_searches: 0,
        }
    }

    /// Let the next operation, `id`, continue a chain or open one.
    pub fn append(&mut self, id: u32, op: &Op) {
        let waiter = op.initiator();
        for &edge in self.schedule.after(id) {
            let (chain, place) = self.chain[edge.op() as usize];
            if self.tail[chain as usize] == edge.op()
                && self.schedule.completion(edge, waiter) == Some(Completion::Delivered)
            {
                self.tail[chain as usize] = id;
                self.chain.push((chain, place + 1));
                return;
            }
        }
        self.chain.push((self.tail.len() as u32, 0));
        self.tail.push(id);
    }

    /// Whether `later`, the operation appended last, by its chain or its own edges meets the need.
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
        let (a, b) = (self.chain[later as usize], self.chain[op as usize]);
        a.0 == b.0 && a.1 > b.1
    }

    /// Drop from `hazards` all that are ordered before `later`; what stays is a race.
    pub fn prove(&mut self, later: u32, hazards: &mut Vec<Hazard>) {
        self.search(later, hazards, SHORT, false);
        if !hazards.is_empty() {
            self.long_searches += 1;
            self.search(later, hazards, usize::MAX, true);
        }
    }

    fn search(&mut self, later: u32, hazards: &mut Vec<Hazard>, limit: usize, by_lanes: bool) {
        if self.seen.is_empty() {
            self.seen = vec![0; self.schedule.ops().len()];
            self.seen_barrier = vec![0; self.barriers.count()];
        }
        self.search += 1;
        self.queue.clear();
        self.queue.push(later);
        // Nothing below the earliest operation in question can lead to it.
        let floor = hazards.iter().map(|h| h.op).min().unwrap_or(0);
        let mut next = 0;
        while next < self.queue.len().min(limit) && !hazards.is_empty() {
            let at = self.queue[next];
            next += 1;
            let waiter = self.schedule.ops()[at as usize].initiator();
            for &edge in self.schedule.after(at) {
                let known = self.schedule.completion(edge, waiter);
                hazards.retain(|h| h.op != edge.op() || !meets(known, h.need, waiter));
                self.started(edge.op(), hazards, floor);
                if let Some(barrier) = self.barriers.of(edge.op()) {
                    self.passed(barrier, hazards, floor);
                }
            }
            if by_lanes && self.lane_before[at as usize] != NONE {
                self.started(self.lane_before[at as usize], hazards, floor);
            }
        }
    }

    /// Operation `op` has started.
    fn started(&mut self, op: u32, hazards: &mut Vec<Hazard>, floor: u32) {
        if op > floor && self.seen[op as usize] != self.search {
            self.seen[op as usize] = self.search;
            hazards.retain(|h| !self.follows(op, h.op));
            self.queue.push(op);
        }
    }

    /// Everyone has arrived at `barrier`.
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

/// Whether a completion seen by `waiter` is what is needed.
#[inline]
fn meets(known: Option<Completion>, need: Need, waiter: u32) -> bool {
    match known {
        Some(Completion::Delivered) => true,
        Some(Completion::SourceFree) => need == Need::SourceFree,
        Some(Completion::DeliveredHere) => need == Need::DeliveredAt(waiter),
        None => false,
    }
}

/// The operation before each one in the same lane of the same initiator.
fn lanes(schedule: &Schedule) -> Vec<u32> {
    let mut column = [NONE; 256];
    let mut used = 0;
    for op in schedule.ops() {
        let slot = &mut column[op.lane as usize];
        if *slot == NONE {
            *slot = used;
            used += 1;
        }
    }
    let mut last = vec![NONE; schedule.ranks as usize * used as usize];
    (0u32..)
        .zip(schedule.ops())
        .map(|(id, op)| {
            let lane = op.initiator() as usize * used as usize + column[op.lane as usize] as usize;
            std::mem::replace(&mut last[lane], id)
        })
        .collect()
}
