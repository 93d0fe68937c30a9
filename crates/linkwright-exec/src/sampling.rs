//! How often to repeat, when to begin, when to stop: each question one small object.
//!
//! ```text
//!   first iteration | warm-up batches ... until 5 medians agree | sample sample sample ...
//!   (kept apart)    | (thrown away)                             | (all kept, raw)
//! ```
//!
//! - [`batch_size`]: a sample must dwarf the clock, so a short operation is repeated within one:
//!   `n = max(100 x resolution, 50 x overhead) / time of one`, rounded up.
//! - [`WarmUp`]: ready when five batch medians in a row lie within 2 % of each other, or at a maximum.
//! - [`relative_half_width`]: the half width of the 95 % interval of the median over the median,
//!   by order statistics. Within one launch samples are not independent, so this is a *hint* to
//!   stop early, never the interval that is reported: that one is computed over launches.
//! - [`Sampler`]: the three together for one thread; ranks that run together use the parts.
//!
//! Statistics proper are made later from the raw samples; nothing here is averaged or trimmed.

use crate::guard::{Disturbance, Drops, Guard};
use crate::timer::Clock;
use std::time::{Duration, Instant};

/// How many repetitions make one sample of an operation that takes `one_ns`.
pub fn batch_size(one_ns: f64, clock: &Clock) -> u32 {
    let shortest = (100.0 * clock.resolution_ns()).max(50.0 * clock.overhead_ns());
    // An operation that seems free was not resolved: the largest batch finds out.
    (shortest / one_ns.max(0.01)).ceil().clamp(1.0, 1e6) as u32
}

/// Decides when a machine has settled.
#[derive(Clone, Debug)]
pub struct WarmUp {
    medians: Vec<f64>,
    at_most: usize,
}

impl WarmUp {
    /// Batch medians that must agree in a row.
    pub const AGREEING: usize = 5;
    /// How closely, relative to the smallest of them.
    pub const WITHIN: f64 = 0.02;

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
        let Some(start) = self.medians.len().checked_sub(Self::AGREEING) else {
            return false;
        };
        let last = &self.medians[start..];
        let low = last.iter().copied().fold(f64::INFINITY, f64::min);
        let high = last.iter().copied().fold(0.0, f64::max);
        high <= low * (1.0 + Self::WITHIN)
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

/// Half the 95 % interval of the median, relative to the median; none below six samples.
///
/// Ranks by the normal approximation of the binomial: `n/2 -+ 0.98 sqrt(n)`.
pub fn relative_half_width(samples: &[f64]) -> Option<f64> {
    if samples.len() < 6 {
        return None;
    }
    let mut sorted = samples.to_vec();
    let middle = median(&mut sorted)?;
    let n = sorted.len() as f64;
    let reach = 0.98 * n.sqrt();
    let low = (n / 2.0 - reach).floor().max(0.0) as usize;
    let high = ((n / 2.0 + reach).ceil() as usize).min(sorted.len() - 1);
    Some((sorted[high] - sorted[low]) / 2.0 / middle)
}

/// When to stop collecting.
#[derive(Clone, Copy, Debug)]
pub struct Stopping {
    /// Samples wanted.
    pub samples: usize,
    /// Wall-clock limit, warm-up included.
    pub budget: Duration,
    /// Stop early below this relative half width; `None`: never early.
    pub settle_within: Option<f64>,
}

/// What one launch on one thread yielded.
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

/// Measures a repeatable piece of work on the calling thread.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// When to stop.
    pub stopping: Stopping,
    /// Most batches of warm-up.
    pub warmup_at_most: usize,
}

impl Sampler {
    /// Calls `work(n)`, which must do its work `n` times, until enough samples are kept.
    pub fn measure(&self, mut work: impl FnMut(u32)) -> Samples {
        self.measure_until(&|| false, |n| {
            work(n);
            None
        })
    }

    /// The same, ending early when `stop` says so; `work` returns what disturbed others that it had help
    /// from.
    pub fn measure_until(
        &self,
        stop: &dyn Fn() -> bool,
        mut work: impl FnMut(u32) -> Option<Disturbance>,
    ) -> Samples {
        let clock = Clock::get();
        let end = Instant::now() + self.stopping.budget;
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
        let mut guard = Guard::new();
        // A budget that the warm-up used up still gives one sample.
        while samples.values_ns.len() < self.stopping.samples
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

    /// Looked at when the count has doubled only, because it sorts.
    fn settled(&self, values: &[f64]) -> bool {
        let Some(within) = self.stopping.settle_within else {
            return false;
        };
        values.len().is_power_of_two()
            && relative_half_width(values).is_some_and(|width| width <= within)
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
    fn sampler_times_a_known_pause() {
        let sampler = Sampler {
            stopping: Stopping {
                samples: 5,
                budget: Duration::from_secs(5),
                settle_within: None,
            },
            warmup_at_most: 2,
        };
        let samples = sampler.measure(|n| std::thread::sleep(Duration::from_millis(2) * n));
        assert_eq!(samples.batch, 1);
        for value in samples.values_ns {
            assert!(value >= 2e6, "{value}");
        }
    }
}
