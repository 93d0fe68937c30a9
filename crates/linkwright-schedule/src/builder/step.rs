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
use crate::ir::{Buffer, BufferId, Combine, Hint, Op, OpKind, COMPUTE_LANE};
use crate::order::{owns, Draft};

impl Builder {
    /// Check the operations of the step, resolve their conflicts, append them to the draft.
    pub(super) fn close_step(&mut self) {
        if self.error.is_some() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        match self.resolve_step(&pending) {
            Ok(()) => {}
            Err(error) => self.fail(error),
        }
        self.pending = pending;
        self.pending.clear();
    }

    fn resolve_step(&mut self, pending: &[Op]) -> Result<()> {
        for op in pending {
            check(&self.draft, op)?;
        }
        self.marks.begin(
            self.draft.ranks + self.draft.memories,
            self.draft.buffers.len(),
        );
        for (k, op) in pending.iter().enumerate() {
            mark(&mut self.marks, &self.draft, op, k as u32);
        }
        let mut locals = Vec::new();
        for (k, op) in pending.iter().enumerate() {
            let (conflict, layer) = self.conflict(op, k as u32)?;
            self.position_of.push(self.draft.ops.len() as u32);
            if !conflict {
                self.draft.ops.push(*op);
                continue;
            }
            let layer = layer * self.scratch_layers + self.step % self.scratch_layers;
            let scratch = self.mirror(op.dst_buffer, layer)?;
            let redirected = Op {
                dst_buffer: scratch,
                combine: Combine::Replace,
                ..*op
            };
            self.draft.ops.push(redirected);
            for target in targets(&self.draft, op).to_vec() {
                if target >= self.draft.ranks {
                    let problem = format!(
                        "memory {target} cannot bring data into place itself; \
                         write what is read in this step in a later one"
                    );
                    return Err(ScheduleError::Operation {
                        step: op.step,
                        problem,
                    });
                }
                locals.push((k, into_place(&mut self.draft, op, scratch, target)));
            }
        }
        let first = self.position_of.len() - pending.len();
        for (k, local) in locals {
            self.position_of[first + k] = self.draft.ops.len() as u32;
            self.draft.ops.push(local);
        }
        Ok(())
    }

    /// Whether `op` must go through scratch, and the first scratch layer free for it.
    fn conflict(&mut self, op: &Op, k: u32) -> Result<(bool, u32)> {
        let (mut conflict, mut layer) = (false, 0);
        let name = |draft: &Draft| draft.buffers[op.dst_buffer.0 as usize].name.clone();
        for (target, chunk) in written_chunks(&self.draft, op) {
            let mark = self.marks.at(target, op.dst_buffer, chunk);
            let read = mark.reader != NOBODY && mark.reader != k;
            let written = mark.writer != k;
            if written && (mark.replaced || op.combine == Combine::Replace) {
                let (step, participant, buffer) = (op.step, target, name(&self.draft));
                return Err(ScheduleError::DoubleWrite {
                    step,
                    participant,
                    buffer,
                    chunk,
                });
            }
            conflict |= read || written;
            layer = layer.max(mark.layers);
        }
        if conflict {
            for (target, chunk) in written_chunks(&self.draft, op) {
                self.marks.at(target, op.dst_buffer, chunk).layers = layer + 1;
            }
        }
        Ok((conflict, layer))
    }

    /// The scratch buffer cut like `buffer`, number `layer`.
    fn mirror(&mut self, buffer: BufferId, layer: u32) -> Result<BufferId> {
        if let Some(&known) = self.mirrors.get(&(buffer, layer)) {
            return Ok(known);
        }
        let count = self
            .draft
            .buffers
            .iter()
            .filter(|b| b.name.starts_with("scratch"))
            .count();
        let name = match count {
            0 => "scratch".to_string(),
            n => format!("scratch{n}"),
        };
        let mirrored = Buffer {
            name,
            ..self.draft.buffers[buffer.0 as usize].clone()
        };
        let Slot(id) = self.buffer(mirrored);
        self.mirrors.insert((buffer, layer), id);
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(id),
        }
    }
}

/// The local operation that brings what `op` left in `scratch` of `target` to its place.
fn into_place(draft: &mut Draft, op: &Op, scratch: BufferId, target: u32) -> Op {
    let mut local = Op {
        from: target,
        to: target,
        src: op.dst,
        kind: OpKind::Local,
        src_buffer: scratch,
        lane: COMPUTE_LANE,
        hint: Hint::None,
        ..*op
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

fn targets<'a>(draft: &'a Draft, op: &'a Op) -> &'a [u32] {
    match op.kind {
        OpKind::Multicast => &draft.sets[op.to as usize],
        _ => std::slice::from_ref(&op.to),
    }
}

fn ranges<'a>(draft: &'a Draft, op: &'a Op) -> impl Iterator<Item = (u32, u32, u32)> + 'a {
    let listed = match op.scattered {
        true => &draft.ranges[op.src as usize..(op.src + op.count) as usize],
        false => &[],
    };
    let inline = (op.moves_data() && !op.scattered).then_some((op.src, op.dst, op.count));
    inline.into_iter().chain(listed.iter().copied())
}

fn written_chunks<'a>(draft: &'a Draft, op: &'a Op) -> impl Iterator<Item = (u32, u32)> + 'a {
    ranges(draft, op).flat_map(move |(_, dst, count)| {
        targets(draft, op)
            .iter()
            .flat_map(move |&t| (dst..dst + count).map(move |c| (t, c)))
    })
}

fn mark(marks: &mut Marks, draft: &Draft, op: &Op, k: u32) {
    for (src, _, count) in ranges(draft, op) {
        for chunk in src..src + count {
            let mark = marks.at(op.from, op.src_buffer, chunk);
            // Two readers besides the writer itself, or one: all that matters is "another one".
            mark.reader = if mark.reader == NOBODY || mark.reader == k {
                k
            } else {
                SEVERAL
            };
        }
    }
    for (target, chunk) in written_chunks(draft, op) {
        let mark = marks.at(target, op.dst_buffer, chunk);
        mark.replaced |= op.combine == Combine::Replace;
        mark.writer = if mark.writer == NOBODY { k } else { SEVERAL };
    }
}

/// Participants, buffers and chunks of `op` exist.
fn check(draft: &Draft, op: &Op) -> Result<()> {
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
    for (src, dst, count) in ranges(draft, op) {
        check_chunks(draft, op.from, op.src_buffer, src, count, step)?;
        for &target in targets(draft, op) {
            check_chunks(draft, target, op.dst_buffer, dst, count, step)?;
        }
    }
    Ok(())
}

fn check_chunks(
    draft: &Draft,
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

const NOBODY: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// Who reads and writes a chunk in the current step.
#[derive(Clone, Copy)]
struct Mark {
    step: u32,
    reader: u32,
    writer: u32,
    layers: u32,
    replaced: bool,
}

/// Marks of all chunks, grown on demand; a mark of an older step counts as empty.
#[derive(Default)]
pub(super) struct Marks {
    step: u32,
    buffers: usize,
    tables: Vec<Vec<Mark>>,
}

impl Marks {
    fn begin(&mut self, participants: u32, buffers: usize) {
        self.step += 1;
        if self.buffers != buffers || self.tables.len() != participants as usize * buffers {
            // Buffers are added while writing; marks live for one step only.
            self.buffers = buffers;
            self.tables = vec![Vec::new(); participants as usize * buffers];
        }
    }

    fn at(&mut self, participant: u32, buffer: BufferId, chunk: u32) -> &mut Mark {
        let step = self.step;
        let table = &mut self.tables[participant as usize * self.buffers + buffer.0 as usize];
        let empty = Mark {
            step,
            reader: NOBODY,
            writer: NOBODY,
            layers: 0,
            replaced: false,
        };
        let chunk = chunk as usize;
        if chunk >= table.len() {
            table.resize(chunk + 1, empty);
        }
        if table[chunk].step != step {
            table[chunk] = empty;
        }
        &mut table[chunk]
    }
}
