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

use super::{Builder, Slot};
use crate::error::{Result, ScheduleError};
use crate::ir::{BufferId, Combine, Op, OpKind, Owner, Schedule};
use crate::marks::Mark;
use crate::order::{owns, Orderer};

impl Builder {
    /// Check the operations of the step, resolve their conflicts, order them.
    pub(super) fn close_step(&mut self) {
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
        let moved = match self.orderer.pending_meet() {
            true => self.resolve_conflicts(first)?,
            false => Vec::new(),
        };
        if !self.named.is_empty() || !self.waits.is_empty() {
            self.explicit_waits(&moved);
        }
        self.written_before = written;
        self.orderer.order_pending()
    }

    /// Send through scratch what would spoil the state with which the step, written from `first` on, begins.
    /// Gives the operations, by their places in the step, whose effects come at later positions.
    fn resolve_conflicts(&mut self, first: usize) -> Result<Vec<(u32, u32)>> {
        let last = self.orderer.out.ops.len();
        self.marks.begin();
        for index in first..last {
            let op = self.orderer.out.ops[index];
            self.marks
                .mark(&mut self.orderer, &op, (index - first) as u32);
        }
        let mut locals = Vec::new();
        for index in first..last {
            let op = self.orderer.out.ops[index];
            let (conflict, layer) = self.conflict(&op, (index - first) as u32)?;
            if !conflict {
                continue;
            }
            let layer = layer * self.scratch_layers + self.step % self.scratch_layers;
            let scratch = self.mirror(op.dst_buffer, layer)?;
            let redirected = &mut self.orderer.out.ops[index];
            redirected.dst_buffer = scratch;
            redirected.combine = Combine::Replace;
            for t in 0..self.orderer.out.targets(&op).len() {
                let target = self.orderer.out.targets(&op)[t];
                if target >= self.orderer.out.ranks {
                    let problem = format!(
                        "memory {target} cannot bring data into place itself; \
                         write what is read in this step in a later one"
                    );
                    return Err(ScheduleError::Operation {
                        step: op.step,
                        problem,
                    });
                }
                let local = into_place(&mut self.orderer.out, &op, scratch, target);
                locals.push(((index - first) as u32, local));
            }
        }
        let behind = self.orderer.position() + (last - first) as u32;
        let moved = locals.iter().zip(behind..).map(|(local, at)| (local.0, at));
        let moved = moved.collect();
        let locals = locals.into_iter().map(|local| local.1);
        self.orderer.out.ops.extend(locals);
        Ok(moved)
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

    /// Whether `op` must go through scratch, and the first scratch layer free for it.
    fn conflict(&mut self, op: &Op, k: u32) -> Result<(bool, u32)> {
        let (mut conflict, mut layer) = (false, 0);
        let mut written = std::mem::take(&mut self.written_chunks);
        written.clear();
        written.extend(written_chunks(&self.orderer.out, op));
        for &(target, chunk) in &written {
            let mark = (self.marks).at(self.orderer.cell(target, op.dst_buffer, chunk));
            let Ok(meets) = mark.conflicts(k, op.combine, true) else {
                return Err(ScheduleError::DoubleWrite {
                    step: op.step,
                    participant: target,
                    buffer: self.orderer.out.buffer(op.dst_buffer).name.clone(),
                    chunk,
                });
            };
            conflict |= meets;
            layer = layer.max(mark.layers);
        }
        if conflict {
            for &(target, chunk) in &written {
                let cell = self.orderer.cell(target, op.dst_buffer, chunk);
                self.marks.at(cell).layers = layer + 1;
            }
        }
        self.written_chunks = written;
        Ok((conflict, layer))
    }

    /// The scratch buffer cut like `buffer`, number `layer`.
    fn mirror(&mut self, buffer: BufferId, layer: u32) -> Result<BufferId> {
        let known = self
            .mirrors
            .iter()
            .find(|mirror| mirror.0 == (buffer, layer));
        if let Some(&(_, known)) = known {
            return Ok(known);
        }
        let buffers = &self.orderer.out.buffers;
        let mirrored = buffers[buffer.0 as usize].scratch(buffers);
        let Slot(id) = self.buffer(mirrored);
        self.mirrors.push(((buffer, layer), id));
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(id),
        }
    }
}

/// The local operation that brings what `op` left in `scratch` of `target` to its place.
fn into_place(draft: &mut Schedule, op: &Op, scratch: BufferId, target: u32) -> Op {
    let mut local = Op {
        src: op.dst,
        ..op.landing(scratch, target)
    };
    if op.scattered {
        let listed = op.src as usize..(op.src + op.count) as usize;
        local.src = draft.ranges.len() as u32;
        local.dst = local.src;
        for index in listed {
            let (_, dst, count) = draft.ranges[index];
            draft.ranges.push((dst, dst, count));
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

/// Whether `op` is one of those nearly all operations are, between ranks and without lists, and right.
#[inline]
fn is_plainly_right(draft: &Schedule, op: &Op) -> bool {
    let inside = |id: BufferId, first: u32| {
        let buffer = draft.buffer(id);
        buffer.owner == Owner::Ranks
            && u64::from(first) + u64::from(op.count) <= u64::from(buffer.chunks())
    };
    matches!(op.kind, OpKind::Put | OpKind::Get | OpKind::Local)
        && !op.scattered
        && op.from < draft.ranks
        && op.to < draft.ranks
        && inside(op.src_buffer, op.src)
        && inside(op.dst_buffer, op.dst)
}

/// Participants, buffers and chunks of `op` exist.
pub(crate) fn check(draft: &Schedule, op: &Op) -> Result<()> {
    if is_plainly_right(draft, op) {
        return Ok(());
    }
    let (ranks, memories, step) = (draft.ranks, draft.memories, op.step);
    let no_participant = |participant| ScheduleError::NoParticipant {
        step,
        participant,
        ranks,
        memories,
    };
    let rank = op.initiator();
    if rank >= ranks {
        return match rank < ranks + memories {
            true => Err(ScheduleError::Operation {
                step,
                problem: format!("memory {rank} cannot issue operations; let a rank put or get"),
            }),
            false => Err(no_participant(rank)),
        };
    }
    let set_of_ranks = matches!(op.kind, OpKind::Multicast | OpKind::Barrier);
    let others = match set_of_ranks {
        true => &draft.sets[op.to as usize][..],
        false => std::slice::from_ref(&op.to),
    };
    for &participant in others.iter().chain([&op.from]) {
        if participant >= ranks + memories {
            return Err(no_participant(participant));
        }
    }
    for (src, dst, count) in draft.chunk_ranges(op) {
        check_chunks(draft, op.from, op.src_buffer, src, count, step)?;
        for &target in draft.targets(op) {
            check_chunks(draft, target, op.dst_buffer, dst, count, step)?;
        }
    }
    Ok(())
}

#[inline]
fn check_chunks(
    draft: &Schedule,
    participant: u32,
    id: BufferId,
    first: u32,
    count: u32,
    step: u32,
) -> Result<()> {
    let buffer = &draft.buffers[id.0 as usize];
    let no_chunk = |chunk, problem| {
        let buffer = buffer.name.clone();
        Err(ScheduleError::NoChunk {
            step,
            participant,
            buffer,
            chunk,
            problem,
        })
    };
    if !owns(buffer.owner, participant, draft.ranks) {
        return no_chunk(first, "the participant has no such buffer".to_string());
    }
    if u64::from(first) + u64::from(count) > u64::from(buffer.chunks()) {
        let last = u64::from(first) + u64::from(count) - 1;
        let problem = format!("the buffer has chunks 0..{}", buffer.chunks());
        return no_chunk(last.min(u64::from(u32::MAX)) as u32, problem);
    }
    Ok(())
}

/// Marks of all chunks by their cells.
#[derive(Default)]
pub(super) struct Marks {
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
            for chunk in src..src + count {
                self.at(orderer.cell(op.from, op.src_buffer, chunk)).read(k);
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
