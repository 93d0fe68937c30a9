//! What every executor can do, and the list of them.
//!
//! ```text
//!   applicability   can this executor run this schedule? ok, or waived with the reason
//!   prepare         compile the schedule, once
//!   execute         run it once and give back all memory: what tests and `verify` look at
//!   run             one launch: warm up, sample, check; times leave in columns
//! ```
//!
//! A new executor is a file with an [`Executor`] and one line in [`REGISTRY`].

use crate::error::Result;
use crate::guard::Drops;
use crate::reference::Reference;
use crate::sampling::relative_half_width;
use crate::state::{Data, State};
use crate::threads::Threads;
use linkwright_core::Skew;
use linkwright_schedule::ir::Schedule;
use std::time::Duration;

/// Whether an executor can serve a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applicability {
    /// It can.
    Applicable,
    /// It can, with more ranks than cores: times are those of a time-shared machine.
    Oversubscribed {
        /// Ranks of the schedule.
        ranks: u32,
        /// Cores for them.
        cores: u32,
    },
    /// It cannot, for this reason.
    Waived(String),
}

/// One number an executor found out about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// Name in snake case.
    pub key: &'static str,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: &'static str,
}

/// Runs schedules.
pub trait Executor: Send {
    /// Finds out what the executor needs to know of the machine. Calling it again changes nothing.
    fn calibrate(&mut self) -> Vec<Calibrated>;

    /// Whether it can run this schedule.
    fn applicability(&self, schedule: &Schedule) -> Applicability;

    /// Makes a schedule ready to run.
    fn prepare<'a>(&self, schedule: &'a Schedule, data: Data) -> Result<Box<dyn Prepared + 'a>>;
}

/// A schedule that is ready to run.
pub trait Prepared: Send {
    /// Runs once on freshly filled data and returns all memory, unchecked.
    fn execute(&mut self) -> Result<State>;

    /// One launch: fresh threads and memory, then samples by the rules of measurement.
    fn run(&mut self, options: &RunOptions) -> Result<Launch>;
}

/// How the repetitions within a sample follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repetition {
    /// Back to back where that is allowed and the data are small, else after a barrier.
    #[default]
    Auto,
    /// A barrier before each, outside the timed region.
    Barrier,
    /// One after the other; only for collectives that none can leave before all have entered.
    BackToBack,
}

/// How to run.
#[derive(Clone)]
pub struct RunOptions<'a> {
    /// Samples wanted.
    pub samples: usize,
    /// At most so many batches of warm-up.
    pub warmup_at_most: usize,
    /// Wall-clock limit of the launch; at least one sample is taken.
    pub time_budget: Duration,
    /// Arrival of ranks.
    pub skew: Skew,
    /// How repetitions follow each other.
    pub repetition: Repetition,
    /// Repetitions per sample; `None`: as the clock demands.
    pub batch: Option<u32>,
    /// Stop early when the relative half width of the launch's interval falls below this.
    pub settle_within: Option<f64>,
    /// Compare the data with the postcondition before and after the samples.
    pub check: bool,
    /// Of random arrival.
    pub seed: u64,
    /// Asked a few times per second whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions {
            samples: 100,
            warmup_at_most: 50,
            time_budget: Duration::from_secs(2),
            skew: Skew::None,
            repetition: Repetition::Auto,
            batch: None,
            settle_within: None,
            check: true,
            seed: 0,
            cancelled: None,
        }
    }
}

impl RunOptions<'_> {
    /// Whether the samples of a launch agree; looked at when the count has doubled only, because it sorts.
    pub(crate) fn settled(&self, values: &[f64]) -> bool {
        let Some(within) = self.settle_within else {
            return false;
        };
        values.len().is_power_of_two() && relative_half_width(values).is_some_and(|w| w <= within)
    }
}

/// What one launch yielded; columns are indexed by sample, or by sample * ranks + rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Ranks.
    pub ranks: u32,
    /// Time of the slowest rank since it started, per repetition, undisturbed samples only.
    pub slowest_ns: Vec<f64>,
    /// Start of every rank since the first one started.
    pub start_ns: Vec<f64>,
    /// Finish of every rank since the first one started.
    pub finish_ns: Vec<f64>,
    /// As `slowest_ns`, of samples that were dropped.
    pub disturbed_ns: Vec<f64>,
    /// The very first repetition, cold.
    pub first_ns: f64,
    /// Of five repetitions in a row without a barrier the first and the last, medians; `None` where
    /// repetitions must be kept apart or are too short to be timed singly.
    pub row_ns: Option<(f64, f64)>,
    /// Repetitions per sample.
    pub batch: u32,
    /// Whether they followed each other without a barrier.
    pub back_to_back: bool,
    /// Batches before the first sample.
    pub warmup_batches: usize,
    /// Whether they agreed at the end.
    pub warmed_up: bool,
    /// Samples dropped, by reason.
    pub drops: Drops,
    /// Whether the time budget ended before all samples were taken.
    pub out_of_time: bool,
    /// More ranks than cores: ranks parked instead of spinning.
    pub oversubscribed: bool,
    /// Processor of every rank; -1: not pinned.
    pub cpus: Vec<i32>,
    /// Why ranks could not be pinned.
    pub unpinned: Option<String>,
    /// Elements compared with the postcondition.
    pub checked_elements: u64,
}

/// An executor of the list.
pub struct Entry {
    /// As typed by people.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// A few sentences.
    pub description: &'static str,
    /// Makes one.
    pub make: fn() -> Box<dyn Executor>,
}

/// Executors that run schedules on this machine.
pub static REGISTRY: &[Entry] = &[
    Entry {
        name: "reference",
        summary: "data only: one operation after the other by id, exact, no time",
        description: "Runs every operation on real buffers in the order of ids, on one thread. It \
                      is the judge of all other executors and needs no hardware.",
        make: || Box::new(Reference),
    },
    Entry {
        name: "threads",
        summary: "ranks are threads of this process, one core each, with shared memory",
        description:
            "One-sided copies into the memory of the peer, announced by counters in cache \
                      lines of their own; messages of at most 48 bytes travel in the counter's \
                      line. Ranks are pinned to cores in topology order and spin; with more ranks \
                      than cores they park and the results are marked oversubscribed.",
        make: || Box::new(Threads::new()),
    },
];

/// The executor called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}
