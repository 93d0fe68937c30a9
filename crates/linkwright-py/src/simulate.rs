//! Schedules on described machines.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use linkwright_core::issue::Issue;
use linkwright_core::{EndpointId, TimePs};
use linkwright_schedule::ir::Schedule as Ordered;
use linkwright_sim::fabric::{LinkTable, Msg, MsgKind};
use linkwright_sim::placement::Placement;
use linkwright_sim::run::{check, lowered, remark, run, Modelled, Options as Choices};
use linkwright_sim::states::States;
use linkwright_sim::trace::{self, Trace};
use linkwright_sim::{fabrics as models, slack, CriticalPath, Spent};
use numpy::IntoPyArray;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::machine::Machine;
use crate::options::Options;
use crate::schedule::Schedule;

/// All fabrics: `key, summary, description, source` each.
#[pyfunction]
pub fn fabrics(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |entry: &models::Entry| {
        let kind = entry.kind;
        let row = PyDict::new(py);
        row.set_item("key", kind.key)?;
        row.set_item("summary", kind.summary)?;
        row.set_item("description", kind.description)?;
        row.set_item("source", kind.source)?;
        Ok(row)
    };
    models::FABRICS.iter().map(entry).collect()
}

/// `schedule` as `machine` and its path need it: combinations after the copy where the path cannot
/// combine while it writes, an allreduce in the windows and runs of a path with a protocol, barriers as notices where
/// the fabric has none; itself, where it will do as it is.
#[pyfunction]
#[pyo3(signature = (schedule, machine, path=None))]
pub fn lower<'py>(
    schedule: Bound<'py, Schedule>,
    machine: &Machine,
    path: Option<&str>,
) -> PyResult<Bound<'py, Schedule>> {
    let (py, ordered, described) = (schedule.py(), schedule.get().ordered(), &machine.described);
    let made = py.detach(|| lowered(ordered, described, path));
    match made.map_err(errors::sim)? {
        Some(ordered) => Bound::new(py, Schedule::new(ordered)),
        None => Ok(schedule),
    }
}

/// Where `schedule`, before it is lowered, gets less than the protocol of the path, what a reader must know of that.
#[pyfunction]
#[pyo3(signature = (schedule, machine, path=None))]
pub fn protocol_remark(
    py: Python<'_>,
    schedule: &Schedule,
    machine: &Machine,
    path: Option<&str>,
) -> PyResult<Option<String>> {
    let (ordered, described) = (schedule.ordered(), &machine.described);
    py.detach(|| remark(ordered, described, path))
        .map_err(errors::sim)
}

/// Simulate `schedule` on `machine`.
///
/// Options: `path, issue` (`blocking`, `window(k)`, `batch(k)`, `unlimited`), `skew, launch_ps` (of a
/// library's collective, on each rank), `serial_starts` (transfers of a rank start one after another, whatever their
/// lanes), `channels` (equal ones that a message stands for), `placement` (one endpoint per rank, or `shuffle:SEED`), `grid, no_arithmetic, seed, operations, messages, links, trace` (a
/// file to write); all may be left out. Columns: `start_ps, finish_ps` by rank; `runs_ps` by (run, rank), arrivals
/// first, of an allreduce on a path with a protocol, else empty; with `operations` also
/// `op_issued_ps, op_delivered_ps, op_done_ps, op_network` by operation, and the critical `path`; with `messages`
/// also `message_ps` by message and `sent_bytes` by participant; with `links` the load of every link; with `bins`
/// (of time, at most, for each link) the `timeline`: links and ranks over time.
#[pyfunction]
#[pyo3(signature = (schedule, machine, options=None))]
pub fn simulate<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    machine: &Machine,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut asked = Options::new(options);
    let seed = asked.take("seed")?.unwrap_or(0);
    let operations = asked.take("operations")?.unwrap_or(false);
    let links = asked.take("links")?.unwrap_or(false);
    let trace: Option<String> = asked.take("trace")?;
    let bins = asked.take("bins")?.unwrap_or(0);
    let mut choices = choices(&mut asked, machine, seed)?;
    choices.record_operations = operations || trace.is_some() || bins > 0;
    choices.bins = match trace {
        Some(_) => bins.max(trace::BINS),
        None => bins,
    };
    asked.finish()?;
    let described = &machine.described;
    let ordered = schedule.proved(py)?;
    let modelled = py
        .detach(|| run(ordered, described, &choices))
        .map_err(errors::sim)?;
    if let Some(file) = trace {
        py.detach(|| write_trace(&file, schedule, &modelled))?;
    }
    let timeline = (bins > 0).then(|| timeline(py, ordered, &modelled));
    let networks = modelled.setup.networks.clone();
    let slack = operations.then(|| slack(ordered, &modelled.simulation));
    let found = table(py, modelled, operations, links)?;
    found.set_item("timeline", timeline.transpose()?)?;
    if let Some(slack) = slack.transpose().map_err(errors::sim)? {
        found.set_item("op_slack_ps", slack.map(|ps| ps.into_pyarray(py)))?;
    }
    if operations {
        let of = |op| networks.of(op);
        let column: Vec<u8> = ordered.ops().iter().map(of).collect();
        found.set_item("op_network", column.into_pyarray(py))?;
    }
    Ok(found)
}

/// How a schedule runs, by the options that `simulate` names.
pub fn choices(asked: &mut Options<'_, '_>, machine: &Machine, seed: u64) -> PyResult<Choices> {
    Ok(Choices {
        path: asked.take("path")?,
        issue: issue(asked, machine)?,
        placement: placement(asked.take("placement")?)?,
        skew: asked.skew()?,
        launch: TimePs(asked.take("launch_ps")?.unwrap_or(0)),
        channels: asked.take("channels")?,
        grid: asked.take::<Vec<u32>>("grid")?.unwrap_or_default(),
        arithmetic: !asked.take("no_arithmetic")?.unwrap_or(false),
        operations_per_s: asked.take("operations_per_s")?,
        seed,
        record_operations: false,
        bins: 0,
        messages: asked.take("messages")?.unwrap_or(false),
        buffer_sets: asked.take("buffer_sets")?.unwrap_or(1),
        serial_starts: asked.take("serial_starts")?.unwrap_or(false),
    })
}

/// Raise if `machine` lacks the path or `options` do not suit this number of `ranks`, before anything runs.
#[pyfunction]
#[pyo3(signature = (machine, ranks, options, seed=0))]
pub fn check_options(
    machine: &Machine,
    ranks: u32,
    options: &Bound<'_, PyDict>,
    seed: u64,
) -> PyResult<()> {
    let mut asked = Options::new(Some(options));
    let choices = choices(&mut asked, machine, seed)?;
    asked.finish()?;
    check(&machine.described, ranks, &choices).map_err(errors::sim)
}

fn write_trace(file: &str, schedule: &Schedule, modelled: &Modelled) -> PyResult<()> {
    // With its number: whoever named the file knows the cure of a full disk.
    let failed = |error: io::Error| PyOSError::new_err((error.raw_os_error(), error.to_string()));
    let (setup, simulation) = (&modelled.setup, &modelled.simulation);
    let trace = Trace::new(schedule.ordered(), setup, simulation).map_err(errors::sim)?;
    let mut out = BufWriter::new(File::create(file).map_err(failed)?);
    trace
        .write(&mut out)
        .and_then(|()| out.flush())
        .map_err(failed)
}

/// Columns of a simulation, by name.
pub fn table(
    py: Python<'_>,
    modelled: Modelled,
    operations: bool,
    links: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let simulation = modelled.simulation;
    let table = PyDict::new(py);
    table.set_item("remark", modelled.remark)?;
    table.set_item("makespan_ps", simulation.makespan.0)?;
    table.set_item("peak_load", simulation.peak_load())?;
    table.set_item("start_ps", simulation.start.into_pyarray(py))?;
    table.set_item("finish_ps", simulation.finish.into_pyarray(py))?;
    let runs = simulation.runs.into_iter().flatten().collect::<Vec<u64>>();
    table.set_item("runs_ps", runs.into_pyarray(py))?;
    let totals = simulation.totals;
    table.set_item("transfers", totals.transfers)?;
    table.set_item("notices", totals.notices)?;
    table.set_item("bytes", totals.bytes)?;
    table.set_item("byte_hops", totals.byte_hops)?;
    table.set_item("hops_max", totals.max_hops)?;
    table.set_item("hops_mean", totals.mean_hops())?;
    let shares = PyDict::new(py);
    for (cause, share) in Spent::ALL.iter().zip(simulation.critical.shares()) {
        shares.set_item(cause.name(), share)?;
    }
    table.set_item("critical", shares)?;
    let (limit, bound) = (modelled.limits.largest(), modelled.bounds.largest());
    table.set_item("limit_ps", limit.map(|limit| limit.time.0))?;
    table.set_item("limit_name", limit.map(|limit| limit.name))?;
    table.set_item("bound_ps", bound.map(|bound| bound.time.0))?;
    table.set_item("bound_name", bound.map(|bound| bound.name))?;
    if let Some(messages) = modelled.messages {
        table.set_item("message_ps", messages.latency_ps.into_pyarray(py))?;
        table.set_item("sent_bytes", messages.sent_bytes.into_pyarray(py))?;
    }
    if links {
        table.set_item("links", link_table(py, simulation.links)?)?;
    }
    if let Some(times) = simulation.operations.filter(|_| operations) {
        table.set_item("op_issued_ps", times.issued.into_pyarray(py))?;
        // Notices are never handled by a target; what counts is their arrival.
        let seen = times.visible.iter().zip(&times.delivered);
        let done: Vec<u64> = seen
            .map(|(&visible, &delivered)| {
                if visible == u64::MAX {
                    delivered
                } else {
                    visible
                }
            })
            .collect();
        table.set_item("op_done_ps", done.into_pyarray(py))?;
        table.set_item("op_delivered_ps", times.delivered.into_pyarray(py))?;
        table.set_item("path", path_table(py, &simulation.critical)?)?;
    }
    Ok(table)
}

/// Busy shares by link and bin, and what ranks do when.
fn timeline<'py>(
    py: Python<'py>,
    schedule: &Ordered,
    modelled: &Modelled,
) -> PyResult<Bound<'py, PyDict>> {
    let (setup, simulation) = (&modelled.setup, &modelled.simulation);
    let states = py.detach(|| States::of(schedule, setup, simulation));
    let states = states.map_err(errors::sim)?;
    let table = PyDict::new(py);
    if let Some(bins) = &simulation.links.bins {
        let last = states.end_ps.iter().copied().max().unwrap_or(0);
        let end_ps = simulation.end_ps().max(last); // several runs end later than the one that is timed
        let bins = bins.as_ref().clone().table(end_ps);
        let used = bins.used(end_ps);
        table.set_item("width_ps", bins.width_ps)?;
        table.set_item("bins", used)?;
        table.set_item("busy_share", bins.shares(used).into_pyarray(py))?;
    }
    table.set_item("rank", states.rank.into_pyarray(py))?;
    table.set_item("state", states.state.into_pyarray(py))?;
    table.set_item("begin_ps", states.begin_ps.into_pyarray(py))?;
    table.set_item("end_ps", states.end_ps.into_pyarray(py))?;
    Ok(table)
}

/// The stretches of the critical path in the order of time; -1 for the operation while a rank has not arrived.
fn path_table<'py>(py: Python<'py>, path: &CriticalPath) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    let stretches = || path.segments.iter();
    let operations = stretches().map(|s| s.op.map_or(-1, i64::from));
    table.set_item("operation", operations.collect::<Vec<_>>().into_pyarray(py))?;
    let spent = stretches().map(|s| s.spent.name());
    table.set_item("spent", spent.collect::<Vec<_>>())?;
    let from = stretches().map(|s| s.from_ps).collect::<Vec<_>>();
    table.set_item("from_ps", from.into_pyarray(py))?;
    let to = stretches().map(|s| s.to_ps).collect::<Vec<_>>();
    table.set_item("to_ps", to.into_pyarray(py))?;
    Ok(table)
}

fn link_table(py: Python<'_>, links: LinkTable) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    table.set_item("name", links.names)?;
    table.set_item("busy_ps", links.busy_ps.into_pyarray(py))?;
    table.set_item("bytes", links.bytes.into_pyarray(py))?;
    table.set_item("peak", links.peak.into_pyarray(py))?;
    Ok(table)
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
        if fabric.no_route(from, to, network).is_some() {
            return None;
        }
        let message = Msg {
            network,
            ..Msg::new(0, MsgKind::Put, from, to, bytes)
        };
        Some((fabric.hops(from, to, network), fabric.quiet(&message).0))
    };
    Ok(pairs.iter().map(one).collect())
}

/// The policy that is asked for, or the machine's, or the usual one.
fn issue(asked: &mut Options<'_, '_>, machine: &Machine) -> PyResult<Issue> {
    let stated = machine.described.issue().unwrap_or_default();
    Ok(asked.issue()?.unwrap_or(stated))
}

/// A placement as Python gives it.
#[derive(FromPyObject)]
enum Places {
    List(Vec<u32>),
    Text(String),
}

fn placement(given: Option<Places>) -> PyResult<Placement> {
    let text = match given {
        None => return Ok(Placement::default()),
        Some(Places::List(list)) => return Ok(Placement::List(list)),
        Some(Places::Text(text)) => text,
    };
    let seed = text
        .strip_prefix("shuffle:")
        .and_then(|seed| seed.parse().ok());
    seed.map(Placement::Shuffle).ok_or_else(|| {
        let message = format!(
            "placement `{text}` is not understood; give one endpoint per rank, `[0, 1, 2]`, or write `shuffle:SEED`"
        );
        errors::raise("UsageError", message)
    })
}
