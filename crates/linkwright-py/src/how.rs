//! `How`: how a schedule runs on a described machine, and what the run records.

use linkwright_core::machine::Machine as Described;
use linkwright_core::{Issue, Skew, TimePs};
use linkwright_sim::placement::Placement;
use linkwright_sim::{run, trace};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// Endpoints by rank, or `shuffle:SEED`.
#[derive(Clone, Debug, PartialEq, FromPyObject, IntoPyObject)]
pub enum Places {
    List(Vec<u32>),
    Text(String),
}

/// Declares each field of `How` once, with its default.
macro_rules! how {
    ($(#[$about:meta])* $($field:ident: $kind:ty = $usual:tt,)*) => {
        $(#[$about])*
        #[pyclass(frozen, eq, get_all, module = "linkwright._native")]
        #[derive(Clone, Debug, PartialEq)]
        pub struct How {
            $(pub $field: $kind,)*
        }

        #[pymethods]
        impl How {
            #[new]
            #[pyo3(signature = (*, $($field=$usual),*))]
            #[allow(clippy::too_many_arguments)] // the keywords of one Python class
            fn new($($field: $kind),*) -> Self {
                How { $($field),* }
            }

            /// The same with other values of the fields that are named.
            ///
            /// Args:
            ///     changes: fields of `How` by name.
            /// Returns:
            ///     Another `How`.
            #[pyo3(signature = (**changes: "object"))]
            fn but<'py>(
                this: &Bound<'py, Self>,
                changes: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, Self>> {
                let fields = PyDict::new(this.py());
                $(fields.set_item(stringify!($field), this.getattr(stringify!($field))?)?;)*
                if let Some(changes) = changes {
                    fields.update(changes.as_mapping())?;
                }
                Ok(this.get_type().call((), Some(&fields))?.cast_into()?)
            }

            /// The fields that differ from the usual ones.
            fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
                let usual = this.get_type().call0()?;
                let mut changes = Vec::new();
                for field in [$(stringify!($field)),*] {
                    let value = this.getattr(field)?;
                    if !value.eq(usual.getattr(field)?)? {
                        changes.push(format!("{field}={}", value.repr()?));
                    }
                }
                Ok(format!("How({})", changes.join(", ")))
            }
        }
    };
}

how! {
    /// How a schedule runs on a described machine, and what is recorded of it. It never changes; `but` derives another.
    ///
    /// Attributes:
    ///     issue: `blocking`, `window(k)`, `batch(k)` or `unlimited`; None: that of the machine.
    ///     path: the name of a path of the machine; None: its first.
    ///     skew: when ranks arrive: `none`, `uniform:2us`, `late:RANK:2us` or `list:0us,1us,...`; None: together.
    ///     placement: the endpoint of each rank, or `shuffle:SEED`; None: in the order of endpoints.
    ///     grid: the sides of a machine whose grid is open; None: found by its fabric.
    ///     launch_ps: what a library takes to start the collective on a rank that has arrived.
    ///     channels: equal channels that every message stands for; None: those of the path.
    ///     across: the most that one message carries from node to node, bytes of data per second; None: links alone limit it.
    ///     sends: messages of a library that every message from node to node stands for; below 1, each is a part of one,
    ///         and still one to its process; None: one for each of `channels`.
    ///     arithmetic: whether combining takes time.
    ///     operations_per_s: the rate of computes; a schedule that has some needs it, unless its path has a protocol.
    ///     seed: the seed of random arrivals and of noise.
    ///     noise: whether the noise of the machine acts, if its file has any; each seed is another launch.
    ///     buffer_sets: sets of buffers between which repetitions alternate.
    ///     serial_starts: whether transfers of a rank start one after another, whatever their lanes.
    ///     stop_ps: the time beyond which the simulation ends with a `SimError`, for callers that want only the fastest;
    ///         None: never. Of no effect on an allreduce on a path with a protocol, which times one run among several.
    ///     links: whether to keep the load of every link, for `Answer.links`.
    ///     operations: whether to keep the times of every operation, for `Answer.operations`, `path` and `slack_ps`.
    ///     messages: whether to keep the latency of every message, for `Answer.messages`.
    ///     bins: into how many bins of time at most to cut the busy time of each link, for `Answer.timeline`; 0: no timeline.
    ///     trace: whether to keep what `Answer.trace` writes.
    issue: Option<String> = None,
    path: Option<String> = None,
    skew: Option<String> = None,
    placement: Option<Places> = None,
    grid: Option<Vec<u32>> = None,
    launch_ps: u64 = 0,
    channels: Option<u32> = None,
    across: Option<u64> = None,
    sends: Option<f64> = None,
    arithmetic: bool = true,
    operations_per_s: Option<f64> = None,
    seed: u64 = 0,
    noise: bool = false,
    buffer_sets: u32 = 1,
    serial_starts: bool = false,
    stop_ps: Option<u64> = None,
    links: bool = false,
    operations: bool = false,
    messages: bool = false,
    bins: u32 = 0,
    trace: bool = false,
}

impl How {
    /// Convert to the simulator's options for `machine`.
    pub fn on(&self, machine: &Described) -> PyResult<run::How> {
        let issue: Option<Issue> = parsed(&self.issue).map_err(errors::issue)?;
        let skew: Option<Skew> = parsed(&self.skew).map_err(errors::skew)?;
        if let Some(sends) = self.sends.filter(|n| !(n.is_finite() && *n > 0.0)) {
            let message = format!("sends {sends}: a message stands for a number above 0 of others");
            return Err(errors::raise("UsageError", message));
        }
        Ok(run::How {
            path: self.path.clone(),
            issue: issue.or(machine.issue()).unwrap_or_default(),
            placement: placement(self.placement.as_ref())?,
            skew: skew.unwrap_or(Skew::None),
            launch: TimePs(self.launch_ps),
            channels: self.channels,
            across: self.across,
            sends: self.sends,
            grid: self.grid.clone().unwrap_or_default(),
            arithmetic: self.arithmetic,
            operations_per_s: self.operations_per_s,
            seed: self.seed,
            noise: self.noise,
            operations: self.operations || self.trace || self.bins > 0,
            bins: match self.trace {
                true => self.bins.max(trace::BINS),
                false => self.bins,
            },
            messages: self.messages,
            buffer_sets: self.buffer_sets,
            serial_starts: self.serial_starts,
            stop_at: self.stop_ps.map_or(TimePs::MAX, TimePs),
        })
    }
}

fn parsed<T: std::str::FromStr>(text: &Option<String>) -> Result<Option<T>, T::Err> {
    text.as_ref().map(|text| text.parse()).transpose()
}

fn placement(given: Option<&Places>) -> PyResult<Placement> {
    let text = match given {
        None => return Ok(Placement::default()),
        Some(Places::List(list)) => return Ok(Placement::List(list.clone())),
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
