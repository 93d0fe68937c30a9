//! Closing a step: its operations are checked, and conflicts inside it go through scratch.
//!
//! All operations of a step read the state before it. Run one after another, an operation that
//! writes a chunk which a later one of the same step reads would spoil that; so would two that
//! combine into one chunk from two sides at once. Such an operation is redirected:
//!
//! ```text
//!   A.v -> B.v (reduce)   becomes   A.v -> B.scratch ; B.scratch -> B.v (reduce, local)
//!   B.v -> A.v (reduce)             B.v -> A.scratch ; A.scratch -> A.v (reduce, local)
//! ```
//!
//! Several redirected operations with one destination chunk get a scratch layer each. Two that
//! write a chunk and do not both combine are the author's mistake.
//!
//! With scratch of its own for each arrival ([`super::Builder::own_scratch`]), the layers of a chunk go on
//! from step to step, and what combines into a chunk after another rank did is redirected, too: it would
//! have to wait until that arrived.

use crate::error::{Result, ScheduleError};
use crate::ir::{add_scratch, BufferId, Combine, Op, Schedule};
use crate::marks::Mark;
use crate::order::Orderer;

/// Finds the conflicts of a step; kept from step to step for its room and for the scratch made.
#[derive(Default)]
pub(super) struct Conflicts {
    marks: Marks,
    /// Scratch buffers made here: (buffer mirrored, layer) -> scratch.
    mirrors: Vec<((BufferId, u32), BufferId)>,
    /// Layers that each chunk has before arrivals share one; 0: as few as possible.
    pub own_layers: u32,
    /// Layers taken by cell, where arrivals have their own.
    taken: Vec<u32>,
    /// (target, chunk) that an operation writes.
    written_chunks: Vec<(u32, u32)>,
}

impl Conflicts {
    /// Send through scratch what would spoil the state with which the step, the operations not yet ordered,
    /// begins; where no two of its operations `meet`, that is only what follows another rank's contribution.
    /// Gives the operations, by their places in the step, whose effects come at later positions.
    pub fn resolve(&mut self, orderer: &mut Orderer, meet: bool) -> Result<Vec<(u32, u32)>> {
        let (first, last) = (orderer.ordered(), orderer.out.ops.len());
        self.marks.begin();
        for index in (first..last).filter(|_| meet) {
            let op = orderer.out.ops[index];
            self.marks.mark(orderer, &op, (index - first) as u32);
        }
        let mut locals = Vec::new();
        for index in first..last {
            let op = orderer.out.ops[index];
            let (conflict, layer) = self.conflict(orderer, &op, (index - first) as u32, meet)?;
            if !conflict {
                continue;
            }
            let scratch = self.mirror(&mut orderer.out, op.dst_buffer, layer)?;
            let redirected = &mut orderer.out.ops[index];
            redirected.dst_buffer = scratch;
            redirected.combine = Combine::Replace;
            for t in 0..orderer.out.targets(&op).len() {
                let target = orderer.out.targets(&op)[t];
                if target >= orderer.out.ranks {
                    let problem = format!(
                        "memory {target} cannot bring data into place itself; \
                         write what is read in this step in a later one"
                    );
                    return Err(ScheduleError::Operation {
                        step: op.step,
                        problem,
                    });
                }
                let local = op.landing(scratch, target);
                let local = into_place(&mut orderer.out.ranges, &op, local);
                locals.push(((index - first) as u32, local));
            }
        }
        let behind = orderer.position() + (last - first) as u32;
        let moved = locals.iter().zip(behind..).map(|(local, at)| (local.0, at));
        let moved = moved.collect();
        let locals = locals.into_iter().map(|local| local.1);
        orderer.out.ops.extend(locals);
        Ok(moved)
    }

    /// Whether `op` must go through scratch, and the first scratch layer free for it.
    fn conflict(
        &mut self,
        orderer: &mut Orderer,
        op: &Op,
        k: u32,
        meet: bool,
    ) -> Result<(bool, u32)> {
        let (mut conflict, mut layer, mut taken) = (false, 0, 0);
        let own = self.own_layers > 0;
        let mut written = std::mem::take(&mut self.written_chunks);
        written.clear();
        written.extend(written_chunks(&orderer.out, op));
        for &(target, chunk) in &written {
            let cell = orderer.cell(target, op.dst_buffer, chunk);
            if meet {
                let mark = self.marks.at(cell);
                let Ok(meets) = mark.conflicts(k, op.combine, true) else {
                    return Err(ScheduleError::DoubleWrite {
                        step: op.step,
                        participant: target,
                        buffer: orderer.out.buffer(op.dst_buffer).name.clone(),
                        chunk,
                    });
                };
                conflict |= meets;
                layer = layer.max(mark.layers);
            }
            conflict |= own && orderer.follows(op, cell);
            taken = taken.max(self.taken.get(cell).copied().unwrap_or(0));
        }
        if taken < self.own_layers {
            layer = layer.max(taken);
        }
        for &(target, chunk) in written.iter().filter(|_| conflict) {
            let cell = orderer.cell(target, op.dst_buffer, chunk);
            if meet {
                self.marks.at(cell).layers = layer + 1;
            }
            if own {
                self.take(cell, layer);
            }
        }
        self.written_chunks = written;
        Ok((conflict, layer))
    }

    /// Enter that the chunk of `cell` lands in `layer`.
    fn take(&mut self, cell: usize, layer: u32) {
        if cell >= self.taken.len() {
            self.taken.resize(cell + 1, 0);
        }
        self.taken[cell] = layer + 1;
    }

    /// The scratch buffer cut like `buffer`, number `layer`.
    fn mirror(&mut self, out: &mut Schedule, buffer: BufferId, layer: u32) -> Result<BufferId> {
        let mut known = self.mirrors.iter();
        if let Some(&(_, known)) = known.find(|mirror| mirror.0 == (buffer, layer)) {
            return Ok(known);
        }
        let made = add_scratch(&mut out.buffers, buffer)?;
        self.mirrors.push(((buffer, layer), made));
        Ok(made)
    }
}

/// `local`, which brings what `op` left in scratch to its place: the chunks that `op` wrote.
pub(crate) fn into_place(ranges: &mut Vec<(u32, u32, u32)>, op: &Op, mut local: Op) -> Op {
    local.src = op.dst;
    if op.scattered {
        let listed = op.src as usize..(op.src + op.count) as usize;
        local.src = ranges.len() as u32;
        local.dst = local.src;
        for index in listed {
            let (_, dst, count) = ranges[index];
            ranges.push((dst, dst, count));
        }
    }
    local
}

fn written_chunks<'a>(s: &'a Schedule, op: &'a Op) -> impl Iterator<Item = (u32, u32)> + 'a {
    s.chunk_ranges(op).flat_map(move |(_, dst, count)| {
        let targets = s.targets(op).iter();
        targets.flat_map(move |&t| (dst..dst + count).map(move |c| (t, c)))
    })
}

/// Marks of all chunks by their cells.
#[derive(Default)]
struct Marks {
    step: u32,
    marks: Vec<Mark>,
}

impl Marks {
    fn begin(&mut self) {
        self.step += 1;
    }

    fn mark(&mut self, orderer: &mut Orderer, op: &Op, k: u32) {
        for index in 0..orderer.out.range_count(op) {
            let (src, dst, count) = orderer.out.range_at(op, index);
            for s in 0..orderer.out.sources(op).len() {
                let source = orderer.out.sources(op)[s];
                for chunk in src..src + count {
                    self.at(orderer.cell(source, op.src_buffer, chunk)).read(k);
                }
            }
            for t in 0..orderer.out.targets(op).len() {
                let target = orderer.out.targets(op)[t];
                for chunk in dst..dst + count {
                    let cell = orderer.cell(target, op.dst_buffer, chunk);
                    self.at(cell).write(k, op.combine);
                }
            }
        }
    }

    fn at(&mut self, cell: usize) -> &mut Mark {
        Mark::of(&mut self.marks, cell, self.step)
    }
}
