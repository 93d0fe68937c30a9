//! The schedule: operations on chunks between participants, with dependencies and no time.
//!
//! ```text
//!   participants 0..ranks        issue operations
//!                ranks..         passive memories, which only hold data
//!   buffer       named, cut into chunks = blocks x slices; borders fall on elements
//!   operation    put, get, multicast, aggregate, local, compute, barrier, fence, notice
//!   edge         "my initiator waits for that operation"
//! ```
//!
//! Operation ids are a topological order: every edge points to a smaller id, so running the
//! operations one after another by id is always a correct execution, and a set of lanes that each
//! issue in id order cannot deadlock (the smallest unfinished operation can always run).
//!
//! A wait always happens at the initiator of the waiting operation. What the initiator cannot see
//! by itself (a buffer of its peer became free) reaches it as a [`OpKind::Notice`], a message
//! without data that costs time on every machine and is a flag in every executor.
//!
//! Storage: one 32-byte record per operation, edges in compressed rows; a ring allreduce over
//! 1,024 ranks (2.1 million transfers) takes 84 MB, and at most 110 MB while it is made and proved.

pub(crate) mod buffer;
mod op;

use std::sync::OnceLock;

use crate::error::ScheduleError;
use crate::spec::Spec;
use linkwright_core::free_memory::most_memory;

pub(crate) use buffer::{add_scratch, MAX_BUFFERS};
pub use buffer::{Buffer, BufferId, Holders, Owner, Parts, MAX_CHUNKS};
pub use op::{Combine, Completion, Edge, Hint, Op, OpKind};

/// Largest number of operations in one schedule; the top bit of an edge is a flag.
pub const MAX_OPS: usize = 1 << 30;

/// Bytes that an operation takes while its schedule is made and proved.
const OP_BYTES: u64 = 100;

/// Largest number of operations that the memory of this machine, or what this process may have of it, holds; at most
/// [`MAX_OPS`].
pub fn most_ops() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        most_memory().map_or(MAX_OPS, |bytes| MAX_OPS.min((bytes / OP_BYTES) as usize))
    })
}

/// Largest number of participants: tables per participant must fit into memory.
pub const MAX_RANKS: u32 = 1 << 22;

/// Lane of arithmetic and local copies, unless an author says otherwise.
pub const COMPUTE_LANE: u8 = 255;

/// A schedule. Made by [`crate::builder::Builder`], [`crate::text::parse`] or a transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// What it is to achieve.
    pub spec: Spec,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of memories; they are participants `ranks..ranks + memories`.
    pub memories: u32,
    /// Elements of one vector; see [`Buffer::elements`].
    pub elements: u64,
    /// Bytes of one element.
    pub element_bytes: u32,
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// Participants of multicasts, aggregations and barriers.
    pub sets: Vec<Vec<u32>>,
    /// Sources and destinations of aggregations, as indices into `sets`.
    pub aggregations: Vec<(u32, u32)>,
    pub(crate) ops: Vec<Op>,
    pub(crate) edge_start: Vec<u32>,
    pub(crate) edges: Vec<Edge>,
    /// (source chunk, destination chunk, count) of scattered operations.
    pub(crate) ranges: Vec<(u32, u32, u32)>,
    /// Work of computes, in operations.
    pub(crate) work: Vec<u64>,
    /// Whether there are waits besides the hazards, if that has been determined.
    pub(crate) own_waits: Remembered,
}

/// A fact that follows from the rest of a schedule; two schedules are equal without it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remembered(pub Option<bool>);

impl PartialEq for Remembered {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The end of an operation's row in the table of edges, which has 32 bits.
#[inline]
pub(crate) fn edge_end(edges: usize) -> crate::error::Result<u32> {
    u32::try_from(edges).map_err(|_| ScheduleError::TooLarge(u64::from(u32::MAX)))
}

/// Chunk ranges of `op`, of a schedule with the table `ranges`: (first source chunk, first destination chunk,
/// count).
#[inline]
pub(crate) fn ranges_of<'a>(
    op: &'a Op,
    ranges: &'a [(u32, u32, u32)],
) -> impl Iterator<Item = (u32, u32, u32)> + 'a {
    let listed = match op.scattered {
        true => &ranges[op.src as usize..(op.src + op.count) as usize],
        false => &[],
    };
    let inline = (op.moves_data() && !op.scattered).then_some((op.src, op.dst, op.count));
    inline.into_iter().chain(listed.iter().copied())
}

impl Schedule {
    /// One without buffers and operations, to be written.
    pub(crate) fn empty(spec: Spec, ranks: u32, elements: u64, element_bytes: u32) -> Self {
        Schedule {
            spec,
            ranks,
            memories: 0,
            elements,
            element_bytes,
            buffers: Vec::new(),
            sets: Vec::new(),
            aggregations: Vec::new(),
            ops: Vec::new(),
            edge_start: vec![0],
            edges: Vec::new(),
            ranges: Vec::new(),
            work: Vec::new(),
            own_waits: Remembered(None),
        }
    }

    /// The same without operations.
    pub(crate) fn header(&self) -> Self {
        Schedule {
            memories: self.memories,
            buffers: self.buffers.clone(),
            sets: self.sets.clone(),
            aggregations: self.aggregations.clone(),
            ranges: self.ranges.clone(),
            work: self.work.clone(),
            ..Schedule::empty(self.spec, self.ranks, self.elements, self.element_bytes)
        }
    }

    /// The edges since the last call are what the next operation waits for.
    #[inline]
    pub(crate) fn end_edges(&mut self) -> crate::error::Result<()> {
        self.edge_start.push(edge_end(self.edges.len())?);
        Ok(())
    }

    /// All operations, by id.
    #[inline]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// All operations, by id, with what they wait for.
    #[inline]
    pub fn ops_with_edges(&self) -> impl Iterator<Item = (u32, &Op, &[Edge])> {
        let mut first = 0;
        let ends = self.edge_start[1..].iter();
        (0u32..)
            .zip(&self.ops)
            .zip(ends)
            .map(move |((id, op), &end)| {
                let edges = &self.edges[first..end as usize];
                first = end as usize;
                (id, op, edges)
            })
    }

    /// What operation `id` waits for.
    #[inline]
    pub fn after(&self, id: u32) -> &[Edge] {
        let (start, end) = (
            self.edge_start[id as usize],
            self.edge_start[id as usize + 1],
        );
        &self.edges[start as usize..end as usize]
    }

    /// What `edge` tells `waiter`, the initiator of the waiting operation; `None` where it cannot
    /// see the completion by itself.
    #[inline]
    pub fn completion(&self, edge: Edge, waiter: u32) -> Option<Completion> {
        let op = &self.ops[edge.op() as usize];
        if matches!(op.kind, OpKind::Put | OpKind::Notice) && !edge.is_acknowledged() {
            return match op.to == waiter {
                true => Some(Completion::Delivered),
                false => (op.from == waiter).then_some(Completion::SourceFree),
            };
        }
        self.rarer_completion(op, edge, waiter)
    }

    /// The same of an acknowledgement, or of an operation that is no put and no notice.
    fn rarer_completion(&self, op: &Op, edge: Edge, waiter: u32) -> Option<Completion> {
        let targets = match op.kind {
            OpKind::Multicast | OpKind::Aggregate if !edge.is_acknowledged() => self.targets(op),
            _ => return (op.initiator() == waiter).then_some(Completion::Delivered),
        };
        if op.kind == OpKind::Aggregate {
            let known = match targets.len() {
                1 => Completion::Delivered,
                _ => Completion::CombinedHere,
            };
            return targets.contains(&waiter).then_some(known);
        }
        // A source that is among its own targets waits as the source.
        match op.from == waiter {
            true => Some(Completion::SourceFree),
            false => targets
                .contains(&waiter)
                .then_some(Completion::DeliveredHere),
        }
    }

    /// Number of steps: runs of operations with the same step number.
    pub fn step_count(&self) -> usize {
        self.ops.chunk_by(|a, b| a.step == b.step).count()
    }

    /// Number of edges.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// Buffer `id`.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// The ranks that have a block of each class of an uneven exchange at the start.
    pub fn holders(&self) -> Holders {
        let input = self.buffer_named("input").map(|id| self.buffer(id));
        Holders::of(input.filter(|_| self.spec.collective.is_uneven()))
    }

    /// The buffer called `name`.
    pub fn buffer_named(&self, name: &str) -> Option<BufferId> {
        let index = self.buffers.iter().position(|b| b.name == name)?;
        Some(BufferId(index as u8))
    }

    /// Number of chunk ranges of an operation: 0 where it moves no data, else at least 1.
    #[inline]
    pub fn range_count(&self, op: &Op) -> u32 {
        match (op.moves_data(), op.scattered) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => op.count,
        }
    }

    /// Chunk range `index` of an operation: (first source chunk, first destination chunk, count).
    #[inline]
    pub fn range_at(&self, op: &Op, index: u32) -> (u32, u32, u32) {
        match op.scattered {
            false => (op.src, op.dst, op.count),
            true => self.ranges[(op.src + index) as usize],
        }
    }

    /// All chunk ranges of an operation; see [`Schedule::range_at`].
    pub fn chunk_ranges<'a>(&'a self, op: &'a Op) -> impl Iterator<Item = (u32, u32, u32)> + 'a {
        (0..self.range_count(op)).map(move |index| self.range_at(op, index))
    }

    /// Participants whose data an operation takes: the set of an aggregation, else the one participant.
    #[inline]
    pub fn sources<'a>(&'a self, op: &'a Op) -> &'a [u32] {
        match op.kind {
            OpKind::Aggregate => &self.sets[self.aggregations[op.to as usize].0 as usize],
            _ => std::slice::from_ref(&op.from),
        }
    }

    /// Destinations of an operation: the set of a multicast or an aggregation, else the one participant.
    #[inline]
    pub fn targets<'a>(&'a self, op: &'a Op) -> &'a [u32] {
        match op.kind {
            OpKind::Multicast => &self.sets[op.to as usize],
            OpKind::Aggregate => &self.sets[self.aggregations[op.to as usize].1 as usize],
            _ => std::slice::from_ref(&op.to),
        }
    }

    /// Elements that an operation moves.
    pub fn op_elements(&self, op: &Op) -> u64 {
        if !op.moves_data() {
            return 0;
        }
        let buffer = self.buffer(op.src_buffer);
        self.chunk_ranges(op)
            .map(|(src, _, count)| {
                let span = buffer.span(self.elements, src..src + count);
                span.end - span.start
            })
            .sum()
    }

    /// Bytes that an operation moves; 0 for notices.
    pub fn op_bytes(&self, op: &Op) -> u64 {
        self.op_elements(op) * u64::from(self.element_bytes)
    }

    /// Bytes that each participant gives to others, ranks first; a multicast counts once for each target, an
    /// aggregation once for each source.
    pub fn sent_bytes(&self) -> Vec<u64> {
        let mut sent = vec![0; (self.ranks + self.memories) as usize];
        for op in self.ops().iter().filter(|op| op.is_message()) {
            let targets = self.targets(op);
            for &from in self.sources(op) {
                let others = targets.iter().filter(|&&to| to != from).count();
                let copies = match op.kind {
                    OpKind::Aggregate => others.min(1),
                    _ => others,
                };
                sent[from as usize] += copies as u64 * self.op_bytes(op);
            }
        }
        sent
    }

    /// Contiguous runs at the destination; 0 for a message without chunks.
    pub fn op_runs(&self, op: &Op) -> u32 {
        match op.scattered {
            true => op.count,
            false => u32::from(op.moves_data() && op.count > 0),
        }
    }

    /// Work of a compute in operations, 0 for everything else.
    pub fn op_work(&self, op: &Op) -> u64 {
        match op.kind {
            OpKind::Compute => self.work[op.count as usize],
            _ => 0,
        }
    }

    /// Whether there is any operation of a kind.
    pub fn has(&self, kind: OpKind) -> bool {
        // A schedule may have a hundred million operations; most have no sets.
        let of_a_set = matches!(
            kind,
            OpKind::Multicast | OpKind::Aggregate | OpKind::Barrier
        );
        let possible = !of_a_set || !self.sets.is_empty();
        possible && self.ops.iter().any(|op| op.kind == kind)
    }

    /// Whether there is any compute.
    pub fn computes(&self) -> bool {
        !self.work.is_empty()
    }

    /// Bytes of the whole message size S of the collective, as printed in `size_bytes`.
    pub fn size_bytes(&self) -> u64 {
        self.elements * u64::from(self.element_bytes)
    }

    /// Number of messages: transfers, multicasts and aggregations (one each), and notices.
    pub fn message_count(&self) -> usize {
        self.ops.iter().filter(|op| op.is_message()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_beyond_32_bits_are_an_error() {
        assert_eq!(edge_end(u32::MAX as usize), Ok(u32::MAX));
        let error = edge_end(1 << 32).unwrap_err().to_string();
        assert!(
            error.contains("more than 4294967295 operations, waits"),
            "{error}"
        );
    }

    #[test]
    fn a_record_is_32_bytes() {
        assert_eq!(std::mem::size_of::<Op>(), 32);
    }
}
