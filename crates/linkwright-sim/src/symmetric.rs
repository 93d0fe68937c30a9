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
//! The order-free pass (`pass/`) simulates the [`Folded::twins`] like any schedule. The times are those of every rank,
//! and the totals are those of one rank times their number. This needs a fabric whose endpoints are alike, ranks that
//! arrive together, and operations that take equally long at every rank. What the pass leaves to the engine is refused
//! here: where several things happen at one instant, the engine goes by ids, which tell ranks apart.

use crate::error::SimError;
use crate::fabrics;
use crate::limits::{self, Demand};
use crate::outcome::Simulation;
use crate::placement::Placement;
use crate::prepared::Prepared;
use crate::run::{check_room, setup, sized, Answer, How};
use crate::setup::{Issue, Setup};
use linkwright_core::machine::{Engine, OpenSize, Path, Scratch};
use linkwright_core::{EndpointId, Machine, Skew, TimePs};
use linkwright_schedule::collectives::program;
use linkwright_schedule::ir::{Combine, OpKind};
use linkwright_schedule::symmetric::Folded;
use linkwright_schedule::{verify, Shape};

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
    let (program, ranks) = (program(key, shape)?, shape.ranks);
    let (machine, places) = (&of_size(machine, ranks, how)?, places(machine, ranks, how)?);
    let setup = setup(machine, ranks, places, how)?;
    let mut fabric = fabrics::build(machine)?;
    if !fabric.character().endpoints_alike {
        return Err(unsuited(format!(
            "fabric `{}` of machine `{}`: its endpoints are not alike; use a machine with fabric `loggp` or \
             `crossbar`, or simulate every rank",
            machine.fabric_kind(),
            machine.name()
        )));
    }
    check_run(how, &setup.path)?;
    let folded = program.fold(setup.path.fused_combine)?;
    prove(key, shape, setup.path.fused_combine)?;
    if let Some(problem) = folded.unequal(setup.path.per_run > TimePs::ZERO) {
        return Err(unsuited(problem));
    }
    let (frame, units, twins) = (folded.frame(), units(&folded), folded.twins());
    drop(folded);
    let both = Setup {
        placement: setup.placement[..twins.ranks as usize].to_vec(),
        arrivals: Vec::new(),
        alike: true,
        ..setup.clone()
    };
    check_room(&twins, machine, &both)?;
    let prepared = Prepared::new(&twins, &both)?;
    let found = fabric.pass(&prepared)?.ok_or_else(|| {
        let problem = "a batch ends at the instant of an issue; simulate every rank";
        unsuited(problem.to_string())
    })?;
    let simulation = of_all(found.in_range()?, ranks);
    let chain = fabric.longest_chain(&prepared);
    let demand = Demand::of_spec(&frame);
    let limits = limits::problem::find(&demand, &mut *fabric, &setup, machine).limits;
    let own = (chain, units);
    let bounds = limits::schedule::of_frame(&frame, &*fabric, &setup, own, &simulation);
    for each in [&limits, &bounds] {
        each.check(&simulation, machine.fabric_kind())?;
    }
    Ok(Answer {
        messages: None,
        simulation,
        limits,
        bounds,
        setup,
        remark: None,
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

/// What `ranks` ranks do, of which each does what both of `twins` do.
fn of_all(mut twins: Simulation, ranks: u32) -> Simulation {
    let simulated = twins.finish.len() as u64;
    twins.totals = twins.totals.per(simulated).times(u64::from(ranks));
    twins.start.resize(ranks as usize, 0);
    twins.finish.resize(ranks as usize, twins.finish[0]);
    // The links of the twins represent those of all, so they have no names.
    twins.links.names.clear();
    twins
}

/// The machine with as many endpoints as the simulation uses.
fn of_size(machine: &Machine, ranks: u32, how: &How) -> Result<Machine, SimError> {
    match machine.open_size() {
        Some(OpenSize::Count) => Ok(machine.with_endpoints(ranks.min(2) as usize)?),
        _ => sized(machine, ranks, &how.grid),
    }
}

/// Where the ranks are; on a machine of open size, only the twins.
fn places(machine: &Machine, ranks: u32, how: &How) -> Result<Vec<EndpointId>, SimError> {
    match machine.open_size() {
        Some(_) => Ok((0..ranks.min(2)).map(EndpointId).collect()),
        None => how.placement.place(machine, ranks, 0),
    }
}

/// Arithmetic units of a rank: each lane that combines, and the handling of arrivals.
fn units(folded: &Folded) -> u64 {
    let combining = (folded.ops().iter()).filter(|op| op.combine == Combine::Reduce);
    let mut lanes: Vec<Option<u8>> = combining
        .map(|op| (op.kind == OpKind::Local).then_some(op.lane))
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes.len().max(1) as u64
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
        "ranks that arrive at different times are not alike; let them arrive together, stream them"
    } else if how.placement != Placement::Identity {
        "one rank that represents all has no place of its own; omit the placement, stream the ranks"
    } else if how.launch > TimePs::ZERO {
        "a library starts its collectives as schedules of all ranks; leave the launch out"
    } else if how.operations {
        "operations are forgotten on the way, so that none can be shown"
    } else {
        return Ok(());
    };
    Err(unsuited(format!("{problem}, or simulate every rank")))
}
