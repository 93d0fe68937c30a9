//! Everything that an operation names exists, and both sides of a transfer are equally long.

use super::outcome::{participant, VerifyError};
use super::shape;
use crate::ir::{Buffer, BufferId, Op, OpKind, Owner, Schedule};
use std::ops::Range;

/// Check the shape, then every operation.
pub(crate) fn check(schedule: &Schedule) -> Result<(), VerifyError> {
    shape::check(schedule)?;
    let lengths: Vec<Lengths> = (schedule.buffers.iter())
        .map(|buffer| Lengths::of(buffer, schedule.elements))
        .collect();
    for (id, op) in schedule.ops().iter().enumerate() {
        if is_plainly_right(schedule, &lengths, op) {
            continue;
        }
        operation(schedule, &lengths, op).map_err(|problem| VerifyError::Bounds {
            step: op.step,
            op: id as u32,
            problem,
        })?;
    }
    Ok(())
}

/// Whether `op` is one of those nearly all operations are, between ranks and without lists, and right.
#[inline]
fn is_plainly_right(s: &Schedule, lengths: &[Lengths], op: &Op) -> bool {
    if op.from >= s.ranks || op.to >= s.ranks || op.scattered {
        return false;
    }
    match op.kind {
        OpKind::Put | OpKind::Get => {}
        OpKind::Local | OpKind::Fence if op.from != op.to => return false,
        OpKind::Local => {}
        OpKind::Fence | OpKind::Notice => return true,
        OpKind::Multicast | OpKind::Aggregate | OpKind::Compute | OpKind::Barrier => return false,
    }
    let (src, dst) = (
        lengths.get(op.src_buffer.0 as usize),
        lengths.get(op.dst_buffer.0 as usize),
    );
    let (Some(src), Some(dst)) = (src, dst) else {
        return false;
    };
    let inside = |buffer: &Lengths, first: u32| {
        buffer.of_every_rank && u64::from(first) + u64::from(op.count) <= u64::from(buffer.chunks)
    };
    let same_buffer = op.src_buffer == op.dst_buffer;
    let as_long = (same_buffer && op.src == op.dst) || (src.all.is_some() && src.all == dst.all);
    let apart = op.from != op.to || !same_buffer;
    inside(src, op.src) && inside(dst, op.dst) && as_long && apart
}

/// Lengths of the chunks of one buffer, without a division where all are equal.
struct Lengths {
    all: Option<u64>,
    chunks: u32,
    of_every_rank: bool,
}

impl Lengths {
    fn of(buffer: &Buffer, elements: u64) -> Self {
        let total = buffer.elements(elements);
        let chunks = u64::from(buffer.chunks());
        Lengths {
            all: (total % chunks == 0 && buffer.parts.is_none()).then_some(total / chunks),
            chunks: buffer.chunks(),
            of_every_rank: buffer.owner == Owner::Ranks && buffer.parts.is_none(),
        }
    }

    fn at(&self, buffer: &Buffer, elements: u64, chunk: u32) -> u64 {
        match self.all {
            Some(length) => length,
            None => buffer.offset(elements, chunk + 1) - buffer.offset(elements, chunk),
        }
    }
}

fn operation(s: &Schedule, lengths: &[Lengths], op: &Op) -> Result<(), String> {
    let participants = s.ranks + s.memories;
    let uses_set = matches!(op.kind, OpKind::Multicast | OpKind::Barrier);
    if uses_set && op.to as usize >= s.sets.len() {
        return Err(format!("set s{} does not exist; declare it", op.to));
    }
    let other = match uses_set || op.kind == OpKind::Aggregate {
        true => op.from,
        false => op.to,
    };
    if let Some(missing) = [op.from, other].into_iter().find(|&p| p >= participants) {
        return Err(format!(
            "participant {missing} does not exist; there are {} ranks and {} memories",
            s.ranks, s.memories
        ));
    }
    if op.initiator() >= s.ranks {
        return Err(format!(
            "memory {} cannot issue operations; let a rank put or get",
            op.initiator()
        ));
    }
    match op.kind {
        OpKind::Put | OpKind::Get => chunks(s, lengths, op),
        OpKind::Multicast if s.sets[op.to as usize].contains(&op.from) => Err(format!(
            "rank {} multicasts to itself; leave it out of set s{} and add a local copy",
            op.from, op.to
        )),
        OpKind::Multicast => chunks(s, lengths, op),
        OpKind::Aggregate => {
            aggregation(s, op)?;
            chunks(s, lengths, op)
        }
        OpKind::Notice if op.to >= s.ranks => {
            Err(format!("memory {} cannot wait for a notice", op.to))
        }
        OpKind::Notice => Ok(()),
        OpKind::Barrier => barrier(s, op),
        OpKind::Local | OpKind::Compute | OpKind::Fence if op.from != op.to => Err(format!(
            "a local operation of rank {} names participant {}; make them equal or put",
            op.from, op.to
        )),
        OpKind::Local => chunks(s, lengths, op),
        OpKind::Compute if op.count as usize >= s.work.len() => {
            Err(format!("work {} does not exist", op.count))
        }
        OpKind::Compute | OpKind::Fence => Ok(()),
    }
}

fn aggregation(s: &Schedule, op: &Op) -> Result<(), String> {
    let Some(&(sources, targets)) = s.aggregations.get(op.to as usize) else {
        return Err(format!("sets {} of aggregations do not exist", op.to));
    };
    let (Some(_), Some(targets)) = (s.sets.get(sources as usize), s.sets.get(targets as usize))
    else {
        return Err(format!(
            "set s{} does not exist; declare it",
            sources.max(targets)
        ));
    };
    match targets.first() {
        Some(&first) if first == op.from => Ok(()),
        first => Err(format!(
            "rank {} initiates an aggregation to participant {}; let the first target do it",
            op.from,
            first.copied().unwrap_or_default()
        )),
    }
}

fn barrier(s: &Schedule, op: &Op) -> Result<(), String> {
    let set = &s.sets[op.to as usize];
    if !set.contains(&op.from) {
        return Err(format!(
            "rank {} arrives at a barrier of set s{}, which it is not in; add it",
            op.from, op.to
        ));
    }
    match set.iter().find(|&&member| member >= s.ranks) {
        Some(memory) => Err(format!("memory {memory} cannot arrive at a barrier")),
        None => Ok(()),
    }
}

fn chunks(s: &Schedule, lengths: &[Lengths], op: &Op) -> Result<(), String> {
    let missing = |id: BufferId| format!("buffer {} does not exist", id.0);
    let src = (s.buffers.get(op.src_buffer.0 as usize)).ok_or_else(|| missing(op.src_buffer))?;
    let dst = (s.buffers.get(op.dst_buffer.0 as usize)).ok_or_else(|| missing(op.dst_buffer))?;
    for &source in s.sources(op) {
        owned(s, src, source)?;
    }
    for &target in s.targets(op) {
        owned(s, dst, target)?;
    }
    listed(op, s.ranges.len())?;
    let same_cut = op.src_buffer == op.dst_buffer || src.same_cut(dst);
    for (first, into, count) in s.chunk_ranges(op) {
        inside(src, first, count)?;
        inside(dst, into, count)?;
        for &source in s.sources(op) {
            at_home(s, src, source, first..first + count)?;
        }
        for &target in s.targets(op) {
            at_home(s, dst, target, into..into + count)?;
        }
        if !(same_cut && first == into) {
            equally_long(s, lengths, op, (first, into, count))?;
        }
    }
    overlap(s, op)
}

fn owned(s: &Schedule, buffer: &Buffer, who: u32) -> Result<(), String> {
    match buffer.owner.includes(who, s.ranks) {
        true => Ok(()),
        false => Err(format!(
            "{} has no buffer `{}`",
            participant(s, who),
            buffer.name
        )),
    }
}

/// If `op` names a list of chunk ranges, it is one of the `ranges`.
#[inline]
fn listed(op: &Op, ranges: usize) -> Result<(), String> {
    let end = u64::from(op.src) + u64::from(op.count);
    match op.scattered && (op.count == 0 || op.dst != op.src || end > ranges as u64) {
        true => Err("its list of chunk ranges does not exist".to_string()),
        false => Ok(()),
    }
}

/// The buffer has `count` chunks from `start` on.
#[inline]
fn inside(buffer: &Buffer, start: u32, count: u32) -> Result<(), String> {
    let end = u64::from(start) + u64::from(count);
    match end <= u64::from(buffer.chunks()) {
        true => Ok(()),
        false => Err(format!(
            "{}[{start}..{end}] does not exist; the buffer has chunks 0..{}",
            buffer.name,
            buffer.chunks()
        )),
    }
}

/// `who` has these chunks of a buffer with parts.
fn at_home(s: &Schedule, buffer: &Buffer, who: u32, chunks: Range<u32>) -> Result<(), String> {
    let held = buffer.held(who);
    match buffer.parts.is_none() || (held.start <= chunks.start && chunks.end <= held.end) {
        true => Ok(()),
        false => Err(format!(
            "{}[{}..{}] is not all at {}, which has {}..{}; send what a rank has",
            buffer.name,
            chunks.start,
            chunks.end,
            participant(s, who),
            held.start,
            held.end
        )),
    }
}

/// The chunks of a range are as long on one side as on the other.
fn equally_long(
    s: &Schedule,
    lengths: &[Lengths],
    op: &Op,
    (first, into, count): (u32, u32, u32),
) -> Result<(), String> {
    let (src, dst) = (s.buffer(op.src_buffer), s.buffer(op.dst_buffer));
    let (of_src, of_dst) = (
        &lengths[op.src_buffer.0 as usize],
        &lengths[op.dst_buffer.0 as usize],
    );
    if of_src.all.is_some() && of_src.all == of_dst.all {
        return Ok(());
    }
    for k in 0..count {
        let from = of_src.at(src, s.elements, first + k);
        let to = of_dst.at(dst, s.elements, into + k);
        if from != to {
            return Err(format!(
                "{}[{}] has {from} elements and {}[{}] has {to}; pair chunks of equal length",
                src.name,
                first + k,
                dst.name,
                into + k
            ));
        }
    }
    Ok(())
}

fn overlap(s: &Schedule, op: &Op) -> Result<(), String> {
    let both = match op.kind {
        OpKind::Multicast => false,
        OpKind::Aggregate => {
            let targets = s.targets(op);
            s.sources(op).iter().any(|source| targets.contains(source))
        }
        _ => op.from == op.to,
    };
    let inside = op.src_buffer == op.dst_buffer && both;
    if !op.scattered && !inside {
        return Ok(());
    }
    let written = s.chunk_ranges(op).map(|(_, dst, count)| (dst, count));
    // All data of an aggregation have been read before the result is there, chunk by chunk.
    let in_place = |&(src, dst, _): &(u32, u32, u32)| op.kind == OpKind::Aggregate && src == dst;
    let read = s.chunk_ranges(op).filter(|range| !in_place(range));
    let read = read.map(|(src, _, count)| (src, count));
    let name = &s.buffer(op.dst_buffer).name;
    apart(name, written.collect(), read.filter(|_| inside))
}

/// An operation may not write a chunk of buffer `name` twice, nor one that it reads: there is no order
/// within it. Ranges are (first chunk, chunks).
fn apart(
    name: &str,
    mut written: Vec<(u32, u32)>,
    mut read: impl Iterator<Item = (u32, u32)>,
) -> Result<(), String> {
    written.retain(|&(_, count)| count > 0);
    written.sort_unstable();
    if let Some(pair) = written
        .windows(2)
        .find(|pair| pair[1].0 < pair[0].0 + pair[0].1)
    {
        return Err(format!("writes {name}[{}] twice; list it once", pair[1].0));
    }
    let clash = read.any(|(src, count)| {
        let after = written.partition_point(|&(first, count)| first + count <= src);
        count > 0 && written.get(after).is_some_and(|w| w.0 < src + count)
    });
    match clash {
        true => Err("reads and writes the same chunk; go through scratch".to_string()),
        false => Ok(()),
    }
}
