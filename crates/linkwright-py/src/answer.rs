//! `Answer`: the result of simulating a schedule; each field is converted to Python when it is first read.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use linkwright_sim::limits::Limit as LowerBound;
use linkwright_sim::states::States;
use linkwright_sim::trace::Trace;
use linkwright_sim::{run, slack, Simulation, Spent};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::errors;
use crate::hints::{self, Column, Typed};
use crate::how::How;
use crate::schedule::Schedule;

/// Return `ps` picoseconds as a `linkwright.base.units.Time`.
fn time(py: Python<'_>, ps: u64) -> PyResult<Typed<'_, hints::Time>> {
    static TIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let kind = TIME.import(py, "linkwright.base.units", "Time")?;
    kind.call1((ps,)).map(Typed::new)
}

/// A lower bound on the time of every schedule of a problem, or of one schedule.
///
/// Attributes:
///     name: `latency`, `port`, `cut`, `arrival`, `links`, `memory` or `compute`.
///     time: no schedule takes less.
///     time_us: the same in microseconds.
///     what: what it is about, such as `into rank 3`.
///     size_bytes: the bytes that must pass there; 0 where none do.
///     rate: the most that passes there, in bytes per second; None where no bytes do.
#[pyclass(frozen, eq, module = "linkwright._native")]
#[derive(Clone, Debug, PartialEq)]
pub struct Limit(pub LowerBound);

#[pymethods]
impl Limit {
    #[getter]
    fn name(&self) -> &str {
        self.0.name
    }

    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Typed<'py, hints::Time>> {
        time(py, self.0.time.0)
    }

    #[getter]
    fn time_us(&self, py: Python<'_>) -> PyResult<f64> {
        self.time(py)?.object().getattr("us")?.extract()
    }

    #[getter]
    fn what(&self) -> &str {
        &self.0.what
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.0.bytes
    }

    #[getter]
    fn rate(&self) -> Option<f64> {
        self.0.rate.map(|rate| rate.0)
    }

    /// The arithmetic behind the time, in words.
    #[getter]
    fn derivation(&self, py: Python<'_>) -> PyResult<String> {
        let (bytes, what) = (self.0.bytes, &self.0.what);
        Ok(match self.0.rate {
            Some(rate) => {
                let format = py.import("linkwright.base.units")?.getattr("format_rate")?;
                format!("{bytes} B {what} / {}", format.call1((rate.0,))?)
            }
            None if bytes > 0 => format!("{bytes} B {what}"),
            None => format!("{what}, without data"),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<Limit {}: {} us, {}>",
            self.0.name,
            self.time(py)?.object().getattr("us")?,
            self.derivation(py)?
        ))
    }
}

/// When each rank began and ended, by rank in picoseconds.
///
/// Attributes:
///     start_ps: when it arrived, or began the run that is timed.
///     finish_ps: when it had nothing more to do.
///     runs_ps: of an allreduce on a path with a protocol, by (arrival or run, rank), flat; else empty.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Ranks {
    start_ps: Column<u64>,
    finish_ps: Column<u64>,
    runs_ps: Column<u64>,
}

/// How long the ranks took, each from its own start, in picoseconds; quantiles lie between two ranks.
///
/// Attributes:
///     mean_ps: the mean.
///     least_ps: the fastest rank.
///     median_ps: half of the ranks took at most this.
///     p95_ps: 95 % of the ranks took at most this.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Spread {
    mean_ps: f64,
    least_ps: u64,
    median_ps: f64,
    p95_ps: f64,
}

/// Counts over all messages.
///
/// Attributes:
///     transfers: the transfers; a multicast counts once for each target.
///     notices: messages without data.
///     bytes: the bytes that were delivered.
///     byte_hops: bytes times the links that they crossed.
///     hops_max: the most links that a transfer crossed.
///     hops_mean: the mean.
///     peak_load: the most messages that held or wanted one link at one instant.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Counts {
    transfers: u64,
    notices: u64,
    bytes: u64,
    byte_hops: u64,
    hops_max: u32,
    hops_mean: f64,
    peak_load: u32,
}

/// The load of every link, as columns.
///
/// Attributes:
///     name: such as `core 3 out`.
///     busy_ps: for how long it moved something.
///     bytes: what crossed it.
///     peak: the most messages that held or wanted it at one instant.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Links {
    name: Column<String>,
    busy_ps: Column<u64>,
    bytes: Column<u64>,
    peak: Column<u32>,
}

/// The critical path: stretches as columns, in the order of time and without gaps.
///
/// Attributes:
///     operation: its number in the schedule; -1 while a rank has not arrived.
///     spent: what the time was spent on.
///     begin_ps: from when.
///     end_ps: until when.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Path {
    operation: Column<i64>,
    spent: Column<String>,
    begin_ps: Column<u64>,
    end_ps: Column<u64>,
}

/// Links and ranks over time.
///
/// Attributes:
///     width_ps: how long a bin is.
///     bins: how many there are.
///     busy_share: the share of a bin for which a link was busy, by (link, bin), flat.
///     rank, state, begin_ps, end_ps: what ranks do, by interval.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Timeline {
    width_ps: u64,
    bins: usize,
    busy_share: Column<f32>,
    rank: Column<u32>,
    state: Column<u8>,
    begin_ps: Column<u64>,
    end_ps: Column<u64>,
}

/// The times of all operations, as columns.
///
/// Attributes:
///     issued_ps: when its lane took it up.
///     delivered_ps: when it was delivered, to the last target.
///     done_ps: when the last target had handled it; of notices, which none handles, when they arrived.
///     slack_ps: how much later it could surely end without a later end of the whole; None where barriers of the
///         machine order operations.
///     network: which network it took.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Operations {
    issued_ps: Column<u64>,
    delivered_ps: Column<u64>,
    done_ps: Column<u64>,
    slack_ps: Option<Column<u64>>,
    network: Column<u8>,
}

/// Single messages.
///
/// Attributes:
///     latency_ps: by message, from when its lane takes it up until it is delivered, to the last target.
///     sent_bytes: by participant, what it gives to others.
#[pyclass(frozen, get_all, module = "linkwright._native")]
pub struct Messages {
    latency_ps: Column<u64>,
    sent_bytes: Column<u64>,
}

/// What the simulation of a schedule gives. What `how` did not ask to keep is refused.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Answer {
    found: run::Answer,
    how: Py<How>,
    schedule: Option<Py<Schedule>>,
    ranks: PyOnceLock<Py<Ranks>>,
    links: PyOnceLock<Py<Links>>,
    path: PyOnceLock<Py<Path>>,
    timeline: PyOnceLock<Py<Timeline>>,
    operations: PyOnceLock<Py<Operations>>,
    messages: PyOnceLock<Py<Messages>>,
}

impl Answer {
    /// Wrap the result of `schedule`, which is the one that ran, or of a program without a schedule.
    pub fn new(found: run::Answer, how: Py<How>, schedule: Option<Py<Schedule>>) -> Self {
        Answer {
            found,
            how,
            schedule,
            ranks: PyOnceLock::new(),
            links: PyOnceLock::new(),
            path: PyOnceLock::new(),
            timeline: PyOnceLock::new(),
            operations: PyOnceLock::new(),
            messages: PyOnceLock::new(),
        }
    }

    fn simulation(&self) -> &Simulation {
        &self.found.simulation
    }

    /// Return the schedule if `what` was recorded; else an error that names the option to set.
    fn ran(&self, kept: bool, what: &str, cure: &str) -> PyResult<&Py<Schedule>> {
        let schedule = self.schedule.as_ref().filter(|_| kept);
        schedule.ok_or_else(|| {
            let message = format!("{what}: not recorded; ask with How({cure})");
            errors::raise("UsageError", message)
        })
    }
}

#[pymethods]
impl Answer {
    /// How it was asked.
    #[getter]
    fn how(&self) -> &Py<How> {
        &self.how
    }

    /// The schedule that ran: as the machine and its path need it; None of a sweep.
    #[getter]
    fn schedule(&self) -> Option<&Py<Schedule>> {
        self.schedule.as_ref()
    }

    /// From the first arrival of a rank to the last finish; of a timed run among several, that of its slowest rank.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Typed<'py, hints::Time>> {
        time(py, self.simulation().makespan.0)
    }

    /// The time of the slowest rank, from its own start.
    #[getter]
    fn slowest<'py>(&self, py: Python<'py>) -> PyResult<Typed<'py, hints::Time>> {
        let (starts, finishes) = (&self.simulation().start, &self.simulation().finish);
        let took = finishes.iter().zip(starts).map(|(end, start)| end - start);
        time(py, took.max().unwrap_or(0))
    }

    /// When each rank began and ended.
    #[getter]
    fn ranks(&self, py: Python<'_>) -> PyResult<&Py<Ranks>> {
        self.ranks.get_or_try_init(py, || {
            let simulation = self.simulation();
            let ranks = Ranks {
                start_ps: Column::new(py, simulation.start.clone()),
                finish_ps: Column::new(py, simulation.finish.clone()),
                runs_ps: Column::new(py, simulation.runs.concat()),
            };
            Py::new(py, ranks)
        })
    }

    /// How long the ranks took.
    #[getter]
    fn spread(&self) -> Spread {
        let spread = self.simulation().spread();
        Spread {
            mean_ps: spread.mean,
            least_ps: spread.least,
            median_ps: spread.median,
            p95_ps: spread.p95,
        }
    }

    /// Counts over all messages.
    #[getter]
    fn counts(&self) -> Counts {
        let totals = &self.simulation().totals;
        Counts {
            transfers: totals.transfers,
            notices: totals.notices,
            bytes: totals.bytes,
            byte_hops: totals.byte_hops,
            hops_max: totals.max_hops,
            hops_mean: totals.mean_hops(),
            peak_load: self.simulation().peak_load(),
        }
    }

    /// What the time was spent on: the share of the critical path by cause.
    #[getter]
    fn critical<'py>(&self, py: Python<'py>) -> PyResult<Typed<'py, hints::Shares>> {
        let shares = PyDict::new(py);
        for (cause, share) in Spent::ALL.iter().zip(self.simulation().critical.shares()) {
            shares.set_item(cause.name(), share)?;
        }
        Ok(Typed::new(shares))
    }

    /// What no schedule of this problem beats; None where nothing is known.
    #[getter]
    fn limit(&self) -> Option<Limit> {
        self.found.limits.largest().cloned().map(Limit)
    }

    /// What this schedule cannot beat; None where nothing is known.
    #[getter]
    fn bound(&self) -> Option<Limit> {
        self.found.bounds.largest().cloned().map(Limit)
    }

    /// What a reader must know of it, such as where the schedule got less than the protocol of its path.
    #[getter]
    fn remark(&self) -> Option<&str> {
        self.found.remark.as_deref()
    }

    /// Whether one rank was simulated on behalf of all.
    #[getter]
    fn folded(&self) -> bool {
        self.found.setup.alike.is_some()
    }

    /// The load of every link.
    #[getter]
    fn links(&self, py: Python<'_>) -> PyResult<&Py<Links>> {
        self.ran(self.how.get().links, "links", "links=True")?;
        self.links.get_or_try_init(py, || {
            let links = &self.simulation().links;
            let links = Links {
                name: Column::texts(py, links.names.iter().map(String::as_str))?,
                busy_ps: Column::new(py, links.busy_ps.clone()),
                bytes: Column::new(py, links.bytes.clone()),
                peak: Column::new(py, links.peak.clone()),
            };
            Py::new(py, links)
        })
    }

    /// The critical path.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<&Py<Path>> {
        let kept = self.simulation().operations.is_some();
        self.ran(kept, "critical path", "operations=True")?;
        self.path.get_or_try_init(py, || {
            let all = &self.simulation().critical.segments;
            let operation = |op: Option<u32>| op.map_or(-1, i64::from);
            let path = Path {
                operation: Column::new(py, all.iter().map(|s| operation(s.op)).collect()),
                spent: Column::texts(py, all.iter().map(|s| s.spent.name()))?,
                begin_ps: Column::new(py, all.iter().map(|s| s.from_ps).collect()),
                end_ps: Column::new(py, all.iter().map(|s| s.to_ps).collect()),
            };
            Py::new(py, path)
        })
    }

    /// Links and ranks over time.
    #[getter]
    fn timeline(&self, py: Python<'_>) -> PyResult<&Py<Timeline>> {
        let schedule = self.ran(self.how.get().bins > 0, "timeline", "bins=200")?;
        self.timeline.get_or_try_init(py, || {
            let (setup, simulation) = (&self.found.setup, self.simulation());
            let ordered = schedule.get().ordered();
            let states = py.detach(|| States::of(ordered, setup, simulation));
            let states = states.map_err(errors::sim)?;
            let last = states.end_ps.iter().copied().max().unwrap_or(0);
            let end_ps = simulation.end_ps().max(last); // several runs end later than the one that is timed
            let bins = (simulation.links.bins.as_ref())
                .map(|bins| bins.as_ref().clone().table(end_ps))
                .expect("bins were asked for");
            let used = bins.used(end_ps);
            let timeline = Timeline {
                width_ps: bins.width_ps,
                bins: used,
                busy_share: Column::new(py, bins.shares(used)),
                rank: Column::new(py, states.rank),
                state: Column::new(py, states.state),
                begin_ps: Column::new(py, states.begin_ps),
                end_ps: Column::new(py, states.end_ps),
            };
            Py::new(py, timeline)
        })
    }

    /// The times of all operations.
    #[getter]
    fn operations(&self, py: Python<'_>) -> PyResult<&Py<Operations>> {
        let kept = self.simulation().operations.is_some();
        let schedule = self.ran(kept, "times of operations", "operations=True")?;
        self.operations.get_or_try_init(py, || {
            let (ordered, simulation) = (schedule.get().ordered(), self.simulation());
            let times = simulation.operations.as_ref().expect("they were asked for");
            let slack = py.detach(|| slack(ordered, simulation));
            let networks = &self.found.setup.networks;
            let network = ordered.ops().iter().map(|op| networks.of(op));
            // Notices are never handled by a target; what counts is their arrival.
            let seen = times.visible.iter().zip(&times.delivered);
            let done = seen.map(|(&visible, &delivered)| match visible {
                u64::MAX => delivered,
                visible => visible,
            });
            let operations = Operations {
                issued_ps: Column::new(py, times.issued.clone()),
                done_ps: Column::new(py, done.collect()),
                delivered_ps: Column::new(py, times.delivered.clone()),
                slack_ps: slack.map_err(errors::sim)?.map(|ps| Column::new(py, ps)),
                network: Column::new(py, network.collect()),
            };
            Py::new(py, operations)
        })
    }

    /// Single messages.
    #[getter]
    fn messages(&self, py: Python<'_>) -> PyResult<&Py<Messages>> {
        let kept = self.found.messages.as_ref();
        let Some(messages) = kept else {
            let message = "messages: not recorded; ask with How(messages=True)";
            return Err(errors::raise("UsageError", message));
        };
        self.messages.get_or_try_init(py, || {
            let messages = Messages {
                latency_ps: Column::new(py, messages.latency_ps.clone()),
                sent_bytes: Column::new(py, messages.sent_bytes.clone()),
            };
            Py::new(py, messages)
        })
    }

    /// Write a trace that ui.perfetto.dev opens.
    ///
    /// Args:
    ///     file: where to.
    fn trace(&self, py: Python<'_>, file: &str) -> PyResult<()> {
        let schedule = self.ran(self.how.get().trace, "trace", "trace=True")?.get();
        // Keep the error number: the caller that named the file explains a full disk.
        let failed =
            |error: io::Error| PyOSError::new_err((error.raw_os_error(), error.to_string()));
        py.detach(|| {
            let trace = Trace::new(schedule.ordered(), &self.found.setup, self.simulation());
            let trace = trace.map_err(errors::sim)?;
            let mut out = BufWriter::new(File::create(file).map_err(failed)?);
            trace
                .write(&mut out)
                .and_then(|()| out.flush())
                .map_err(failed)
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Answer: {}>", self.time(py)?.object().str()?))
    }
}
