//! The head of a schedule: how much there is of everything, and the buffers that its collective needs.

use super::outcome::VerifyError;
use crate::ir::{Buffer, Owner, Schedule, MAX_CHUNKS, MAX_OPS, MAX_RANKS};
use crate::spec::{Collective, Spec};

/// Check everything but the operations.
pub(super) fn check(schedule: &Schedule) -> Result<(), VerifyError> {
    counts(schedule)?;
    for id in 0..schedule.buffers.len() {
        buffer(schedule, id)?;
    }
    sets(schedule)?;
    layout(schedule)
}

fn counts(s: &Schedule) -> Result<(), VerifyError> {
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
    if s.spec.out_of_place && !s.spec.collective.is_in_place() {
        return error(format!(
            "{} is never in place; leave `out_of_place` out",
            s.spec.collective.name()
        ));
    }
    if s.element_bytes == 0 {
        return error("elements of 0 bytes; at least 1 is needed".to_string());
    }
    Ok(())
}

fn buffer(s: &Schedule, id: usize) -> Result<(), VerifyError> {
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
    parts(s, buffer).or_else(&error)?;
    match buffer.owner {
        Owner::One(one) if one.0 >= s.ranks + s.memories => error(format!(
            "belongs to participant {one}, which does not exist; there are {} ranks and {} memories",
            s.ranks, s.memories
        )),
        _ => Ok(()),
    }
}

/// Parts are of an uneven exchange, one for each rank, and can be counted.
fn parts(s: &Schedule, buffer: &Buffer) -> Result<(), String> {
    let Some(parts) = &buffer.parts else {
        return Ok(());
    };
    let uneven = s.spec.collective.is_uneven() && buffer.owner == Owner::Ranks;
    if !uneven || parts.firsts.len() != s.ranks as usize + 1 {
        let text = "has parts of ranks; only alltoallv, dispatch and combine do, one for each rank";
        return Err(text.to_string());
    }
    let most = parts.classes.iter().max().copied().unwrap_or(0);
    let units = u128::from(parts.starts[buffer.blocks as usize]) * u128::from(s.elements);
    let classes = u64::from(most) * u64::from(buffer.slices);
    if units / u128::from(parts.of) > 1 << 50 || classes >= u64::from(MAX_CHUNKS) {
        return Err("has more elements or classes than are counted; use fewer".to_string());
    }
    let mut classes = (0..s.ranks).map(|rank| {
        let blocks = parts.blocks_of(rank);
        let mut held = parts.classes[blocks.start as usize..blocks.end as usize].to_vec();
        held.sort_unstable();
        held.windows(2).any(|pair| pair[0] == pair[1])
    });
    match buffer.name == "input" && classes.any(|twice| twice) {
        true => Err("has a class twice at one rank; number them apart".to_string()),
        false => Ok(()),
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
    /// Blocks of lengths of their own.
    Parts,
}

/// Who must have a buffer that the spec speaks of.
#[derive(Clone, Copy)]
enum Whose {
    Everyone,
    Root,
}

/// The buffers that a spec speaks of.
fn needed(spec: &Spec) -> &'static [(&'static str, Cut, Whose)] {
    use {Cut::*, Whose::*};
    match spec.collective {
        Collective::Allreduce if spec.out_of_place => {
            &[("input", Vector, Everyone), ("output", Vector, Everyone)]
        }
        Collective::Reduce if spec.out_of_place => {
            &[("input", Vector, Everyone), ("output", Vector, Root)]
        }
        Collective::Broadcast if spec.out_of_place => {
            &[("input", Vector, Root), ("output", Vector, Everyone)]
        }
        Collective::ReduceScatter if spec.out_of_place => {
            &[("input", PerRank, Everyone), ("output", Block, Everyone)]
        }
        Collective::Allgather if spec.out_of_place => {
            &[("input", Block, Everyone), ("output", PerRank, Everyone)]
        }
        Collective::Allreduce | Collective::Broadcast | Collective::Reduce => {
            &[("output", Vector, Everyone)]
        }
        Collective::ReduceScatter | Collective::Allgather | Collective::Barrier => {
            &[("output", PerRank, Everyone)]
        }
        Collective::Gather => &[("input", Block, Everyone), ("output", PerRank, Root)],
        Collective::Scatter => &[("input", PerRank, Root), ("output", Block, Everyone)],
        Collective::Alltoall => &[("input", PerRank, Everyone), ("output", PerRank, Everyone)],
        Collective::Alltoallv | Collective::Dispatch | Collective::Combine => {
            &[("input", Parts, Everyone), ("output", Parts, Everyone)]
        }
        Collective::Pattern => &[],
    }
}

/// The buffers that the spec speaks of exist where it needs them, and are cut as it counts chunks.
fn layout(s: &Schedule) -> Result<(), VerifyError> {
    let name = s.spec.collective.name();
    let error = |problem: String| VerifyError::Shape(format!("{name}: {problem}"));
    let (mut slices, mut vector) = (None, None);
    for &(buffer, cut, whose) in needed(&s.spec) {
        let missing = || error(format!("there is no buffer `{buffer}`; declare it"));
        let known = s.buffer(s.buffer_named(buffer).ok_or_else(missing)?);
        owner(s, known, whose).map_err(error)?;
        blocks(s, known, cut).map_err(error)?;
        let blocks = if cut == Cut::Vector { known.blocks } else { 0 };
        if *slices.get_or_insert(known.slices) != known.slices
            || *vector.get_or_insert(blocks) != blocks
        {
            let problem =
                "`input` and `output` have different blocks, or slices per block; cut them alike";
            return Err(error(problem.to_string()));
        }
    }
    Ok(())
}

fn owner(s: &Schedule, buffer: &Buffer, whose: Whose) -> Result<(), String> {
    let (owned, who) = match whose {
        Whose::Root => {
            let root = s.spec.root;
            (
                buffer.owner.includes(root, s.ranks),
                format!("the root, rank {root},"),
            )
        }
        Whose::Everyone => {
            let all = buffer.owner == Owner::Ranks;
            let alone = s.ranks == 1 && buffer.owner.includes(0, 1);
            (all || alone, "every rank".to_string())
        }
    };
    match owned {
        true => Ok(()),
        false => Err(format!("{who} needs a buffer `{}`", buffer.name)),
    }
}

fn blocks(s: &Schedule, buffer: &Buffer, cut: Cut) -> Result<(), String> {
    if (cut == Cut::Parts) != buffer.parts.is_some() {
        return Err(format!(
            "buffer `{}` must have blocks {}",
            buffer.name,
            if cut == Cut::Parts {
                "of lengths of their own: state its parts"
            } else {
                "of equal lengths"
            }
        ));
    }
    let blocks = match cut {
        Cut::Parts => return Ok(()),
        Cut::Vector => buffer.blocks,
        Cut::PerRank => s.ranks,
        Cut::Block => 1,
    };
    let parts = if cut == Cut::Block { s.ranks } else { 1 };
    // The tokens of a barrier have no bytes.
    let size = s.spec.collective == Collective::Barrier
        || u64::from(buffer.mul) * u64::from(parts) == u64::from(buffer.div);
    match buffer.blocks == blocks && size {
        true => Ok(()),
        false => Err(format!(
            "buffer `{}` is {}/{} of the vector in {} blocks; it must be 1/{parts} in {blocks}",
            buffer.name, buffer.mul, buffer.div, buffer.blocks
        )),
    }
}
