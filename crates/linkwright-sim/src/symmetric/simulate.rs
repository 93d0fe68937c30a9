//! One call from a folded program and a machine to times and limits.

use super::stream;
use crate::error::SimError;
use crate::fabrics;
use crate::limits::{self, Demand};
use crate::mode::Mode;
use crate::placement::Placement;
use crate::run::{setup, sized, Answer, How};
use crate::setup::{Issue, Setup};
use crate::simulated::SimulatedFabric;
use linkwright_core::machine::{Engine, OpenSize, Path, Scratch};
use linkwright_core::{EndpointId, Machine, Skew, TimePs};
use linkwright_schedule::ir::{Combine, OpKind};
use linkwright_schedule::symmetric::{Folded, Program};

/// Fold `program` as `machine` and its path need it, prove it, and simulate it.
pub fn simulate(
    program: Program,
    machine: &Machine,
    how: &How,
    mode: Mode,
) -> Result<Answer, SimError> {
    let ranks = program.ranks();
    let machine = &of_size(machine, ranks, how, mode)?;
    let setup = setup(machine, ranks, places(machine, ranks, how, mode)?, how)?;
    let mut fabric = fabrics::build(machine)?;
    check_fabric(machine, &*fabric, mode)?;
    check_run(how, &setup.path, mode)?;
    let folded = program.fold(setup.path.fused_combine)?;
    folded.verify()?;
    check_program(&folded, machine, &setup, mode)?;
    let (simulation, latency) = stream(&folded, &setup, &mut *fabric, mode)?;
    let simulation = simulation.in_range()?;
    let (frame, units) = (folded.frame(), units(&folded));
    let demand = Demand::of_spec(&frame);
    let limits = limits::problem::find(&demand, &mut *fabric, &setup, machine).limits;
    let own = (latency, units);
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

/// The machine with as many endpoints as the simulation uses.
fn of_size(machine: &Machine, ranks: u32, how: &How, mode: Mode) -> Result<Machine, SimError> {
    match (mode, machine.open_size()) {
        // The representative, and one other rank.
        (Mode::Folded, Some(OpenSize::Count)) => Ok(machine.with_endpoints(ranks.min(2) as usize)?),
        _ => sized(machine, ranks, &how.grid),
    }
}

/// Where the ranks are; on a machine of open size, only those that the simulation uses.
fn places(
    machine: &Machine,
    ranks: u32,
    how: &How,
    mode: Mode,
) -> Result<Vec<EndpointId>, SimError> {
    if mode == Mode::Folded && machine.open_size().is_some() {
        return Ok(vec![EndpointId(0), EndpointId(ranks.min(2) - 1)]);
    }
    how.placement.place(machine, ranks, 0)
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

/// Refuse choices that need a schedule.
fn check_run(how: &How, path: &Path, mode: Mode) -> Result<(), SimError> {
    let folded = mode == Mode::Folded;
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
    } else if folded && how.skew != Skew::None {
        "ranks that arrive at different times are not alike; let them arrive together, stream them"
    } else if folded && how.placement != Placement::Identity {
        "one rank that represents all has no place of its own; omit the placement, stream the ranks"
    } else if how.launch > TimePs::ZERO {
        "a library starts its collectives as schedules of all ranks; leave the launch out"
    } else if how.operations {
        "operations are forgotten on the way, so that none can be shown"
    } else {
        return Ok(());
    };
    let problem = format!("{problem}, or simulate every rank");
    Err(SimError::Unsuited { mode, problem })
}

/// Refuse a fabric that cannot tell the times of each message at once.
fn check_fabric(
    machine: &Machine,
    fabric: &dyn SimulatedFabric,
    mode: Mode,
) -> Result<(), SimError> {
    let (why, use_instead) = match mode {
        Mode::Folded if fabric.character().endpoints_alike => return Ok(()),
        Mode::Streamed if fabric.character().order_free => return Ok(()),
        Mode::Folded => ("its endpoints are not alike", "`loggp` or `crossbar`"),
        Mode::Streamed => (
            "its messages meet each other, so all must be known",
            "`loggp`",
        ),
    };
    let problem = format!(
        "fabric `{}` of machine `{}`: {why}; use a machine with fabric {use_instead}, or simulate every rank",
        machine.fabric_kind(),
        machine.name()
    );
    Err(SimError::Unsuited { mode, problem })
}

/// Refuse ranks that differ from one another, and messages without room.
fn check_program(
    folded: &Folded,
    machine: &Machine,
    setup: &Setup,
    mode: Mode,
) -> Result<(), SimError> {
    let unsuited = |problem: String| Err(SimError::Unsuited { mode, problem });
    let mut lanes = (folded.ops().iter())
        .filter(|op| op.kind != OpKind::Local)
        .map(|op| op.lane);
    let first = lanes.next();
    if lanes.any(|lane| Some(lane) != first) {
        return unsuited("a rank sends from several lanes; simulate every rank".to_string());
    }
    if mode == Mode::Folded {
        if let Some(problem) = folded.unequal(setup.path.per_run > TimePs::ZERO) {
            return unsuited(problem);
        }
    }
    let least = machine.endpoints().iter().filter_map(|e| e.capacity).min();
    let frame = folded.frame();
    let largest = (frame.buffers.iter())
        .map(|b| b.elements(frame.elements) * u64::from(frame.element_bytes))
        .max();
    match least {
        Some(room) if largest.unwrap_or(0) > room.0 => unsuited(
            "a buffer is larger than the memory of an endpoint, so that messages may not fit; \
             simulate every rank"
                .to_string(),
        ),
        _ => Ok(()),
    }
}
