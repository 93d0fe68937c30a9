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
//! Order between steps, notices and the reuse of scratch follow from hazards; see [`crate::order`].

mod step;

use crate::error::{Result, ScheduleError};
use crate::ir::{
    Buffer, BufferId, Combine, Hint, Op, OpKind, Owner, Schedule, COMPUTE_LANE, MAX_RANKS,
};
use crate::order::{order, Draft};
use crate::spec::{Collective, Spec};
use linkwright_core::Participant;
use std::collections::HashMap;
use std::ops::Range;
use step::Marks;

/// Most operations that one schedule may be written with: some 10 GB while it is ordered.
const MAX_WRITTEN: usize = 1 << 27;

/// Most rings at once: each has a lane, besides the compute lane.
const MAX_RINGS: usize = 255;

/// What an algorithm is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of ranks, at least 1.
    pub ranks: u32,
    /// Root of rooted collectives.
    pub root: u32,
    /// Columns and rows of a 2-D arrangement; rank = row * columns + column.
    pub grid: Option<(u32, u32)>,
    /// Elements of one vector (S / element size).
    pub elements: u64,
    /// Bytes of one element.
    pub element_bytes: u32,
    /// Orders in which ring algorithms go round the ranks, each with its part of the vector; empty:
    /// rank order.
    pub rings: Vec<Vec<u32>>,
}

impl Shape {
    /// `ranks` ranks in a line, root 0, vectors of `elements` elements of 4 bytes.
    pub fn new(ranks: u32, elements: u64) -> Self {
        Shape {
            ranks,
            root: 0,
            grid: None,
            elements,
            element_bytes: 4,
            rings: Vec::new(),
        }
    }

    /// The same for ring algorithms that go round `rings`.
    pub fn with_rings(mut self, rings: Vec<Vec<u32>>) -> Self {
        self.rings = rings;
        self
    }

    /// The same with another root.
    pub fn with_root(mut self, root: u32) -> Self {
        self.root = root;
        self
    }

    /// The same on a grid of `columns` x `rows`.
    pub fn with_grid(mut self, columns: u32, rows: u32) -> Self {
        self.grid = Some((columns, rows));
        self
    }

    /// Check what no algorithm can serve: no ranks, a root outside, a grid of another size.
    pub fn check(&self) -> Result<()> {
        let error = |text: String| Err(ScheduleError::Shape(text));
        if self.ranks == 0 {
            return error("0 ranks; at least 1 is needed".into());
        }
        if self.ranks > MAX_RANKS {
            return error(format!(
                "{} ranks; at most {MAX_RANKS} are possible, use fewer",
                self.ranks
            ));
        }
        if self.root >= self.ranks {
            return error(format!(
                "root {} does not exist; ranks are 0..{}",
                self.root,
                self.ranks - 1
            ));
        }
        if self.element_bytes == 0 {
            return error("elements of 0 bytes; at least 1 is needed".into());
        }
        self.check_rings()?;
        match self.grid {
            Some((columns, rows))
                if u64::from(columns) * u64::from(rows) != u64::from(self.ranks) =>
            {
                error(format!(
                    "grid {columns}x{rows} has {} places for {} ranks; make them equal",
                    u64::from(columns) * u64::from(rows),
                    self.ranks
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Shape {
    /// Each ring visits each rank once.
    fn check_rings(&self) -> Result<()> {
        let error = |text: String| Err(ScheduleError::Shape(text));
        if self.rings.len() > MAX_RINGS {
            let rings = self.rings.len();
            return error(format!(
                "{rings} rings; at most {MAX_RINGS} are possible, use fewer"
            ));
        }
        let last = self.ranks - 1;
        for (index, ring) in self.rings.iter().enumerate() {
            let mut seen = vec![false; self.ranks as usize];
            for &rank in ring {
                let problem = match seen.get_mut(rank as usize) {
                    None => format!("rank {rank} does not exist"),
                    Some(true) => format!("rank {rank} stands there twice"),
                    Some(seen) => {
                        *seen = true;
                        continue;
                    }
                };
                return error(format!(
                    "ring {index}: {problem}; name each of 0..{last} once"
                ));
            }
            if let Some(rank) = seen.iter().position(|&seen| !seen) {
                return error(format!(
                    "ring {index} does not visit rank {rank}; name each of 0..{last} once"
                ));
            }
        }
        Ok(())
    }
}

impl Buffer {
    /// A buffer of the whole vector in `blocks` blocks, one per rank.
    pub fn vector(name: &str, blocks: u32) -> Self {
        Buffer {
            name: name.into(),
            owner: Owner::Ranks,
            mul: 1,
            div: 1,
            blocks,
            slices: 1,
        }
    }

    /// A buffer of one block, the vector's `ranks`-th part.
    pub fn block(name: &str, ranks: u32) -> Self {
        Buffer {
            name: name.into(),
            owner: Owner::Ranks,
            mul: 1,
            div: ranks,
            blocks: 1,
            slices: 1,
        }
    }

    /// The same buffer, at one participant only.
    pub fn only_at(mut self, participant: u32) -> Self {
        self.owner = Owner::One(Participant(participant));
        self
    }

    /// The same buffer without bytes: its chunks are tokens.
    pub fn empty(mut self) -> Self {
        self.mul = 0;
        self
    }
}

/// A buffer as an author addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub(crate) BufferId);

impl Slot {
    /// One chunk.
    pub fn at(self, chunk: u32) -> Chunks {
        self.range(chunk..chunk + 1)
    }

    /// Consecutive chunks.
    pub fn range(self, chunks: Range<u32>) -> Chunks {
        Chunks {
            buffer: self.0,
            start: chunks.start,
            count: chunks.end.saturating_sub(chunks.start),
        }
    }

    /// Identifier within the schedule.
    pub fn id(self) -> BufferId {
        self.0
    }
}

/// Consecutive chunks of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    pub(crate) buffer: BufferId,
    pub(crate) start: u32,
    pub(crate) count: u32,
}

/// Options of the operation just written.
pub struct Written<'a> {
    builder: &'a mut Builder,
}

impl Written<'_> {
    /// Combine with what is there instead of overwriting it.
    pub fn reduce(self) -> Self {
        self.change(|op| op.combine = Combine::Reduce)
    }

    /// Issue in this lane of the initiator; default 0, of local operations [`COMPUTE_LANE`].
    pub fn lane(self, lane: u8) -> Self {
        self.change(|op| op.lane = lane)
    }

    /// Prefer this way.
    pub fn hint(self, hint: Hint) -> Self {
        self.change(|op| op.hint = hint)
    }

    /// Wait for an operation of an earlier step, besides the hazards.
    pub fn after(self, earlier: u32) -> Self {
        let this = self.position();
        self.builder.waits.push((this, earlier));
        self
    }

    /// Position of this operation, for [`Written::after`].
    pub fn position(&self) -> u32 {
        (self.builder.position_of.len() + self.builder.pending.len()) as u32 - 1
    }

    fn change(self, change: impl FnOnce(&mut Op)) -> Self {
        change(
            self.builder
                .pending
                .last_mut()
                .expect("an operation was just written"),
        );
        self
    }
}

/// Collects the operations of a schedule, step by step.
pub struct Builder {
    draft: Draft,
    step: u32,
    /// Operations of the current step.
    pending: Vec<Op>,
    /// Position in the draft of every operation of the steps before, for explicit waits.
    position_of: Vec<u32>,
    waits: Vec<(u32, u32)>,
    marks: Marks,
    /// Scratch buffers made here: (buffer mirrored, layer) -> scratch.
    mirrors: HashMap<(BufferId, u32), BufferId>,
    scratch_layers: u32,
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
        let draft = Draft {
            spec: Spec {
                collective,
                root: shape.root,
                repeats: 1,
            },
            ranks: shape.ranks,
            memories: 0,
            elements,
            element_bytes: shape.element_bytes,
            buffers: Vec::new(),
            sets: Vec::new(),
            ops: Vec::new(),
            ranges: Vec::new(),
            work: Vec::new(),
            waits: Vec::new(),
        };
        Builder {
            draft,
            step: 0,
            pending: Vec::new(),
            position_of: Vec::new(),
            waits: Vec::new(),
            marks: Marks::default(),
            mirrors: HashMap::new(),
            scratch_layers: 1,
            error: shape.check().err(),
        }
    }

    /// Add a passive memory; returns its participant number.
    pub fn memory(&mut self) -> u32 {
        self.draft.memories += 1;
        self.draft.ranks + self.draft.memories - 1
    }

    /// Declare a buffer.
    pub fn buffer(&mut self, buffer: Buffer) -> Slot {
        let id = self.draft.buffers.len();
        if id >= 256 {
            self.fail(ScheduleError::TooLarge(256));
        } else if buffer.blocks == 0 || buffer.slices == 0 || buffer.div == 0 {
            self.fail(ScheduleError::Shape(format!(
                "buffer {}: 0 blocks, slices or parts; at least 1 of each is needed",
                buffer.name
            )));
        }
        self.draft.buffers.push(buffer);
        Slot(BufferId(id.min(255) as u8))
    }

    /// Use `layers` scratch copies in turn, one per step, so that a step need not wait until the
    /// scratch of the step before is free. Costs memory, saves notices.
    pub fn scratch_layers(&mut self, layers: u32) {
        self.scratch_layers = layers.max(1);
    }

    /// Begin the next step.
    pub fn step(&mut self) {
        self.close_step();
        self.step += 1;
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
        let runs = blocks.iter().map(|&block| (block, block, 1));
        self.scattered(OpKind::Put, from, src, to, dst, runs)
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
        let runs = blocks.iter().map(|&block| (block, block, 1));
        self.scattered(OpKind::Get, from, src, to, dst, runs)
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

    /// `rank` copies runs (first source chunk, first destination chunk, count) of its own.
    pub fn local_runs(
        &mut self,
        rank: u32,
        src: Slot,
        dst: Slot,
        runs: &[(u32, u32, u32)],
    ) -> Written<'_> {
        self.scattered(OpKind::Local, rank, src, rank, dst, runs.iter().copied())
            .lane(COMPUTE_LANE)
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

    /// `rank` copies chunks of its own; with `.reduce()` it combines them.
    pub fn local(&mut self, rank: u32, src: Chunks, dst: Chunks) -> Written<'_> {
        self.transfer(OpKind::Local, rank, src, rank, dst)
            .lane(COMPUTE_LANE)
    }

    /// `rank` computes `operations` arithmetic operations.
    pub fn compute(&mut self, rank: u32, operations: u64) -> Written<'_> {
        let index = self.draft.work.len() as u32;
        self.draft.work.push(operations);
        self.control(OpKind::Compute, rank, rank, index)
            .lane(COMPUTE_LANE)
    }

    /// Nobody of `ranks` goes on before all of them have come here.
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
        self.fences(&[rank]);
    }

    /// A fence of each of `ranks` for itself; nobody waits for another.
    pub fn fences(&mut self, ranks: &[u32]) {
        self.step();
        for &rank in ranks {
            self.control(OpKind::Fence, rank, rank, 0);
        }
        self.step();
    }

    /// Find the hazards and close the schedule; the first mistake made while writing ends here.
    pub fn finish(mut self) -> Result<Schedule> {
        self.close_step();
        if let Some(error) = self.error {
            return Err(error);
        }
        let position_of = self.position_of;
        self.draft.waits = self
            .waits
            .into_iter()
            .map(|(op, earlier)| (position_of[op as usize], position_of[earlier as usize]))
            .collect();
        self.draft.waits.sort_unstable();
        order(self.draft)
    }

    fn set(&mut self, members: &[u32]) -> u32 {
        if let Some(known) = self.draft.sets.iter().position(|set| set == members) {
            return known as u32;
        }
        self.draft.sets.push(members.to_vec());
        self.draft.sets.len() as u32 - 1
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
        if self.draft.ops.len() + self.pending.len() >= MAX_WRITTEN {
            self.fail(ScheduleError::TooLarge(MAX_WRITTEN as u64));
        }
        if self.error.is_some() {
            // Nothing will come of it; the author's loop must not fill the memory all the same.
            self.pending.clear();
        }
        self.pending.push(Op {
            from,
            to,
            src: src.start,
            dst: dst.start,
            count: src.count,
            step: self.step,
            kind,
            combine: Combine::Replace,
            src_buffer: src.buffer,
            dst_buffer: dst.buffer,
            lane: 0,
            hint: Hint::None,
            scattered: false,
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
        let first = self.draft.ranges.len();
        for (a, b, n) in runs {
            match self.draft.ranges[first..].last_mut() {
                Some((x, y, count)) if (*x + *count, *y + *count) == (a, b) => *count += n,
                _ => self.draft.ranges.push((a, b, n)),
            }
        }
        let runs = self.draft.ranges.len() - first;
        if runs <= 1 {
            let (a, b, n) = self.draft.ranges[first..]
                .first()
                .copied()
                .unwrap_or((0, 0, 0));
            self.draft.ranges.truncate(first);
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

/// Find scratch, edges and notices for operations that were written without, step by step.
pub(crate) fn infer(written: Schedule) -> Result<Schedule> {
    let shape = Shape::new(written.ranks, written.elements).with_root(written.spec.root);
    let mut b = Builder::new(written.spec.collective, &shape);
    b.draft = Draft {
        spec: written.spec,
        ranks: written.ranks,
        memories: written.memories,
        elements: written.elements,
        element_bytes: written.element_bytes,
        buffers: written.buffers,
        sets: written.sets,
        ops: Vec::new(),
        ranges: written.ranges,
        work: written.work,
        waits: Vec::new(),
    };
    for op in written.ops {
        if op.step != b.step {
            b.close_step();
            b.step = op.step;
        }
        b.pending.push(op);
    }
    b.finish()
}
