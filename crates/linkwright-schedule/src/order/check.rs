//! What an operation names exists.

use crate::error::{Result, ScheduleError};
use crate::ir::{BufferId, Op, OpKind, Owner, Schedule};

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
    let others = match op.kind {
        OpKind::Barrier => &draft.sets[op.to as usize][..],
        _ => draft.targets(op),
    };
    for &participant in others.iter().chain(draft.sources(op)) {
        if participant >= ranks + memories {
            return Err(no_participant(participant));
        }
    }
    for (src, dst, count) in draft.chunk_ranges(op) {
        for &source in draft.sources(op) {
            check_chunks(draft, source, op.src_buffer, src, count, step)?;
        }
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
    if !buffer.owner.includes(participant, draft.ranks) {
        return no_chunk(first, "the participant has no such buffer".to_string());
    }
    if u64::from(first) + u64::from(count) > u64::from(buffer.chunks()) {
        let last = u64::from(first) + u64::from(count) - 1;
        let problem = format!("the buffer has chunks 0..{}", buffer.chunks());
        return no_chunk(last.min(u64::from(u32::MAX)) as u32, problem);
    }
    Ok(())
}
