//! How often to repeat, when to begin, when to stop: each question one small object.
//!
//! ```text
//!   first iteration | warm-up batches ... until 5 medians agree | sample sample sample ...
//!   (kept apart)    | (thrown away)                             | (all kept, raw)
//! ```
//!
//! - [`batch_size`]: a sample must last much longer than a step or a reading of the clock, so a short
//!   operation is repeated within one: `n = shortest sample / time of one`, rounded up.
//! - [`WarmUp`]: ready when enough batch medians in a row agree, or at a maximum.
//! - [`relative_half_width`]: the half width of the interval of the median over the median, by order
//!   statistics. Within one launch samples are not independent, so this is a *hint* to stop early, never
//!   the interval that is reported: that one is computed over launches.
//! - [`Sampling`]: how much to measure. It samples work of one thread by itself; ranks that run together
//!   follow it in [`crate::rounds`].
//!
//! The numbers stand in [`crate::measurement`]. Statistics are computed later from the raw samples;
//! nothing here is averaged or trimmed.

use crate::guard::{Disturbance, Drops, Guard};
use crate::measurement::{
    LEAST_OVERHEADS, LEAST_RESOLUTIONS, MIN_LAUNCHES, RANK_REACH, SAMPLES, WARMUP_AGREEING,
    WARMUP_AT_MOST, WARMUP_WITHIN,
};
use crate::timer::Clock;
use std::time::{Duration, Instant};

/// The shortest time that this clock measures well enough.
pub fn shortest_sample_ns(clock: &Clock) -> f64 {
    (LEAST_RESOLUTIONS * clock.resolution_ns()).max(LEAST_OVERHEADS * clock.overhead_ns())
}

/// How many repetitions make one sample of an operation that takes `one_ns`.
pub fn batch_size(one_ns: f64, clock: &Clock) -> u32 {
    // An operation that seems free was not resolved: the largest batch finds out.
    (shortest_sample_ns(clock) / one_ns.max(0.01))
        .ceil()
        .clamp(1.0, 1e6) as u32
}

/// Decides when a machine has settled.
#[derive(Clone, Debug)]
pub struct WarmUp {
    medians: Vec<f64>,
    at_most: usize,
}

impl WarmUp {
    /// Ready after `at_most` medians even if they never agree.
    pub fn new(at_most: usize) -> Self {
        WarmUp {
            medians: Vec::new(),
            at_most,
        }
    }

    /// Adds the median of a batch; true when ready to measure.
    pub fn push(&mut self, median: f64) -> bool {
        self.medians.push(median);
        self.agreed() || self.medians.len() >= self.at_most
    }

    /// Whether the last medians agree (false: the maximum ended the warm-up).
    pub fn agreed(&self) -> bool {
        let Some(start) = self.medians.len().checked_sub(WARMUP_AGREEING) else {
            return false;
        };
        let last = &self.medians[start..];
        let low = last.iter().copied().fold(f64::INFINITY, f64::min);
        let high = last.iter().copied().fold(0.0, f64::max);
        high <= low * (1.0 + WARMUP_WITHIN)
    }

    /// Batches seen so far.
    pub fn batches(&self) -> usize {
        self.medians.len()
    }
}

/// The middle value; sorts `values`.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[n / 2]),
        _ => Some((values[n / 2 - 1] + values[n / 2]) / 2.0),
    }
}

/// Half the interval of the median, relative to the median; `None` where there are too few samples for one.
///
/// Ranks by the normal approximation of the binomial: `n/2 -+ RANK_REACH sqrt(n)`.
pub fn relative_half_width(samples: &[f64]) -> Option<f64> {
    if samples.len() < MIN_LAUNCHES {
        return None;
    }
    let mut sorted = samples.to_vec();
    let middle = median(&mut sorted)?;
    let n = sorted.len() as f64;
    let reach = RANK_REACH * n.sqrt();
    let low = (n / 2.0 - reach).floor().max(0.0) as usize;
    let high = ((n / 2.0 + reach).ceil() as usize).min(sorted.len() - 1);
    Some((sorted[high] - sorted[low]) / 2.0 / middle)
}

/// How much to measure in one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Samples wanted.
    pub samples: usize,
    /// Most batches of warm-up.
    pub warmup_at_most: usize,
    /// Wall-clock limit, warm-up included; at least one sample is taken.
    pub time_budget: Duration,
    /// Stop early when the relative half width of the launch's interval falls below this; `None`: never.
    pub settle_within: Option<f64>,
}

impl Sampling {
    /// Up to `samples` samples within this time, never settling early.
    pub fn of(samples: usize, warmup_at_most: usize, time_budget: Duration) -> Self {
        Sampling {
            samples,
            warmup_at_most,
            time_budget,
            settle_within: None,
        }
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling::of(SAMPLES, WARMUP_AT_MOST, Duration::from_secs(1))
    }
}

/// The samples of one launch on one thread.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The very first iteration, cold.
    pub first_ns: f64,
    /// Time of one repetition, one entry per undisturbed sample.
    pub values_ns: Vec<f64>,
    /// Repetitions within a sample.
    pub batch: u32,
    /// Batches thrown away before the first sample.
    pub warmup_batches: usize,
    /// Whether the warm-up ended by agreement.
    pub warmed_up: bool,
    /// Samples thrown away, by reason.
    pub drops: Drops,
}

impl Samples {
    /// Samples taken, kept or thrown away.
    pub fn taken(&self) -> usize {
        self.values_ns.len() + self.drops.total() as usize
    }

    /// One repetition was `parts` operations: times become those of one.
    pub fn per(&mut self, parts: f64) {
        self.first_ns /= parts;
        self.values_ns.iter_mut().for_each(|value| *value /= parts);
    }
}

impl Sampling {
    /// Samples `work(n)`, which does its work `n` times on the calling thread, until there are enough or `stop`
    /// says so. `work` returns what disturbed the threads that helped it.
    pub fn measure(
        &self,
        stop: &dyn Fn() -> bool,
        mut work: impl FnMut(u32) -> Option<Disturbance>,
    ) -> Samples {
        let clock = Clock::get();
        let end = Instant::now() + self.time_budget;
        let over = || stop() || Instant::now() >= end;
        let mut time = |n: u32| {
            let start = clock.now();
            let disturbed = work(n);
            let stop = clock.now();
            let elapsed = clock.ns_between(start, stop) - clock.overhead_ns();
            (elapsed.max(0.0) / f64::from(n), disturbed)
        };

        let first_ns = time(1).0;
        let mut batch = batch_size(time(1).0, clock);
        // Warm code may be far faster than the second call: size the batch from itself once more.
        batch = batch_size(time(batch).0, clock).max(1);

        let mut warm_up = WarmUp::new(self.warmup_at_most.max(1));
        loop {
            let mut few = [time(batch).0, time(batch).0, time(batch).0];
            let ready = warm_up.push(median(&mut few).expect("three values"));
            if ready || over() {
                break;
            }
        }

        let mut samples = Samples {
            first_ns,
            batch,
            warmup_batches: warm_up.batches(),
            warmed_up: warm_up.agreed(),
            ..Samples::default()
        };
        let mut guard = Guard::of_thread_and_machine();
        // A budget that the warm-up used up still gives one sample.
        while samples.values_ns.len() < self.samples
            && (samples.values_ns.is_empty() && samples.drops.total() == 0 || !over())
        {
            guard.open();
            let (value, disturbed) = time(batch);
            match guard.close().or(disturbed) {
                None => samples.values_ns.push(value),
                Some(reason) => samples.drops.count(reason),
            }
            if self.settled(&samples.values_ns) {
                break;
            }
        }
        samples
    }

    /// Whether the samples of a launch agree. Checked only when their number has doubled, because it sorts.
    pub(crate) fn settled(&self, values: &[f64]) -> bool {
        let Some(within) = self.settle_within else {
            return false;
        };
        values.len().is_power_of_two() && relative_half_width(values).is_some_and(|w| w <= within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_ends_with_five_agreeing_medians() {
        let mut warm_up = WarmUp::new(100);
        for slow in [9.0, 7.0, 5.0, 4.0] {
            assert!(!warm_up.push(slow));
        }
        for settled in [3.00, 3.01, 3.02, 3.01] {
            assert!(!warm_up.push(settled));
        }
        assert!(warm_up.push(3.05));
        assert!(warm_up.agreed());
    }

    #[test]
    fn warm_up_gives_up_at_its_maximum() {
        let mut warm_up = WarmUp::new(3);
        assert!(!warm_up.push(1.0));
        assert!(!warm_up.push(2.0));
        assert!(warm_up.push(4.0));
        assert!(!warm_up.agreed());
    }

    #[test]
    fn a_sample_dwarfs_the_clock() {
        let clock = Clock::get();
        let n = batch_size(1.0, clock);
        assert!(f64::from(n) >= 50.0 * clock.overhead_ns());
        assert!(f64::from(n) >= 100.0 * clock.resolution_ns());
        assert_eq!(batch_size(1e9, clock), 1);
    }

    #[test]
    fn half_width_needs_six_samples() {
        assert_eq!(relative_half_width(&[1.0; 5]), None);
        assert_eq!(relative_half_width(&[2.0; 6]), Some(0.0));
        let spread: Vec<f64> = (0..100).map(|i| 100.0 + f64::from(i)).collect();
        let width = relative_half_width(&spread).unwrap();
        assert!((0.06..0.08).contains(&width), "{width}");
    }

    #[test]
    fn a_known_pause_is_timed() {
        let sampling = Sampling::of(5, 2, Duration::from_secs(5));
        let samples = sampling.measure(&|| false, |n| {
            std::thread::sleep(Duration::from_millis(2) * n);
            None
        });
        assert_eq!(samples.batch, 1);
        for value in samples.values_ns {
            assert!(value >= 2e6, "{value}");
        }
    }
}
