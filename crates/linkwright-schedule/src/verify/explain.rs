//! Why a chunk is wrong: the history of this one chunk, replayed with exact contributions.
//!
//! Walking backwards from the wrong chunk collects the few moves that it is made of; replaying
//! them forwards finds where a contribution came in twice, or who wrote last.

use super::cells::Cells;
use super::contributions::{Exact, Value};
use super::difference::{difference, Counted, Due};
use super::outcome::{wrong, Place, VerifyError};
use crate::ir::{Combine, Schedule};
use crate::spec::Expected;
use std::collections::HashMap;

/// Contributions times moves that a replay may handle before it gives up the details.
const LIMIT: u64 = 50_000_000;

/// In place of a chunk: what an aggregation has combined and not yet delivered.
const ON_THE_WAY: usize = usize::MAX;

/// One chunk moved by one operation.
struct Move {
    step: u32,
    from: usize,
    into: usize,
    combine: Combine,
}

/// The error for a chunk that does not end as `expected`.
#[cold]
pub(super) fn explain(schedule: &Schedule, place: Place, expected: Expected) -> VerifyError {
    let cells = &match Cells::all(schedule) {
        Ok(cells) => cells,
        Err(error) => return error,
    };
    let (who, buffer, chunk) = place;
    let name = &schedule.buffer(buffer).name;
    if !cells.touched(who, buffer).contains(&chunk) {
        let problem = "never gets data; send some there".to_string();
        return wrong(schedule, None, place, problem);
    }
    let (moves, origins) = history(schedule, cells, place);
    let at = cells.index(who, buffer, chunk);
    let step = moves.iter().rev().find(|m| m.into == at).map(|m| m.step);
    if name == "input" {
        let problem = "is overwritten, but the input must stay as it was; write to output or \
                       scratch"
            .to_string();
        return wrong(schedule, step, place, problem);
    }
    if moves.len() as u64 * u64::from(schedule.ranks) > LIMIT {
        let problem = "does not end with the contributions it should; verify with fewer ranks to \
                       learn which"
            .to_string();
        return wrong(schedule, step, place, problem);
    }
    let expected = match expected {
        Expected::Held { chunk } => {
            let holders = schedule.holders();
            match *holders.at(chunk / schedule.buffer(buffer).slices) {
                [rank] => Expected::One { rank, chunk },
                ref ranks => {
                    let problem = format!(
                        "does not end with what ranks {ranks:?} have of class {chunk}, each once; combine each there once"
                    );
                    return wrong(schedule, step, place, problem);
                }
            }
        }
        other => other,
    };
    let due = due(schedule, expected);
    let mut values = initial(schedule, &origins);
    let mut doubled = HashMap::new();
    for m in &moves {
        let value = values.get(&m.from).cloned().unwrap_or_default();
        let there = values.entry(m.into).or_default();
        match m.combine {
            Combine::Replace => *there = value,
            Combine::Reduce => there.add(&value),
        }
        for &(rank, chunk, often) in &*there.0 {
            if often > due.often {
                doubled.entry((rank, chunk)).or_insert(m.step);
            }
        }
    }
    let found = values.remove(&at).unwrap_or_default();
    let each = |&(rank, chunk, often): &(u32, u32, u64)| Counted {
        chunk,
        first: rank,
        len: 1,
        often,
    };
    let found: Vec<Counted> = found.0.iter().map(each).collect();
    let (problem, culprit) = difference(&found, &due);
    let step = culprit.and_then(|c| doubled.get(&c).copied()).or(step);
    wrong(schedule, step, place, problem)
}

fn due(schedule: &Schedule, expected: Expected) -> Due {
    let (ranks, chunk, often) = match expected {
        Expected::All { chunk } => {
            let often = (schedule.spec.multiplicity(schedule.ranks)).unwrap_or(u64::MAX);
            (0..schedule.ranks, chunk, often)
        }
        Expected::One { rank, chunk } => (rank..rank + 1, chunk, 1),
        Expected::Any | Expected::Held { .. } => (0..0, 0, 1),
    };
    Due {
        chunk,
        ranks,
        often,
    }
}

/// The moves that the final contents of `place` are made of, in order, and the chunks involved.
fn history(schedule: &Schedule, cells: &Cells, place: Place) -> (Vec<Move>, HashMap<usize, Place>) {
    let index = |(who, buffer, chunk): Place| cells.index(who, buffer, chunk);
    let mut wanted = HashMap::from([(index(place), place)]);
    let mut origins = wanted.clone();
    let mut moves = Vec::new();
    for op in schedule.ops().iter().rev() {
        let mut sources = Vec::new();
        for (src, dst, count) in schedule.chunk_ranges(op) {
            for k in 0..count {
                let read = |&from: &u32| (from, op.src_buffer, src + k);
                let read: Vec<Place> = schedule.sources(op).iter().map(read).collect();
                let from = match read[..] {
                    [one] => index(one),
                    _ => ON_THE_WAY,
                };
                let before = moves.len();
                for &target in schedule.targets(op) {
                    let into = index((target, op.dst_buffer, dst + k));
                    if !wanted.contains_key(&into) {
                        continue;
                    }
                    if op.combine == Combine::Replace {
                        wanted.remove(&into);
                    }
                    moves.push(Move {
                        step: op.step,
                        from,
                        into,
                        combine: op.combine,
                    });
                }
                if moves.len() == before {
                    continue;
                }
                if from == ON_THE_WAY {
                    let combined = read.iter().map(|&place| index(place));
                    moves.extend(meeting(op.step, combined));
                }
                sources.extend(read);
            }
        }
        for source in sources {
            wanted.insert(index(source), source);
            origins.insert(index(source), source);
        }
    }
    moves.reverse();
    (moves, origins)
}

/// The moves, last first, by which the chunks `places` of an aggregation meet on the way.
fn meeting(
    step: u32,
    places: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator,
) -> impl Iterator<Item = Move> {
    places.enumerate().rev().map(move |(nth, from)| Move {
        step,
        from,
        into: ON_THE_WAY,
        combine: match nth {
            0 => Combine::Replace,
            _ => Combine::Reduce,
        },
    })
}

fn initial(schedule: &Schedule, origins: &HashMap<usize, Place>) -> HashMap<usize, Exact> {
    let first = |&(who, buffer, chunk): &Place| {
        let buffer = schedule.buffer(buffer);
        let first = schedule.spec.initial(schedule.ranks, who, buffer, chunk)?;
        Some(Exact::one(who, first))
    };
    (origins.iter())
        .filter_map(|(&index, place)| Some((index, first(place)?)))
        .collect()
}
