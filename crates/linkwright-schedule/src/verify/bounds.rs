//! Everything that an operation names exists, and both sides of a transfer are equally long.

use super::{participant, VerifyError};
use crate::ir::{Buffer, BufferId, Op, OpKind, Owner, Schedule, MAX_CHUNKS, MAX_OPS, MAX_RANKS};
use crate::order::owns;
use crate::spec::Collective;

/// Check the buffers against the collective, then every operation.
pub(crate) fn check(schedule: &Schedule) -> Result<(), VerifyError> {
    shape(schedule)?;
    for id in 0..schedule.buffers.len() {
        buffer_shape(schedule, id)?;
    }
    sets(schedule)?;
    layout(schedule)?;
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
        OpKind::Multicast | OpKind::Compute | OpKind::Barrier => return false,
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

fn shape(s: &Schedule) -> Result<(), VerifyError> {
    let error = |problem| Err(VerifyError::Shape(problem));
    let participants = u64::from(s.ranks) + u64::from(s.memories);
    if s.ranks == 0 || participants > u64::from(MAX_RANKS) {
        return error(format!(
            "{} ranks and {} memories; between 1 and {MAX_RANKS} together are possible",
            s.ranks, s.memories
        ));
    }
    if s.ops().len() > MAX_OPS {
        return error(format!("more than {MAX_OPS} operations; use fewer ranks"));
    }
    if s.spec.root >= s.ranks {
        return error(format!(
            "root {} does not exist; ranks are 0..{}",
            s.spec.root, s.ranks
        ));
    }
    if s.spec.repeats == 0 {
        return error("the collective runs 0 times; once is the least".to_string());
    }
    if s.element_bytes == 0 {
        return error("elements of 0 bytes; at least 1 is needed".to_string());
    }
    Ok(())
}

fn buffer_shape(s: &Schedule, id: usize) -> Result<(), VerifyError> {
    let buffer = &s.buffers[id];
    let error = |problem| {
        Err(VerifyError::Shape(format!(
            "buffer {}: {problem}",
            buffer.name
        )))
    };
    if id >= 256 {
        return error("is number 256; at most 256 buffers are possible".to_string());
    }
    if s.buffers[..id].iter().any(|b| b.name == buffer.name) {
        return error("exists twice; give each buffer its own name".to_string());
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if buffer.name.is_empty() || !buffer.name.chars().all(letters) {
        return error("a name is made of letters, digits and `_`; rename it".to_string());
    }
    if buffer.blocks == 0 || buffer.slices == 0 || buffer.div == 0 {
        return error("0 blocks, slices or parts; at least 1 of each is needed".to_string());
    }
    if u64::from(buffer.blocks) * u64::from(buffer.slices) > u64::from(MAX_CHUNKS) {
        return error(format!(
            "{} blocks of {} slices; at most {MAX_CHUNKS} chunks are possible",
            buffer.blocks, buffer.slices
        ));
    }
    if s.elements.checked_mul(u64::from(buffer.mul)).is_none() {
        return error(format!(
            "{} vectors of {} elements are more than 64 bits count",
            buffer.mul, s.elements
        ));
    }
    match buffer.owner {
        Owner::One(one) if one.0 >= s.ranks + s.memories => error(format!(
            "belongs to participant {one}, which does not exist; there are {} ranks and {} memories",
            s.ranks, s.memories
        )),
        _ => Ok(()),
    }
}

fn sets(s: &Schedule) -> Result<(), VerifyError> {
    for (index, set) in s.sets.iter().enumerate() {
        let mut sorted = set.clone();
        sorted.sort_unstable();
        let problem = if set.is_empty() {
            "is empty; name at least one participant".to_string()
        } else if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            "names a participant twice; name each once".to_string()
        } else if sorted.last().is_some_and(|&l| l >= s.ranks + s.memories) {
            format!(
                "names participant {}; there are {} ranks and {} memories",
                sorted[sorted.len() - 1],
                s.ranks,
                s.memories
            )
        } else {
            continue;
        };
        return Err(VerifyError::Shape(format!("set s{index} {problem}")));
    }
    Ok(())
}

/// How a buffer that the spec speaks of must be cut.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// The whole vector, in any chunks.
    Vector,
    /// The whole vector, one block per rank.
    PerRank,
    /// One block, the ranks-th part of the vector.
    Block,
}

/// The buffers that the spec speaks of exist where it needs them, and are cut as it counts chunks.
fn layout(s: &Schedule) -> Result<(), VerifyError> {
    let root = Some(s.spec.root);
    let needed: &[(&str, Cut, Option<u32>)] = match s.spec.collective {
        Collective::Allreduce | Collective::Broadcast | Collective::Reduce => {
            &[("output", Cut::Vector, None)]
        }
        Collective::ReduceScatter | Collective::Allgather | Collective::Barrier => {
            &[("output", Cut::PerRank, None)]
        }
        Collective::Gather => &[("input", Cut::Block, None), ("output", Cut::PerRank, root)],
        Collective::Scatter => &[("input", Cut::PerRank, root), ("output", Cut::Block, None)],
        Collective::Alltoall => &[
            ("input", Cut::PerRank, None),
            ("output", Cut::PerRank, None),
        ],
        Collective::Pattern => &[],
    };
    let name = s.spec.collective.name();
    let mut slices = None;
    for &(buffer, cut, only) in needed {
        let error = |problem: String| Err(VerifyError::Shape(format!("{name}: {problem}")));
        let Some(id) = s.buffer_named(buffer) else {
            return error(format!("there is no buffer `{buffer}`; declare it"));
        };
        let known = s.buffer(id);
        let owned = match only {
            Some(rank) => owns(known.owner, rank, s.ranks),
            None => known.owner == Owner::Ranks || (s.ranks == 1 && owns(known.owner, 0, 1)),
        };
        if !owned {
            let who = only.map_or("every rank".into(), |rank| {
                format!("the root, rank {rank},")
            });
            return error(format!("{who} needs a buffer `{buffer}`"));
        }
        let blocks = match cut {
            Cut::Vector => known.blocks,
            Cut::PerRank => s.ranks,
            Cut::Block => 1,
        };
        let parts = if cut == Cut::Block { s.ranks } else { 1 };
        // The tokens of a barrier have no bytes.
        let size = s.spec.collective == Collective::Barrier
            || u64::from(known.mul) * u64::from(parts) == u64::from(known.div);
        if known.blocks != blocks || !size {
            return error(format!(
                "buffer `{buffer}` is {}/{} of the vector in {} blocks; it must be 1/{parts} in {blocks}",
                known.mul, known.div, known.blocks
            ));
        }
        if *slices.get_or_insert(known.slices) != known.slices {
            return error("`input` and `output` have different slices per block".to_string());
        }
    }
    Ok(())
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
            all: (total % chunks == 0).then_some(total / chunks),
            chunks: buffer.chunks(),
            of_every_rank: buffer.owner == Owner::Ranks,
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
    let other = if uses_set { op.from } else { op.to };
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
    let owner = |buffer: &Buffer, who| match owns(buffer.owner, who, s.ranks) {
        true => Ok(()),
        false => Err(format!(
            "{} has no buffer `{}`",
            participant(s, who),
            buffer.name
        )),
    };
    owner(src, op.from)?;
    for &target in s.targets(op) {
        owner(dst, target)?;
    }
    if op.scattered {
        let end = u64::from(op.src) + u64::from(op.count);
        if op.count == 0 || op.dst != op.src || end > s.ranges.len() as u64 {
            return Err("its list of chunk ranges does not exist".to_string());
        }
    }
    let same_cut = op.src_buffer == op.dst_buffer || src.same_cut(dst);
    for (first, into, count) in s.chunk_ranges(op) {
        for (buffer, start) in [(src, first), (dst, into)] {
            if u64::from(start) + u64::from(count) > u64::from(buffer.chunks()) {
                return Err(format!(
                    "{}[{start}..{}] does not exist; the buffer has chunks 0..{}",
                    buffer.name,
                    u64::from(start) + u64::from(count),
                    buffer.chunks()
                ));
            }
        }
        if same_cut && first == into {
            continue;
        }
        let (of_src, of_dst) = (
            &lengths[op.src_buffer.0 as usize],
            &lengths[op.dst_buffer.0 as usize],
        );
        if of_src.all.is_some() && of_src.all == of_dst.all {
            continue;
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
    }
    overlap(s, op)
}

/// An operation may not write a chunk twice, nor one that it reads: there is no order within it.
fn overlap(s: &Schedule, op: &Op) -> Result<(), String> {
    let inside = op.src_buffer == op.dst_buffer && op.from == op.to && op.kind != OpKind::Multicast;
    if !op.scattered {
        let apart = op.src + op.count <= op.dst || op.dst + op.count <= op.src;
        return match !inside || apart || op.count == 0 {
            true => Ok(()),
            false => Err("reads and writes the same chunk; go through scratch".to_string()),
        };
    }
    let mut written: Vec<(u32, u32)> = (s.chunk_ranges(op))
        .filter(|range| range.2 > 0)
        .map(|(_, dst, count)| (dst, dst + count))
        .collect();
    written.sort_unstable();
    if let Some(pair) = written.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        return Err(format!(
            "writes {}[{}] twice; list it once",
            s.buffer(op.dst_buffer).name,
            pair[1].0
        ));
    }
    let clash = |(src, _, count): (u32, u32, u32)| {
        let after = written.partition_point(|&(_, end)| end <= src);
        count > 0 && written.get(after).is_some_and(|w| w.0 < src + count)
    };
    match inside && s.chunk_ranges(op).any(clash) {
        true => Err("reads and writes the same chunk; go through scratch".to_string()),
        false => Ok(()),
    }
}
