//! Rank-symmetric collectives of very many ranks, simulated as one rank and its twin.
//!
//! A folded program (see `linkwright_schedule::symmetric`) says what every rank does. Where all ranks do that at the
//! same times, it does not matter whom a rank sends to: when its message arrives there, a message of the same operation
//! arrives at the rank itself. Two ranks that send to each other therefore have the times of all:
//!
//! ```text
//!   all ranks    ... -> r-1 -> r -> r+1 -> ...
//!   twins                    A <-> B
//! ```
//!
//! The order-free pass (`pass/`) simulates the `Folded::twins` like any schedule. The times are those of every rank,
//! and the totals are those of one rank times their number. This needs a fabric whose endpoints are alike, ranks that
//! arrive together, and operations that take equally long at every rank. What the pass leaves to the engine is refused
//! here: where several things happen at one instant, the engine goes by ids, which tell ranks apart.

use crate::error::SimError;
use crate::fabrics;
use crate::placement::Placement;
use crate::run::{answer, path, sized, Answer, How};
use crate::setup::Issue;
use linkwright_core::machine::{Engine, Path, Scratch};
use linkwright_core::{Machine, Skew, TimePs};
use linkwright_schedule::collectives::program;
use linkwright_schedule::{verify, Shape};
use std::borrow::Cow;

/// Most ranks whose schedule is proved as a whole.
const MOST_PROVED: u32 = 128;

/// Fold algorithm `key` for `shape` as `machine` and its path need it, prove it, and simulate one rank on behalf of all;
/// [`SimError::Unsuited`] where none can represent all.
pub fn simulate(
    key: &str,
    shape: &Shape,
    machine: &Machine,
    how: &How,
) -> Result<Answer, SimError> {
    let program = program(key, shape)?;
    let machine = match machine.ranks() {
        0 => Cow::Owned(sized(machine, shape.ranks.min(2), &how.grid)?),
        _ => Cow::Borrowed(machine),
    };
    if !fabrics::lend(&machine)?.character().endpoints_alike {
        return Err(unsuited(format!(
            "fabric `{}` of machine `{}`: its endpoints are not alike; use a machine with fabric `loggp` or \
             `crossbar`, or fewer ranks",
            machine.fabric_kind(),
            machine.name()
        )));
    }
    let path = path(&machine, how.path.as_deref())?;
    check_run(how, path)?;
    if machine.open_size().is_none() {
        how.placement.place(&machine, shape.ranks, 0)?; // the others have room, too
    }
    prove(key, shape, path.fused_combine)?;
    let folded = program.fold(path.fused_combine)?;
    if let Some(problem) = folded.unequal(path.per_run > TimePs::ZERO) {
        return Err(unsuited(problem));
    }
    let found = answer(&machine, &folded.twins(), how, Some(shape.ranks))?;
    Ok(Answer {
        simulation: found.simulation.of_all(shape.ranks),
        ..found
    })
}

/// Prove the schedule of all ranks; of too many, that of as few as half of them, or a quarter, ...
fn prove(key: &str, shape: &Shape, fused: bool) -> Result<(), SimError> {
    let mut fewer = shape.clone();
    while fewer.ranks > MOST_PROVED {
        fewer = halved(fewer);
    }
    verify(&program(key, &fewer)?.fold(fused)?.unfold())?;
    Ok(())
}

/// The same shape with half of the ranks; a grid with half of its longest side.
fn halved(mut shape: Shape) -> Shape {
    shape.ranks = match shape.grid.iter_mut().max() {
        None => shape.ranks / 2,
        Some(side) => {
            *side /= 2;
            shape.grid.iter().product()
        }
    };
    shape.root = shape.root.min(shape.ranks - 1);
    shape
}

fn unsuited(problem: String) -> SimError {
    SimError::Unsuited { problem }
}

/// Refuse choices that tell ranks apart, or that need the schedule of all.
fn check_run(how: &How, path: &Path) -> Result<(), SimError> {
    let problem = if path.protocol.is_some() {
        "the path runs an allreduce in windows and several times; use another path"
    } else if path.signal || path.phase_start > TimePs::ZERO {
        "the path announces its data by signals, or starts its steps; use another path"
    } else if path.memory.is_some() || path.engine == Engine::Rank {
        "its ranks move their data themselves, one thing at a time; use another path"
    } else if path.scratch == Scratch::Own {
        "the path gives every arrival scratch of its own; use another path"
    } else if matches!(how.issue, Issue::Window(k) if k > 1) {
        "a window frees its places one by one; use blocking, batch(k) or unlimited issue"
    } else if how.skew != Skew::None {
        "ranks that arrive at different times are not alike; let them arrive together"
    } else if how.placement != Placement::Identity {
        "one rank that represents all has no place of its own; omit the placement"
    } else if how.launch > TimePs::ZERO {
        "a library starts its collectives as schedules of all ranks; leave the launch out"
    } else if how.noise {
        "noise delays each rank differently; leave it out"
    } else if how.operations {
        "operations are forgotten on the way, so that none can be shown"
    } else {
        return Ok(());
    };
    Err(unsuited(format!("{problem}, or fewer ranks")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_ranks_keep_their_grid_and_their_root() {
        let shape = Shape::new(1 << 12, 64).with_grid(64, 64).with_root(4095);
        let quarter = halved(halved(shape));
        assert_eq!((quarter.ranks, quarter.grid), (1 << 10, vec![32, 32]));
        assert_eq!(quarter.root, 1023);
        assert_eq!(halved(Shape::new(1001, 8)).ranks, 500);
    }

    #[test]
    fn programs_of_many_ranks_are_proved_by_fewer() {
        for (key, ranks) in [
            ("allreduce/ring", 100_000),
            ("alltoall/pairwise", 1000),
            ("allgather/bruck", 1001),
        ] {
            prove(key, &Shape::new(ranks, 1 << 20), true).unwrap();
            prove(key, &Shape::new(ranks, 1 << 20), false).unwrap();
        }
        let grid = Shape::new(1 << 12, 1 << 12).with_grid(64, 64);
        prove("allreduce/recursive_doubling_bandwidth", &grid, true).unwrap();
    }
}
