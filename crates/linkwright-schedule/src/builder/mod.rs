//! Writing a schedule: at this step, who sends which chunks to whom.
//!
//! ```
//! use linkwright_schedule::builder::{Builder, Shape};
//! use linkwright_schedule::ir::Buffer;
//! use linkwright_schedule::spec::Collective;
//!
//! // Everyone adds its vector to everyone else's: an allreduce over two ranks.
//! let mut b = Builder::new(Collective::Allreduce, &Shape::new(2, 1024));
//! let data = b.buffer(Buffer::vector("output", 1));
//! b.step();
//! b.put(0, data.at(0), 1, data.at(0)).reduce();
//! b.put(1, data.at(0), 0, data.at(0)).reduce();
//! let schedule = b.finish().unwrap();
//! assert_eq!(schedule.buffers.len(), 2); // `output` and the scratch that the exchange needs
//! ```
//!
//! A step is simultaneous: all its operations read the state before it. Where an operation writes
//! a chunk that another operation of the same step reads, or that another one writes too (both
//! reducing), the builder sends it to scratch and adds a local operation that moves it from there.
//! Order between steps, notices and the reuse of scratch follow from hazards; see [`crate::order`]. Scratch
//! that is reused must be ready; see [`Builder::own_scratch`].

mod chunks;
mod shape;
mod step;

use crate::error::{Result, ScheduleError};
use crate::ir::{Buffer, BufferId, Combine, Hint, Op, OpKind, Schedule, MAX_BUFFERS};
use crate::order::{check, Orderer};
use crate::spec::{Collective, Spec};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
pub(crate) use step::into_place;
use step::Conflicts;

pub(crate) use chunks::{list_runs, operation};
pub use chunks::{Chunks, Slot};
pub(crate) use shape::by;
pub use shape::Shape;

/// Most operations that one schedule may be written with: some 10 GB while it is ordered.
pub(crate) const MAX_WRITTEN: usize = 1 << 27;

/// Most bytes of scratch by which a rank spares its partners the wait until other scratch is ready.
pub const OWN_SCRATCH_BYTES: u64 = 16 << 20;

/// Most chunks of such scratch, of all ranks together: a proof follows each of them.
const OWN_SCRATCH_CHUNKS: u64 = 1 << 27;

/// Most scratch buffers that as many arrivals at one chunk may take.
const MOST_LAYERS: u64 = 64;

/// Options of the operation just written.
pub struct Written<'a> {
    builder: &'a mut Builder,
}

impl Written<'_> {
    /// Combine with what is there instead of overwriting it.
    pub fn reduce(self) -> Self {
        self.change(|op| op.combine = Combine::Reduce)
    }

    /// Issue in this lane of the initiator; default 0, of local operations [`crate::ir::COMPUTE_LANE`].
    pub fn lane(self, lane: u8) -> Self {
        self.change(|op| op.lane = lane)
    }

    /// Prefer this direction.
    pub fn hint(self, hint: Hint) -> Self {
        self.change(|op| op.hint = hint)
    }

    /// Wait for everything earlier of the initiator, as behind a fence; so does what comes later.
    pub fn fenced(self) -> Self {
        self.change(|op| op.fenced = true)
    }

    /// Wait for an operation of an earlier step, besides the hazards.
    pub fn after(self, earlier: u32) -> Self {
        let this = self.builder.written() - 1;
        self.builder.waits.push((this, earlier));
        self
    }

    /// Position of this operation, for [`Written::after`].
    pub fn position(self) -> u32 {
        let this = self.builder.written() - 1;
        self.builder.named.push((this, this));
        this
    }

    #[inline]
    fn change(self, change: impl FnOnce(&mut Op)) -> Self {
        let written = self.builder.orderer.out.ops.last_mut();
        change(written.expect("an operation was just written"));
        self
    }
}

/// Collects the operations of a schedule, step by step.
pub struct Builder {
    /// The schedule so far, in order, and behind it the operations of the current step as written.
    orderer: Orderer,
    step: u32,
    /// Operations written in the steps before.
    written_before: u32,
    /// Operations that explicit waits may name: the position that the author knows, and where the effect
    /// comes among what is ordered, once the step is closed.
    named: Vec<(u32, u32)>,
    /// Explicit waits of the current step, by the positions that the author knows.
    waits: Vec<(u32, u32)>,
    conflicts: Conflicts,
    sets: Places<Vec<u32>>,
    pairs: Places<(u32, u32)>,
    error: Option<ScheduleError>,
}

impl Builder {
    /// Start a schedule for `collective` over `shape`.
    ///
    /// Where S counts equal blocks per rank, the elements are rounded down to a multiple of the
    /// ranks, as nccl-tests does.
    pub fn new(collective: Collective, shape: &Shape) -> Self {
        let ranks = u64::from(shape.ranks.max(1));
        let elements = match collective.is_blocked() {
            true => shape.elements / ranks * ranks,
            false => shape.elements,
        };
        let spec = Spec::new(collective, shape.root);
        let draft = Schedule::empty(spec, shape.ranks, elements, shape.element_bytes);
        Builder {
            orderer: Orderer::new(draft),
            step: 0,
            written_before: 0,
            named: Vec::new(),
            waits: Vec::new(),
            conflicts: Conflicts::default(),
            sets: Places::default(),
            pairs: Places::default(),
            error: shape.check().err(),
        }
    }

    /// Let `input` hold the data at the start and `output` nothing, also of collectives that are usually in place.
    pub fn out_of_place(&mut self) {
        self.orderer.out.spec.out_of_place = true;
    }

    /// Let every contribution land in scratch of its own, as long as a rank's scratch stays within
    /// [`OWN_SCRATCH_BYTES`].
    ///
    /// By default there is one scratch buffer, and a partner of a later step waits for the notice that it is
    /// ready again; so does one that combines into what another rank has combined into before. With scratch of
    /// its own, a rank waits for data alone. Beyond the limit, or with more than 2^27 chunks of scratch
    /// over all ranks, the buffers are reused in turn. Call it once the buffers are declared.
    pub fn own_scratch(&mut self) {
        let out = &self.orderer.out;
        let chunks: u64 = out.buffers.iter().map(|b| u64::from(b.chunks())).sum();
        let room = OWN_SCRATCH_BYTES / out.size_bytes().max(1);
        let provable = OWN_SCRATCH_CHUNKS / (chunks * u64::from(out.ranks)).max(1);
        self.conflicts.own_layers = room.min(provable).min(MOST_LAYERS) as u32;
    }

    /// Add a passive memory; returns its participant number.
    pub fn memory(&mut self) -> u32 {
        self.orderer.out.memories += 1;
        self.orderer.out.ranks + self.orderer.out.memories - 1
    }

    /// Declare a buffer.
    pub fn buffer(&mut self, buffer: Buffer) -> Slot {
        let id = self.orderer.out.buffers.len();
        if id >= MAX_BUFFERS {
            self.fail(ScheduleError::TooLarge(MAX_BUFFERS as u64));
        } else if buffer.blocks == 0 || buffer.slices == 0 || buffer.div == 0 {
            self.fail(ScheduleError::Shape(format!(
                "buffer {}: 0 blocks, slices or parts; at least 1 of each is needed",
                buffer.name
            )));
        }
        self.orderer.out.buffers.push(buffer);
        Slot(BufferId(id.min(255) as u8))
    }

    /// Begin the next step.
    pub fn step(&mut self) {
        self.close_step();
        self.step += 1;
    }

    /// Give the step just begun the number of an author, as traces show it.
    pub fn number(&mut self, step: u32) {
        self.step = step;
    }

    /// `from` pushes chunks to `to`.
    pub fn put(&mut self, from: u32, src: Chunks, to: u32, dst: Chunks) -> Written<'_> {
        self.transfer(OpKind::Put, from, src, to, dst)
    }

    /// `to` pulls chunks from `from`.
    pub fn get(&mut self, from: u32, src: Chunks, to: u32, dst: Chunks) -> Written<'_> {
        self.transfer(OpKind::Get, from, src, to, dst)
    }

    /// `from` pushes the same blocks of `src` and `dst` in one message; `blocks` may be scattered
    /// and must ascend.
    pub fn put_blocks(
        &mut self,
        from: u32,
        src: Slot,
        to: u32,
        dst: Slot,
        blocks: &[u32],
    ) -> Written<'_> {
        self.scattered(OpKind::Put, from, src, to, dst, same(blocks))
    }

    /// `to` pulls the same blocks; see [`Builder::put_blocks`].
    pub fn get_blocks(
        &mut self,
        from: u32,
        src: Slot,
        to: u32,
        dst: Slot,
        blocks: &[u32],
    ) -> Written<'_> {
        self.scattered(OpKind::Get, from, src, to, dst, same(blocks))
    }

    /// `from` pushes runs (first source chunk, first destination chunk, count) in one message.
    pub fn put_runs(
        &mut self,
        from: u32,
        src: Slot,
        to: u32,
        dst: Slot,
        runs: &[(u32, u32, u32)],
    ) -> Written<'_> {
        self.scattered(OpKind::Put, from, src, to, dst, runs.iter().copied())
    }

    /// `to` pulls runs (first source chunk, first destination chunk, count) in one message.
    pub fn get_runs(
        &mut self,
        from: u32,
        src: Slot,
        to: u32,
        dst: Slot,
        runs: &[(u32, u32, u32)],
    ) -> Written<'_> {
        self.scattered(OpKind::Get, from, src, to, dst, runs.iter().copied())
    }

    /// `rank` copies runs (first source chunk, first destination chunk, count) of its own.
    pub fn local_runs(
        &mut self,
        rank: u32,
        src: Slot,
        dst: Slot,
        runs: &[(u32, u32, u32)],
    ) -> Written<'_> {
        self.scattered(OpKind::Local, rank, src, rank, dst, runs.iter().copied())
    }

    /// `from` pushes chunks to all of `targets`, into the same chunks of each.
    pub fn multicast(
        &mut self,
        from: u32,
        src: Chunks,
        targets: &[u32],
        dst: Chunks,
    ) -> Written<'_> {
        let set = self.set(targets);
        self.transfer(OpKind::Multicast, from, src, set, dst)
    }

    /// The same chunks of all of `sources` are combined on the way and arrive at all of `targets`, in the same
    /// chunks of each, where they replace what is there; with `.reduce()` they are combined into it. A participant
    /// may be on both sides, also in place. The first of `targets` initiates it.
    pub fn aggregate(
        &mut self,
        sources: &[u32],
        src: Chunks,
        targets: &[u32],
        dst: Chunks,
    ) -> Written<'_> {
        if sources.is_empty() || targets.is_empty() {
            let problem = "an aggregation without sources or targets; name one of each".into();
            let step = self.step;
            self.fail(ScheduleError::Operation { step, problem });
        }
        let sets = (self.set(sources), self.set(targets));
        let pair = (self.pairs).enter(&mut self.orderer.out.aggregations, &sets);
        let initiator = targets.first().copied().unwrap_or(0);
        self.transfer(OpKind::Aggregate, initiator, src, pair, dst)
    }

    /// `rank` copies chunks of its own; with `.reduce()` it combines them.
    pub fn local(&mut self, rank: u32, src: Chunks, dst: Chunks) -> Written<'_> {
        self.transfer(OpKind::Local, rank, src, rank, dst)
    }

    /// `rank` computes `operations` arithmetic operations.
    pub fn compute(&mut self, rank: u32, operations: u64) -> Written<'_> {
        let index = self.orderer.out.work.len() as u32;
        self.orderer.out.work.push(operations);
        self.control(OpKind::Compute, rank, rank, index)
    }

    /// No rank of `ranks` continues until all of them have arrived here.
    pub fn barrier(&mut self, ranks: &[u32]) {
        self.step();
        let set = self.set(ranks);
        for &rank in ranks {
            self.control(OpKind::Barrier, rank, set, 0);
        }
        self.step();
    }

    /// Everything earlier of `rank` is complete before anything later of it starts.
    pub fn fence(&mut self, rank: u32) {
        self.step();
        self.control(OpKind::Fence, rank, rank, 0);
        self.step();
    }

    /// Find the hazards and close the schedule; the first mistake made while writing ends here.
    pub fn finish(mut self) -> Result<Schedule> {
        self.close_step();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.orderer.finish()),
        }
    }

    /// Check the operations of the step, resolve their conflicts, order them.
    fn close_step(&mut self) {
        if self.error.is_some() {
            return;
        }
        if let Err(error) = self.order_step() {
            self.fail(error);
        }
    }

    fn order_step(&mut self) -> Result<()> {
        let (first, written) = (self.orderer.ordered(), self.written());
        for op in &self.orderer.out.ops[first..] {
            check(&self.orderer.out, op)?;
        }
        let meet = self.orderer.pending_meet();
        let follow = self.conflicts.own_layers > 0 && self.orderer.pending_follow();
        let moved = match meet || follow {
            true => self.conflicts.resolve(&mut self.orderer, meet)?,
            false => Vec::new(),
        };
        if !self.named.is_empty() || !self.waits.is_empty() {
            self.explicit_waits(&moved);
        }
        self.written_before = written;
        self.orderer.order_pending()
    }

    /// Tell the orderer of the explicit waits of the step.
    fn explicit_waits(&mut self, moved: &[(u32, u32)]) {
        let (before, place) = (self.written_before, self.orderer.position());
        let effect = |this: u32| {
            let k = this - before;
            let last = moved.iter().rev().find(|moved| moved.0 == k);
            last.map_or(place + k, |moved| moved.1)
        };
        let new = self.named.partition_point(|named| named.0 < before);
        for named in &mut self.named[new..] {
            named.1 = effect(named.0);
        }
        let positions = self.named[new..].iter().map(|named| named.1);
        self.orderer.name(positions.collect());
        let named = &self.named;
        let waits = self.waits.drain(..).map(|(this, earlier)| {
            let at = named.binary_search_by_key(&earlier, |named| named.0);
            let at = at.expect("an author waits for a position that was asked for");
            (effect(this), named[at].1)
        });
        self.orderer.wait(waits.collect());
    }

    /// Operations written so far.
    fn written(&self) -> u32 {
        let pending = self.orderer.out.ops.len() - self.orderer.ordered();
        self.written_before + pending as u32
    }

    fn set(&mut self, members: &[u32]) -> u32 {
        self.sets.enter(&mut self.orderer.out.sets, members)
    }

    fn fail(&mut self, error: ScheduleError) {
        self.error.get_or_insert(error);
    }

    fn control(&mut self, kind: OpKind, from: u32, to: u32, count: u32) -> Written<'_> {
        let none = Chunks {
            buffer: BufferId(0),
            start: 0,
            count,
        };
        self.transfer(kind, from, none, to, none)
    }

    fn transfer(
        &mut self,
        kind: OpKind,
        from: u32,
        src: Chunks,
        to: u32,
        dst: Chunks,
    ) -> Written<'_> {
        if src.count != dst.count {
            let problem = format!(
                "{} chunks are sent into {}; make them equal",
                src.count, dst.count
            );
            self.fail(ScheduleError::Operation {
                step: self.step,
                problem,
            });
        }
        if self.orderer.out.ops.len() >= MAX_WRITTEN {
            self.fail(ScheduleError::TooLarge(MAX_WRITTEN as u64));
        }
        if self.error.is_some() {
            // The schedule is refused anyway; the author's loop must not fill the memory meanwhile.
            let ordered = self.orderer.ordered();
            self.orderer.out.ops.truncate(ordered);
        }
        self.orderer.out.ops.push(Op {
            step: self.step,
            ..operation(kind, from, src, to, dst)
        });
        Written { builder: self }
    }

    fn scattered(
        &mut self,
        kind: OpKind,
        from: u32,
        src: Slot,
        to: u32,
        dst: Slot,
        runs: impl Iterator<Item = (u32, u32, u32)>,
    ) -> Written<'_> {
        let first = list_runs(&mut self.orderer.out.ranges, runs);
        let runs = self.orderer.out.ranges.len() - first;
        if runs <= 1 {
            let (a, b, n) = self.orderer.out.ranges[first..]
                .first()
                .copied()
                .unwrap_or((0, 0, 0));
            self.orderer.out.ranges.truncate(first);
            return self.transfer(kind, from, src.range(a..a + n), to, dst.range(b..b + n));
        }
        let listed = Chunks {
            buffer: src.0,
            start: first as u32,
            count: runs as u32,
        };
        let written = self.transfer(
            kind,
            from,
            listed,
            to,
            Chunks {
                buffer: dst.0,
                ..listed
            },
        );
        written.change(|op| op.scattered = true)
    }
}

/// The same blocks of source and destination, as runs.
fn same(blocks: &[u32]) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
    blocks.iter().map(|&block| (block, block, 1))
}

/// The places of the values of a table, in which each is entered once.
pub(crate) struct Places<T>(HashMap<T, u32>);

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places(HashMap::new())
    }
}

impl<T: Clone + Eq + Hash> Places<T> {
    /// The place of `value` in `table`, where it is entered if it is new.
    pub fn enter<Q>(&mut self, table: &mut Vec<T>, value: &Q) -> u32
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = T> + ?Sized,
    {
        if let Some(&known) = self.0.get(value) {
            return known;
        }
        let place = table.len() as u32;
        table.push(value.to_owned());
        self.0.insert(value.to_owned(), place);
        place
    }
}

/// Write the operations of `draft` again, step by step, with a builder that is told how.
pub(crate) fn rewrite(mut draft: Schedule, how: impl FnOnce(&mut Builder)) -> Result<Schedule> {
    let shape = Shape::new(draft.ranks, draft.elements).with_root(draft.spec.root);
    let mut b = Builder::new(draft.spec.collective, &shape);
    let ops = std::mem::take(&mut draft.ops);
    b.orderer = Orderer::new(draft);
    how(&mut b);
    b.orderer.expect_fences(&ops);
    for op in ops {
        if op.step != b.step {
            b.close_step();
            b.step = op.step;
        }
        b.orderer.out.ops.push(op);
    }
    b.finish()
}
