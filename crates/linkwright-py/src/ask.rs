//! Simulate schedules on described machines, from Python.

use linkwright_core::EndpointId;
use linkwright_sim::fabric::{Msg, MsgKind};
use linkwright_sim::fabrics as models;
use linkwright_sim::run::{self, lowered, remark};
use linkwright_sim::Placement;
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::errors;
use crate::hints::{self, row, Typed};
use crate::how::How;
use crate::machine::Machine;
use crate::schedule::Schedule;

/// All fabrics: `key, summary, description, source` each.
#[pyfunction]
pub fn fabrics(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::DescribedRow>>> {
    let entry = |entry: &models::Entry| {
        let kind = entry.kind;
        Ok(row!(py, ..kind.{key, summary, description, source}))
    };
    models::FABRICS.iter().map(entry).collect()
}

/// `schedule` as `machine` and its path need it: combinations after the copy where the path cannot
/// combine while it writes, an allreduce in the windows and runs of a path with a protocol, barriers as notices where
/// the fabric has none; itself, where it will do as it is, or is the result of an earlier call. `placement` has the
/// endpoint of each rank.
#[pyfunction]
#[pyo3(signature = (schedule, machine, path=None, placement=None))]
pub fn lower<'py>(
    schedule: Bound<'py, Schedule>,
    machine: &Machine,
    path: Option<&str>,
    placement: Option<Vec<u32>>,
) -> PyResult<Bound<'py, Schedule>> {
    let placement = placement.map_or(Placement::Identity, Placement::List);
    ready(schedule, machine, path, &placement)
}

fn ready<'py>(
    schedule: Bound<'py, Schedule>,
    machine: &Machine,
    path: Option<&str>,
    placement: &Placement,
) -> PyResult<Bound<'py, Schedule>> {
    if schedule.get().is_lowered() {
        return Ok(schedule);
    }
    let (py, ordered, described) = (schedule.py(), schedule.get().ordered(), &machine.described);
    let made = py.detach(|| lowered(ordered, described, path, placement));
    match made.map_err(errors::sim)? {
        Some(ordered) => Bound::new(py, Schedule::lowered(ordered)),
        None => Ok(schedule),
    }
}

/// Simulate `schedule` on `machine`: as the machine and its path need it (`lower`), proved, and as `how` says.
#[pyfunction]
pub fn ask(
    machine: Bound<'_, Machine>,
    schedule: Bound<'_, Schedule>,
    how: Bound<'_, How>,
) -> PyResult<Answer> {
    let (py, machine) = (schedule.py(), machine.get());
    let (described, path) = (&machine.described, how.get().path.as_deref());
    let choices = how.get().on(described)?;
    let remark = match schedule.get().is_lowered() {
        true => None,
        false => {
            let ordered = schedule.get().ordered();
            let remark = py.detach(|| remark(ordered, described, path, &choices.placement));
            remark.map_err(errors::sim)?
        }
    };
    let ready = ready(schedule, machine, path, &choices.placement)?;
    let ordered = ready.get().proved(py)?;
    let found = py.detach(|| run::ask(described, ordered, &choices));
    let found = run::Answer {
        remark,
        ..found.map_err(errors::sim)?
    };
    Ok(Answer::new(found, how.unbind(), Some(ready.unbind())))
}

/// Raise if `machine` lacks the path or `how` does not suit this number of `ranks`, before anything runs.
#[pyfunction]
pub fn check_how(machine: &Machine, ranks: u32, how: &How) -> PyResult<()> {
    let described = &machine.described;
    run::check(described, ranks, &how.on(described)?).map_err(errors::sim)
}

/// Hops and unloaded time of single puts between endpoints: `(hops, picoseconds)` for each of
/// `pairs`, with `bytes` on `network`; `None` for a pair that the network does not connect.
#[pyfunction]
#[pyo3(signature = (machine, pairs, bytes, network=0))]
pub fn quiet(
    machine: &Machine,
    pairs: Vec<(u32, u32)>,
    bytes: u64,
    network: u8,
) -> PyResult<Vec<Option<(u32, u64)>>> {
    let fabric = models::build(&machine.described).map_err(errors::sim)?;
    let one = |&(from, to): &(u32, u32)| {
        let (from, to) = (EndpointId(from), EndpointId(to));
        if fabric.network().no_route(from, to, network).is_some() {
            return None;
        }
        let message = Msg {
            network,
            ..Msg::new(0, MsgKind::Put, from, to, bytes)
        };
        Some((
            fabric.network().hops(from, to, network),
            fabric.quiet(&message).0,
        ))
    };
    Ok(pairs.iter().map(one).collect())
}
