//! Options and results of a launch.

use crate::guard::Drops;
use crate::sampling::Sampling;
use linkwright_core::Skew;

/// How to run.
#[derive(Clone, Default)]
pub struct RunOptions<'a> {
    /// How much to measure.
    pub sampling: Sampling,
    /// Arrival of ranks.
    pub skew: Skew,
    /// Repetitions per sample; `None`: as many as the clock needs.
    pub batch: Option<u32>,
    /// Do not compare the data with the postcondition before and after the samples.
    pub unchecked: bool,
    /// Of random arrival.
    pub seed: u64,
    /// Asked a few times per second whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// The result of one launch; columns are indexed by sample, or by sample * ranks + rank.
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
    /// Of a traffic pattern, the latencies of messages in ns, each from when its initiator takes it up until the
    /// initiator knows it to be complete; empty for a collective.
    pub message_ns: Vec<f64>,
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
    /// More ranks than cores: ranks parked instead of busy-waiting.
    pub oversubscribed: bool,
    /// Processor of every rank; -1: not pinned.
    pub cpus: Vec<i32>,
    /// Why ranks could not be pinned.
    pub unpinned: Option<String>,
    /// Elements compared with the postcondition.
    pub checked_elements: u64,
}
