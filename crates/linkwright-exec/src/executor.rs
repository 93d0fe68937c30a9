//! Options and results of a launch.

use crate::guard::Drops;
use crate::sampling::Sampling;

/// When ranks arrive at the collective.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Skew {
    /// All at once.
    #[default]
    None,
    /// Each at a random time within so many nanoseconds, drawn anew for every repetition.
    Uniform(f64),
    /// One rank so many nanoseconds after the others.
    OneLate(u32, f64),
    /// Each so many nanoseconds late; ranks beyond the list are not.
    List(Vec<f64>),
}

impl Skew {
    /// How late `rank` comes to a repetition; `seed` is that of the run.
    pub fn delay_ns(&self, rank: usize, seed: u64, repetition: u64) -> f64 {
        match self {
            Skew::None => 0.0,
            Skew::OneLate(late, ns) if *late as usize == rank => *ns,
            Skew::OneLate(..) => 0.0,
            Skew::List(delays) => delays.get(rank).copied().unwrap_or(0.0),
            Skew::Uniform(ns) => {
                let draw = mix(seed ^ mix(repetition << 20 | rank as u64));
                ns * (draw >> 11) as f64 / (1u64 << 53) as f64
            }
        }
    }
}

/// The finaliser of splitmix64.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

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
