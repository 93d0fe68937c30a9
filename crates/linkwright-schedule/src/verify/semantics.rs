//! Run by id, every chunk ends with exactly the contributions that the spec demands.

use super::cells::Cells;
use super::contributions::{Exact, Fingerprint, Value, UNCOUNTED};
use super::explain::explain;
use super::outcome::{wrong, Place, Verified, VerifyError};
use crate::ir::{Buffer, BufferId, Combine, Holders, Op, Schedule};
use crate::spec::{Collective, Expected};
use std::ops::Range;

/// Chunk moves times ranks up to which multisets are affordable.
const EXACT_LIMIT: u64 = 1 << 20;

/// Check the contents of all chunks.
pub(super) fn check(
    schedule: &Schedule,
    cells: &Cells,
    report: &mut Verified,
) -> Result<(), VerifyError> {
    report.chunk_moves = cells.moves;
    let work = (cells.moves + cells.touched).saturating_mul(schedule.ranks.into());
    report.exact = work <= EXACT_LIMIT;
    countable(schedule)?;
    match report.exact {
        true => replay::<Exact>(schedule, cells),
        false => replay::<Fingerprint>(schedule, cells),
    }
}

/// A repeated allreduce counts contributions p^(repeats - 1) times: refuse more than can be counted.
fn countable(schedule: &Schedule) -> Result<(), VerifyError> {
    let (spec, ranks) = (&schedule.spec, schedule.ranks);
    let counted = (spec.multiplicity(ranks)).and_then(|often| often.checked_mul(ranks.into()));
    match !spec.collective.reduces() || counted.is_some_and(|count| count < UNCOUNTED) {
        true => Ok(()),
        false => Err(VerifyError::Shape(format!(
            "{} over {ranks} ranks runs {} times in place, so more than 2^63 contributions add up; repeat it \
             less often, or out of place",
            spec.collective.name(),
            spec.repeats
        ))),
    }
}

pub(super) fn replay<V: Value>(schedule: &Schedule, cells: &Cells) -> Result<(), VerifyError> {
    let mut values = initial::<V>(schedule, cells);
    for op in schedule.ops() {
        if op.moves_data() {
            run(schedule, cells, op, &mut values)?;
        }
    }
    compare(schedule, cells, &values)
}

fn initial<V: Value>(schedule: &Schedule, cells: &Cells) -> Vec<V> {
    let mut values = vec![V::default(); cells.count()];
    let (spec, ranks) = (&schedule.spec, schedule.ranks);
    for participant in 0..ranks {
        for (id, buffer) in buffers(schedule) {
            for chunk in cells.touched(participant, id) {
                if let Some(first) = spec.initial(ranks, participant, buffer, chunk) {
                    values[cells.index(participant, id, chunk)] = V::one(participant, first);
                }
            }
        }
    }
    values
}

fn buffers(schedule: &Schedule) -> impl Iterator<Item = (BufferId, &Buffer)> {
    (0u8..=255).map(BufferId).zip(&schedule.buffers)
}

fn run<V: Value>(
    schedule: &Schedule,
    cells: &Cells,
    op: &Op,
    values: &mut [V],
) -> Result<(), VerifyError> {
    if op.is_single() {
        let value = source(schedule, cells, op, (op.from, op.src), values)?;
        return bring(schedule, cells, op, (op.to, op.dst), &value, values);
    }
    for (src, dst, count) in schedule.chunk_ranges(op) {
        for k in 0..count {
            let value = combined(schedule, cells, op, src + k, values)?;
            for &target in schedule.targets(op) {
                bring(schedule, cells, op, (target, dst + k), &value, values)?;
            }
        }
    }
    Ok(())
}

/// What `op` finds in source chunk `chunk` of all its sources.
fn combined<V: Value>(
    schedule: &Schedule,
    cells: &Cells,
    op: &Op,
    chunk: u32,
    values: &[V],
) -> Result<V, VerifyError> {
    let sources = schedule.sources(op);
    let mut value = source(schedule, cells, op, (sources[0], chunk), values)?;
    for &other in &sources[1..] {
        value.add(&source(schedule, cells, op, (other, chunk), values)?);
    }
    Ok(value)
}

/// What `op` finds in source chunk `chunk` of participant `from`.
#[inline]
fn source<V: Value>(
    schedule: &Schedule,
    cells: &Cells,
    op: &Op,
    (from, chunk): (u32, u32),
    values: &[V],
) -> Result<V, VerifyError> {
    let value = match cells.read(from, op.src_buffer, chunk) {
        Some(place) => values[place].clone(),
        None => first_value(schedule, from, op.src_buffer, chunk),
    };
    match value.is_nothing() {
        false => Ok(value),
        true => {
            let problem = "is read before anything is in it; fill it in an earlier step, \
                           or send a chunk that has data";
            let place = (from, op.src_buffer, chunk);
            Err(empty(schedule, op, place, problem))
        }
    }
}

/// Let `op` bring `value` to a chunk of a target.
#[inline]
fn bring<V: Value>(
    schedule: &Schedule,
    cells: &Cells,
    op: &Op,
    (target, chunk): (u32, u32),
    value: &V,
    values: &mut [V],
) -> Result<(), VerifyError> {
    let there = &mut values[cells.index(target, op.dst_buffer, chunk)];
    if op.combine == Combine::Replace {
        there.clone_from(value);
    } else if there.is_nothing() {
        let problem = "is combined into before anything is in it; replace instead of \
                       reduce, or fill it in an earlier step";
        let place = (target, op.dst_buffer, chunk);
        return Err(empty(schedule, op, place, problem));
    } else {
        there.add(value);
    }
    Ok(())
}

/// What the spec puts into a chunk before anything happens.
fn first_value<V: Value>(schedule: &Schedule, who: u32, id: BufferId, chunk: u32) -> V {
    let first = schedule
        .spec
        .initial(schedule.ranks, who, schedule.buffer(id), chunk);
    first.map_or_else(V::default, |chunk| V::one(who, chunk))
}

#[cold]
fn empty(schedule: &Schedule, op: &Op, place: Place, problem: &str) -> VerifyError {
    wrong(schedule, Some(op.step), place, problem.to_string())
}

/// The chunks of a buffer for which the spec may demand something that is not there untouched.
fn demanded(
    schedule: &Schedule,
    cells: &Cells,
    rank: u32,
    id: BufferId,
    buffer: &Buffer,
) -> Range<u32> {
    if buffer.name == "input" {
        return cells.touched(rank, id);
    }
    let all = 0..buffer.chunks();
    let none = 0..0;
    if buffer.name != "output" || !buffer.owner.includes(rank, schedule.ranks) {
        return none;
    }
    match schedule.spec.collective {
        _ if buffer.parts.is_some() => buffer.held(rank),
        Collective::Reduce | Collective::Gather if rank != schedule.spec.root => none,
        Collective::ReduceScatter if !schedule.spec.out_of_place => {
            rank * buffer.slices..(rank + 1) * buffer.slices
        }
        _ => all,
    }
}

fn compare<V: Value>(schedule: &Schedule, cells: &Cells, values: &[V]) -> Result<(), VerifyError> {
    let spec = &schedule.spec;
    let mut sums: Vec<V> = Vec::new();
    let holders = schedule.holders();
    for rank in 0..schedule.ranks {
        for (id, buffer) in buffers(schedule) {
            let touched = cells.touched(rank, id);
            for chunk in demanded(schedule, cells, rank, id, buffer) {
                let expected = spec.expected(schedule.ranks, rank, buffer, chunk);
                let untouched;
                let found = if touched.contains(&chunk) {
                    &values[cells.index(rank, id, chunk)]
                } else {
                    untouched = first_value(schedule, rank, id, chunk);
                    &untouched
                };
                let right = match expected {
                    Expected::Any => true,
                    Expected::One { rank, chunk } => *found == V::one(rank, chunk),
                    Expected::Held { chunk } => *found == of_holders(&holders, buffer, chunk),
                    Expected::All { chunk } => {
                        let sum = sum_of(schedule, chunk, &mut sums);
                        let right = found == sum && !found.is_beyond_counting();
                        // Ranks share what they passed on, and comparing shared values is immediate.
                        sum.clone_from(found);
                        right
                    }
                };
                if !right {
                    return Err(explain(schedule, (rank, id, chunk), expected));
                }
            }
        }
    }
    Ok(())
}

/// Contribution `chunk` of every rank that has its class.
fn of_holders<V: Value>(holders: &Holders, buffer: &Buffer, chunk: u32) -> V {
    let mut sum = V::default();
    for &rank in holders.at(chunk / buffer.slices) {
        let one = V::one(rank, chunk);
        match sum.is_nothing() {
            true => sum = one,
            false => sum.add(&one),
        }
    }
    sum
}

/// Contribution `chunk` of every rank, as often as the repetitions count it; computed once.
fn sum_of<'a, V: Value>(schedule: &Schedule, chunk: u32, sums: &'a mut Vec<V>) -> &'a mut V {
    let index = chunk as usize;
    if index >= sums.len() {
        sums.resize(index + 1, V::default());
    }
    if sums[index].is_nothing() {
        let often = schedule.spec.multiplicity(schedule.ranks);
        sums[index] = V::all(
            schedule.ranks,
            chunk,
            often.expect("what is not countable was refused"),
        );
    }
    &mut sums[index]
}
