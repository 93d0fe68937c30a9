//! Writing a program: what rank 0 sends at this step and to whom; all other ranks do the same.

use super::Group;
use crate::builder::{list_runs, operation, Chunks, Shape, Slot};
use crate::error::Result;
use crate::ir::{ranges_of, Buffer, BufferId, Combine, Hint, Op, OpKind};
use crate::spec::{Collective, Spec};

/// What every rank does, in the coordinates of rank 0.
///
/// Operations are those of a schedule, with these meanings: `to` counts steps of the group from the
/// rank that acts, chunks of relative buffers are seen from the rank that has them, and a hint names an axis along
/// which the message goes, upwards to a higher rank and downwards to a lower one.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) spec: Spec,
    pub(super) group: Group,
    pub(super) elements: u64,
    pub(super) element_bytes: u32,
    pub(super) buffers: Vec<Buffer>,
    /// Whether the chunks of each buffer turn with the rank.
    pub(super) relative: Vec<bool>,
    pub(super) ops: Vec<Op>,
    /// (source chunk, destination chunk, count) of scattered operations.
    pub(super) ranges: Vec<(u32, u32, u32)>,
    pub(super) step: u32,
}

/// Options of the operation just written.
pub struct Written<'a>(&'a mut Op);

impl Written<'_> {
    /// Combine with what is there instead of overwriting it.
    pub fn reduce(self) -> Self {
        self.0.combine = Combine::Reduce;
        self
    }

    /// Wait for everything earlier of the rank, as behind a fence; so does what comes later.
    pub fn fenced(self) -> Self {
        self.0.fenced = true;
        self
    }

    /// Prefer this direction, if the peer is a higher rank, otherwise the opposite.
    pub fn hint(self, hint: Hint) -> Self {
        self.0.hint = hint;
        self
    }
}

impl Program {
    /// Start a program for `collective` over the ranks of `shape`.
    pub fn new(collective: Collective, shape: &Shape, group: Group) -> Result<Self> {
        shape.check()?;
        let elements = match collective.is_blocked() {
            true => shape.elements / u64::from(shape.ranks) * u64::from(shape.ranks),
            false => shape.elements,
        };
        Ok(Program {
            spec: Spec::new(collective, shape.root),
            group,
            elements,
            element_bytes: shape.element_bytes,
            buffers: Vec::new(),
            relative: Vec::new(),
            ops: Vec::new(),
            ranges: Vec::new(),
            step: 0,
        })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.group.ranks()
    }

    /// Declare a buffer of one block per rank, whose chunks each rank counts from its own block on.
    pub fn relative(&mut self, name: &str) -> Slot {
        let buffer = Buffer::vector(name, self.ranks());
        self.buffer(buffer, true)
    }

    /// The same without bytes: its chunks are tokens.
    pub fn tokens(&mut self, name: &str) -> Slot {
        let buffer = Buffer::vector(name, self.ranks()).empty();
        self.buffer(buffer, true)
    }

    /// Declare a buffer of the vector in `blocks` blocks, which all ranks count alike.
    pub fn absolute(&mut self, name: &str, blocks: u32) -> Slot {
        self.buffer(Buffer::vector(name, blocks), false)
    }

    fn buffer(&mut self, buffer: Buffer, relative: bool) -> Slot {
        self.buffers.push(buffer);
        self.relative.push(relative);
        Slot(BufferId(self.buffers.len() as u8 - 1))
    }

    /// Begin the next step: simultaneous, as in [`crate::Builder`].
    pub fn step(&mut self) {
        self.step += 1;
    }

    /// Push a chunk to the rank `ahead`; `dst` is seen from here, too.
    pub fn put(&mut self, src: Chunks, ahead: u32, dst: Chunks) -> Written<'_> {
        let start = self.chunk_at(dst.buffer, dst.start, self.group.back(ahead));
        let dst = Chunks { start, ..dst };
        self.write(OpKind::Put, ahead, src, dst, false)
    }

    /// Push the same blocks of `src` and `dst` to the rank `ahead` in one message.
    pub fn put_blocks(&mut self, src: Slot, ahead: u32, dst: Slot, blocks: &[u32]) -> Written<'_> {
        let back = self.group.back(ahead);
        let run = |&block: &u32| (block, self.chunk_at(dst.0, block, back), 1);
        let runs: Vec<_> = blocks.iter().map(run).collect();
        self.scattered(OpKind::Put, src, ahead, dst, &runs)
    }

    /// Copy chunks within the rank.
    pub fn local(&mut self, src: Chunks, dst: Chunks) -> Written<'_> {
        self.write(OpKind::Local, 0, src, dst, false)
    }

    /// Copy runs (first source chunk, first destination chunk, count) within the rank.
    pub fn local_runs(&mut self, src: Slot, dst: Slot, runs: &[(u32, u32, u32)]) -> Written<'_> {
        self.scattered(OpKind::Local, src, 0, dst, runs)
    }

    fn scattered(
        &mut self,
        kind: OpKind,
        src: Slot,
        ahead: u32,
        dst: Slot,
        runs: &[(u32, u32, u32)],
    ) -> Written<'_> {
        let first = list_runs(&mut self.ranges, runs.iter().copied()) as u32;
        let listed = first..self.ranges.len() as u32;
        self.write(
            kind,
            ahead,
            src.range(listed.clone()),
            dst.range(listed),
            true,
        )
    }

    fn write(
        &mut self,
        kind: OpKind,
        to: u32,
        src: Chunks,
        dst: Chunks,
        scattered: bool,
    ) -> Written<'_> {
        self.ops.push(Op {
            step: self.step,
            scattered,
            ..operation(kind, 0, src, to, dst)
        });
        Written(self.ops.last_mut().expect("just written"))
    }

    /// Chunk ranges of an operation: (first source chunk, first destination chunk, count).
    #[inline]
    pub(super) fn ranges_of<'a>(
        &'a self,
        op: &'a Op,
    ) -> impl Iterator<Item = (u32, u32, u32)> + 'a {
        ranges_of(op, &self.ranges)
    }

    /// What `rank` sees as chunk `chunk` of a buffer.
    #[inline]
    pub(super) fn chunk_at(&self, buffer: BufferId, chunk: u32, rank: u32) -> u32 {
        match self.relative[buffer.0 as usize] {
            true => self.group.act(rank, chunk),
            false => chunk,
        }
    }

    /// The contiguous runs of `op` as `rank` has them. They ascend, unless it moves chunks to other
    /// places within the rank: then they keep their order.
    pub(super) fn runs_at(&self, op: &Op, rank: u32) -> Vec<(u32, u32, u32)> {
        let (mut pairs, to) = (Vec::new(), self.group.act(rank, op.to));
        for (src, dst, count) in self.ranges_of(op) {
            pairs.extend((0..count).map(|k| {
                let read = self.chunk_at(op.src_buffer, src + k, rank);
                (read, self.chunk_at(op.dst_buffer, dst + k, to))
            }));
        }
        if op.is_message() || pairs.iter().all(|(src, dst)| src == dst) {
            pairs.sort_unstable();
        }
        let mut runs = Vec::new();
        list_runs(&mut runs, pairs.into_iter().map(|(src, dst)| (src, dst, 1)));
        runs
    }

    /// Whether what one rank writes by `op`, a single chunk, another reads by it.
    pub(super) fn meets_itself(&self, op: &Op) -> bool {
        op.to != 0 && (op.src_buffer, op.src) == (op.dst_buffer, op.dst)
    }

    /// Whether `op` is one chunk.
    #[inline]
    pub(super) fn is_one_chunk(&self, op: &Op) -> bool {
        !op.scattered && op.count == 1
    }
}

/// The hint of a message from `from` to `to`, where the program names an axis.
pub(super) fn hint_at(hint: Hint, from: u32, to: u32) -> Hint {
    match to < from {
        true => hint.opposite(),
        false => hint,
    }
}
