//! The head of a plan and its steps, from their attributes.

use super::attributes::Attributes;
use crate::error::{PlanError, Result};
use crate::msccl::limits::{DEFAULT_MAX_BYTES, MAX_BLOCKS, MAX_CELLS, MAX_STEPS, PROTOCOLS};
use crate::msccl::plan::{Goal, Head, Kind, Own, Place, Space, Step, COLLECTIVES};
use linkwright_schedule::ir::{Hint, MAX_CHUNKS};
use linkwright_schedule::{Collective, Spec};
use quick_xml::events::BytesStart;

const ALGO: [&str; 9] = [
    "ngpus",
    "nchunksperloop",
    "nchannels",
    "proto",
    "coll",
    "inplace",
    "outofplace",
    "root",
    "maxBytes",
];
/// Attributes of a step.
pub(super) const STEP: [&str; 16] = [
    "s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep", "op",
    "step", "lane", "hint", "get", "fenced",
];

/// What `<algo>` says.
pub(super) fn head(element: &BytesStart) -> Result<Head> {
    let a = Attributes::of(element, &ALGO)?;
    let ranks: u32 = a.number(0, 1..=1 << 16)?;
    let chunks: u32 = a.number(1, 1..=i64::from(MAX_CHUNKS))?;
    let channels = a.number(2, 1..=1 << 16)?;
    let word = a.text(3)?;
    let Some(protocol) = PROTOCOLS.iter().find(|known| known.name == word) else {
        return a.refuse(3, word, "use Simple, LL or LL128");
    };
    let bytes = match a.values[8] {
        Some(_) => a.signed(8, 0..=i64::MAX)?,
        None => DEFAULT_MAX_BYTES,
    };
    let per_message = match u64::try_from(bytes)
        .unwrap_or(0)
        .div_ceil(u64::from(chunks))
    {
        0 => 1,
        chunk => (protocol.message_bytes / chunk).clamp(1, u64::from(MAX_CHUNKS)) as u32,
    };
    let word = a.text(4)?;
    let collective = COLLECTIVES.iter().find(|known| known.0 == word);
    let Some(&(_, collective)) = collective else {
        let cure = "its result is not defined; name the collective that the plan performs";
        return a.refuse(4, word, cure);
    };
    let in_place = a.number::<u32>(5, 0..=1)? == 1;
    let out_of_place = match a.values[6] {
        Some(_) => a.number::<u32>(6, 0..=1)? == 1,
        None => !in_place,
    };
    let never = !collective.is_in_place();
    if !(out_of_place || in_place && !never) {
        let value = a.values[5].unwrap_or_default();
        let problem = "this plan would run neither in place nor out of place";
        return a.refuse(5, value, problem);
    }
    let root = match a.values[7] {
        Some(_) => a.number(7, 0..=i64::from(ranks) - 1)?,
        None => 0,
    };
    let mut spec = Spec::new(collective, root);
    spec.out_of_place = !in_place && !never;
    let per_rank = match collective {
        Collective::Allgather | Collective::ReduceScatter | Collective::Alltoall => ranks,
        _ => 1,
    };
    if chunks % per_rank != 0 {
        let problem = format!(
            "nchunksperloop=\"{chunks}\" is not a multiple of ngpus=\"{ranks}\"; {word} needs as many \
             chunks for each GPU"
        );
        return Err(PlanError::whole(problem));
    }
    let blocks = match collective {
        Collective::Gather | Collective::Scatter => u64::from(ranks),
        _ => 1,
    };
    let vector = u64::from(chunks) * blocks;
    if vector > MAX_CELLS {
        let problem =
            format!("nchunksperloop=\"{chunks}\": more than {MAX_CELLS} chunks; use fewer");
        return Err(PlanError::whole(problem));
    }
    Ok(Head {
        goal: Goal {
            spec,
            ranks,
            vector: vector as u32,
            fine: 1,
        },
        chunks,
        channels,
        slots: protocol.slots,
        per_message,
    })
}

/// Step number `next` of its thread block.
pub(super) fn step(a: &Attributes<16>, next: u32) -> Result<Step> {
    let s: i64 = a.signed(0, 0..=MAX_STEPS as i64)?;
    if s != i64::from(next) {
        return a.refuse(
            0,
            &s.to_string(),
            &format!("this is step {next} of its thread block"),
        );
    }
    let word = a.text(1)?;
    let Some(kind) = Kind::from_word(word) else {
        return a.refuse(1, word, "use s, r, rcs, rrs, rrc, rrcs, cpy, re or nop");
    };
    let place = |buf: usize, off: usize, used: bool| -> Result<Place> {
        let word = a.text(buf)?;
        let space = Space::ALL.into_iter().find(|space| space.word() == word);
        let Some(space) = space else {
            return a.refuse(buf, word, "use i, o or s");
        };
        let least = if used { 0 } else { -1 };
        let at = a.signed(off, least..=i64::from(MAX_CHUNKS))?;
        let at = u32::try_from(at).unwrap_or(0);
        Ok(Place { space, at })
    };
    let least = i64::from(kind != Kind::Nop);
    let after = match a.signed(7, -1..=i64::from(MAX_BLOCKS) - 1)? {
        -1 => None,
        tb => Some((tb as u32, a.number(8, 0..=MAX_STEPS as i64)?)),
    };
    Ok(Step {
        kind,
        src: place(2, 3, kind.reads())?,
        dst: place(4, 5, kind.writes())?,
        count: a.number(6, least..=i64::from(MAX_CHUNKS))?,
        after,
        announced: a.number::<u32>(9, 0..=1)? == 1,
        own: own(a)?,
    })
}

/// What the file keeps of the operation that the step was written for.
fn own(a: &Attributes<16>) -> Result<Option<Own>> {
    if a.values[10].is_none() {
        return Ok(None);
    }
    let large = i64::from(u32::MAX) - 1;
    let word = a.values[13].unwrap_or("-");
    let Some(hint) = Hint::from_name(word) else {
        return a.refuse(13, word, "use -, +x, -x, +y or -y");
    };
    let flag = |k: usize| match a.values[k] {
        Some(_) => Ok(a.number::<u32>(k, 0..=1)? == 1),
        None => Ok(false),
    };
    Ok(Some(Own {
        op: a.number(10, 0..=large)?,
        step: a.number(11, 0..=large)?,
        lane: a.number::<u32>(12, 0..=255)? as u8,
        hint,
        get: flag(14)?,
        fenced: flag(15)?,
    }))
}
