//! The dependencies of a schedule, reversed: which operations proceed when one completes.
//!
//! A schedule lists for every operation what it waits for; the engine needs, for everything that
//! happens, who waits for it. Both are compressed rows. An edge says *which* of the completions of
//! a message is waited for by who waits:
//!
//! | waiter | completion |
//! |---|---|
//! | the target of a put, notice or multicast | visible there |
//! | its source | source free, or acknowledged where the edge says so |
//! | the initiator of a get | visible there |
//! | the rank of a local, compute, barrier or fence | finished |
//!
//! Sixteen bytes per operation and four per edge, built once in two passes. What a node needs only until its
//! operation is issued makes room for when that was.

use crate::critical::Cause;
use crate::error::SimError;
use linkwright_schedule::ir::{Edge, Op, OpKind, Schedule};

/// End of a list, and "none".
pub(crate) const NONE: u32 = u32::MAX;

/// A completion that can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Wait {
    /// Visible at the target, or finished.
    Visible = 0,
    /// The source may be overwritten.
    SourceFree = 1,
    /// The initiator knows of the delivery.
    Acknowledged = 2,
}

/// What the engine knows of one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// In the two highest bits whether anyone waits for this operation's source or acknowledgement; below them
    /// the waits not yet over or, once it is issued, whether it paid the start of its phase and the upper part of
    /// that moment.
    pub pending: u32,
    /// First entry in the table of successors.
    first: u32,
    /// Next operation of the same lane; once this one is issued, the lower part of that moment.
    pub next_in_lane: u32,
    /// What let the operation go, see [`crate::critical`].
    pub cause: u32,
}

const SOMEONE_WAITS: [u32; 3] = [0, 1 << 31, 1 << 30];
const PENDING: u32 = (1 << 30) - 1;
const PAID_PHASE: u32 = 1 << 29;
/// The last moment, in picoseconds, that a node can hold: 26 days.
pub(crate) const LAST_ISSUE: u64 = ((PAID_PHASE as u64) << 32) - 1;
/// A successor is an operation (30 bits) and the completion it waits for.
const SUCCESSOR: u32 = (1 << 30) - 1;

impl Node {
    /// Whether all waits are over.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.pending & PENDING == 0
    }

    /// The operation is issued at `at`, because of `cause`, and does or does not pay the start of its phase.
    #[inline]
    pub fn issue(&mut self, at: u64, cause: Cause, pays_phase: bool) {
        let phase = if pays_phase { PAID_PHASE } else { 0 };
        self.pending = self.pending & !PENDING | phase | (at >> 32) as u32;
        self.next_in_lane = at as u32;
        self.cause = cause.0;
    }

    /// When the operation was issued.
    #[inline]
    pub fn issued(&self) -> u64 {
        u64::from(self.pending & (PAID_PHASE - 1)) << 32 | u64::from(self.next_in_lane)
    }

    /// Whether the operation, long issued, paid the start of its phase.
    #[inline]
    pub fn paid_phase(&self) -> bool {
        self.pending & PAID_PHASE != 0
    }

    /// Whether any operation waits for this completion.
    #[inline]
    pub fn is_awaited(&self, wait: Wait) -> bool {
        self.pending & SOMEONE_WAITS[wait as usize] != 0
    }
}

/// Nodes, successors, and the lanes that issue them.
#[derive(Debug)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    successors: Vec<u32>,
    /// First operation of each lane, `NONE` where it has none.
    pub lane_heads: Vec<u32>,
    /// Lanes per rank.
    pub slots: u32,
    slot_of: [u8; 256],
}

impl Graph {
    pub fn new(schedule: &Schedule) -> Result<Self, SimError> {
        let (slot_of, slots) = slots(schedule);
        let empty = Node {
            pending: 0,
            first: 0,
            next_in_lane: NONE,
            cause: NONE,
        };
        let mut graph = Graph {
            nodes: vec![empty; schedule.ops().len() + 1],
            successors: vec![0; schedule.edge_count()],
            lane_heads: vec![NONE; (schedule.ranks * slots) as usize],
            slots,
            slot_of,
        };
        graph.link_lanes(schedule);
        let waits = graph.count_successors(schedule)?;
        graph.list_successors(schedule, waits);
        Ok(graph)
    }

    /// The lane that issues `op`.
    #[inline]
    pub fn lane(&self, op: &Op) -> usize {
        let slot = self.slot_of[op.lane as usize];
        (op.initiator() * self.slots + u32::from(slot)) as usize
    }

    /// Positions in the table of successors of operation `id`.
    #[inline]
    pub fn successors(&self, id: u32) -> std::ops::Range<usize> {
        self.nodes[id as usize].first as usize..self.nodes[id as usize + 1].first as usize
    }

    /// Operation at a position, if it waits for `wait`.
    #[inline]
    pub fn successor(&self, position: usize, wait: Wait) -> Option<u32> {
        let entry = self.successors[position];
        (entry >> 30 == wait as u32).then_some(entry & SUCCESSOR)
    }

    fn link_lanes(&mut self, schedule: &Schedule) {
        let mut tails = vec![NONE; self.lane_heads.len()];
        for (id, op) in (0u32..).zip(schedule.ops()) {
            let lane = self.lane(op);
            match std::mem::replace(&mut tails[lane], id) {
                NONE => self.lane_heads[lane] = id,
                tail => self.nodes[tail as usize].next_in_lane = id,
            }
        }
    }

    /// Leaves in every node the end of its successors; returns what each edge waits for, in the
    /// order of the edges.
    fn count_successors(&mut self, schedule: &Schedule) -> Result<Vec<Wait>, SimError> {
        let mut waits = Vec::with_capacity(schedule.edge_count());
        for (id, op) in (0u32..).zip(schedule.ops()) {
            let edges = schedule.after(id);
            self.nodes[id as usize].pending += edges.len() as u32;
            for &edge in edges {
                let Some(wait) = waits_for(schedule, edge, op.initiator()) else {
                    return Err(SimError::Invisible {
                        op: id,
                        rank: op.initiator(),
                        earlier: edge.op(),
                    });
                };
                waits.push(wait);
                let earlier = &mut self.nodes[edge.op() as usize];
                earlier.pending |= SOMEONE_WAITS[wait as usize];
                earlier.first += 1;
            }
        }
        // Counts become ends; filling from the back turns them into starts.
        let mut end = 0;
        for node in &mut self.nodes {
            end += node.first;
            node.first = end;
        }
        Ok(waits)
    }

    /// Turns the ends into starts.
    fn list_successors(&mut self, schedule: &Schedule, mut waits: Vec<Wait>) {
        for id in (0..schedule.ops().len() as u32).rev() {
            let edges = schedule.after(id);
            let own = waits.drain(waits.len() - edges.len()..);
            for (&edge, wait) in edges.iter().zip(own) {
                let first = &mut self.nodes[edge.op() as usize].first;
                *first -= 1;
                self.successors[*first as usize] = id | (wait as u32) << 30;
            }
        }
    }
}

/// Dense numbers for the lanes in use.
fn slots(schedule: &Schedule) -> ([u8; 256], u32) {
    let mut used = [false; 256];
    for op in schedule.ops() {
        used[op.lane as usize] = true;
    }
    let mut slot_of = [0; 256];
    let mut count = 0u32;
    for (lane, _) in used.iter().enumerate().filter(|(_, &used)| used) {
        slot_of[lane] = count as u8;
        count += 1;
    }
    (slot_of, count)
}

/// The completion that `edge` means to `waiter`; `None` where it cannot see one.
#[inline(always)] // the pass asks for every edge, mostly one to a put, a notice or an operation of the waiter
pub(crate) fn waits_for(schedule: &Schedule, edge: Edge, waiter: u32) -> Option<Wait> {
    let op = &schedule.ops()[edge.op() as usize];
    let (source, target) = match op.kind {
        OpKind::Put | OpKind::Notice => (op.from == waiter, op.to == waiter),
        OpKind::Multicast => (op.from == waiter, is_target(schedule, op, waiter)),
        // Who sees the data arrive knows that the sources are free, too.
        OpKind::Aggregate => (op.from == waiter, is_target(schedule, op, waiter)),
        OpKind::Get => (false, op.to == waiter),
        _ => (false, op.from == waiter),
    };
    match (edge.is_acknowledged(), source, target) {
        (true, true, _) => Some(Wait::Acknowledged),
        (_, _, true) => Some(Wait::Visible),
        (false, true, false) => Some(Wait::SourceFree),
        _ => None,
    }
}

#[cold]
fn is_target(schedule: &Schedule, op: &Op, waiter: u32) -> bool {
    schedule.targets(op).contains(&waiter)
}
