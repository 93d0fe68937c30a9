//! A folded schedule: the operations of one rank, each of which represents one operation of every rank.
//!
//! *Instance* (k, e) is operation k of the rank at offset e. Offsets count from the observing rank; for
//! the rank at offset x, (k, e) is (k, back(x) e).

use super::program::Program;
use super::Group;
use crate::ir::{BufferId, Completion, Edge, Op, Schedule};

/// An operation, and the offset of the rank that performs it.
pub(super) type Instance = (u32, u32);

/// "Wait for operation `op` of the rank at offset `rank`."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    op: u32,
    rank: u32,
}

const ACKNOWLEDGED: u32 = 1 << 31;

impl Wait {
    /// Until the part that concerns the waiter is done: delivered at a target, source free at a source.
    pub(super) fn on(op: u32, rank: u32) -> Self {
        Wait { op, rank }
    }

    /// Until the waiter knows that its own `op` is delivered.
    pub(super) fn acknowledged(op: u32) -> Self {
        let op = op | ACKNOWLEDGED;
        Wait { op, rank: 0 }
    }

    /// The same wait for another operation.
    pub(super) fn with_op(self, op: u32) -> Self {
        let op = (self.op & ACKNOWLEDGED) | op;
        Wait { op, ..self }
    }

    /// The operation waited for.
    #[inline]
    pub(super) fn op(self) -> u32 {
        self.op & !ACKNOWLEDGED
    }

    /// The same wait for operation `id` of a schedule.
    #[inline]
    pub(super) fn edge(self, id: u32) -> Edge {
        match self.is_acknowledged() {
            true => Edge::acknowledged(id),
            false => Edge::on(id),
        }
    }

    /// Offset of the rank that performs it.
    #[inline]
    pub(super) fn rank(self) -> u32 {
        self.rank
    }

    /// Whether the acknowledgement is waited for, not only a free source.
    #[inline]
    pub(super) fn is_acknowledged(self) -> bool {
        self.op & ACKNOWLEDGED != 0
    }
}

/// One rank's part of a schedule in which all ranks do the same, with its waits.
///
/// Its operations are those of a [`Program`] with one more meaning: `from` says which rank comes first
/// in the order of ids. Operation k has the ids k p + i over all ranks, and the rank at offset i from
/// `from` performs id k p + i.
#[derive(Clone, Debug)]
pub struct Folded {
    pub(super) program: Program,
    pub(super) wait_start: Vec<u32>,
    pub(super) waits: Vec<Wait>,
}

impl Folded {
    /// Number of ranks for which one stands.
    pub(super) fn ranks(&self) -> u32 {
        self.program.ranks()
    }

    /// How ranks see each other.
    pub(super) fn group(&self) -> Group {
        self.program.group
    }

    /// The operations of one rank, in the order in which it issues them.
    #[inline]
    pub(super) fn ops(&self) -> &[Op] {
        &self.program.ops
    }

    /// What operation `k` waits for.
    #[inline]
    pub(super) fn after(&self, k: u32) -> &[Wait] {
        let (start, end) = (self.wait_start[k as usize], self.wait_start[k as usize + 1]);
        &self.waits[start as usize..end as usize]
    }

    /// The rank that performs `op` for the `i`-th time.
    #[inline]
    pub(super) fn performer(&self, op: &Op, i: u32) -> u32 {
        match op.from {
            0 => i,
            turn => self.group().act(i, turn),
        }
    }

    /// What `wait` tells the rank that waits; `None` where it cannot see the completion.
    #[inline]
    pub(super) fn completion(&self, wait: Wait) -> Option<Completion> {
        let op = &self.ops()[wait.op() as usize];
        let own = wait.rank() == 0;
        if wait.is_acknowledged() || !op.is_message() {
            return own.then_some(Completion::Delivered);
        }
        match self.group().act(wait.rank(), op.to) == 0 {
            true => Some(Completion::Delivered),
            false => own.then_some(Completion::SourceFree),
        }
    }

    /// The id of an instance in the schedule over all ranks, where rank 0 stands at rank 0.
    pub(super) fn id(&self, (k, rank): Instance) -> u32 {
        let first = self.group().back(self.ops()[k as usize].from);
        k * self.ranks() + self.group().act(rank, first)
    }

    /// What tells one rank from another, and the cure; `by_runs` where the runs of a message matter.
    pub fn unequal(&self, by_runs: bool) -> Option<String> {
        let program = &self.program;
        let buffers = program.buffers.iter().zip(&program.relative);
        let even: Vec<bool> = buffers
            .map(|(b, turns)| !turns || b.elements(program.elements) % u64::from(b.chunks()) == 0)
            .collect();
        let alike = |op: &Op| !op.moves_data() || even[op.src_buffer.0 as usize];
        if !self.ops().iter().all(alike) {
            let step = u64::from(self.ranks()) * u64::from(program.element_bytes);
            let size = program.elements * u64::from(program.element_bytes);
            return Some(format!(
                "{size} bytes do not cut into {} equal chunks; use a multiple of {step} bytes, such as {}, \
                 or fewer ranks",
                self.ranks(),
                size.next_multiple_of(step)
            ));
        }
        let scattered = |op: &&Op| op.is_message() && !self.same_runs(op);
        if by_runs && self.ops().iter().any(|op| scattered(&op)) {
            return Some(
                "the chunks of a message are in more runs at some ranks than at others, and the path pays \
                 for each; use another path, or fewer ranks"
                    .to_string(),
            );
        }
        None
    }

    /// Whether the chunks of `op` are in as many runs at every rank: those of a coset of a cube are,
    /// those of an interval round a circle are not.
    fn same_runs(&self, op: &Op) -> bool {
        let turned = |id: BufferId| self.program.relative[id.0 as usize];
        if self.program.is_one_chunk(op) || !(turned(op.src_buffer) || turned(op.dst_buffer)) {
            return true;
        }
        if self.group().is_circle() || turned(op.src_buffer) != turned(op.dst_buffer) {
            return false;
        }
        let mut chunks = Vec::new();
        for (src, dst, count) in self.program.ranges_of(op) {
            if src != self.group().act(op.to, dst) {
                return false;
            }
            chunks.extend(src..src + count);
        }
        // A basis of the differences: a coset has as many members as sums of it.
        let mut basis: Vec<u32> = Vec::new();
        for &chunk in &chunks {
            let rest = (basis.iter()).fold(chunk ^ chunks[0], |rest, &b| rest.min(rest ^ b));
            if rest > 0 {
                basis.push(rest);
            }
        }
        chunks.len() == 1 << basis.len()
    }

    /// A schedule over the same ranks and buffers, without operations.
    pub(super) fn frame(&self) -> Schedule {
        let program = &self.program;
        Schedule {
            buffers: program.buffers.clone(),
            ..Schedule::empty(
                program.spec,
                program.ranks(),
                program.elements,
                program.element_bytes,
            )
        }
    }
}
