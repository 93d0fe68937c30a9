//! The constants of the measurement rules, in one place for both languages.
//!
//! A reported value is the median over launches with a confidence interval from order statistics. Samples
//! of one launch are not independent, so each launch contributes one median. Before sampling, the machine
//! must have settled; during sampling, whatever disturbs it must be noticed. Each constant below answers
//! one question of these rules. Python reads them as `linkwright._native.measurement`.
//!
//! Source of the statistical ones: Hoefler and Belli, "Scientific benchmarking of parallel computing
//! systems" (SC 2015). The thresholds of disturbance were chosen on machines at rest: each is a small
//! multiple of what readings scatter there.

/// Coverage of every reported interval.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest launches that have an interval of that coverage: the range of 5 values covers the median with
/// a probability of 93.75 % only.
pub const MIN_LAUNCHES: usize = 6;
/// Half width of the normal approximation to the ranks of that interval, in units of the square root of
/// the number of values: 1.96 / 2.
pub const RANK_REACH: f64 = 0.98;

/// Samples of one launch unless asked otherwise: more say little more about one launch.
pub const SAMPLES: usize = 100;
/// A sample lasts at least so many steps of the clock ...
pub const LEAST_RESOLUTIONS: f64 = 100.0;
/// ... and so many times as long as reading the clock.
pub const LEAST_OVERHEADS: f64 = 50.0;
/// A launch stops early where the interval of its own samples is this narrow, relative to the median.
pub const SETTLED_WITHIN: f64 = 0.005;

/// Medians of warm-up batches in a row that must agree ...
pub const WARMUP_AGREEING: usize = 5;
/// ... this closely, relative to the smallest of them.
pub const WARMUP_WITHIN: f64 = 0.02;
/// Batches after which a warm-up ends even if they never agree, unless asked otherwise.
pub const WARMUP_AT_MOST: usize = 50;

/// Processor time of other processes from which a launch counts as disturbed, as a share of the time.
pub const FOREIGN_SHARE: f64 = 0.1;
/// Relative change of a processor's frequency from which a launch counts as disturbed; readings of an
/// undisturbed machine agree within 1 %.
pub const CLOCK_MOVED: f64 = 0.03;
/// The same for the clock of a GPU, which is read over 20 ms.
pub const GPU_CLOCK_MOVED: f64 = 0.005;
/// Relative change of the canary (a ping-pong before and after each experiment) from which the machine
/// counts as changed.
pub const CANARY_MOVED: f64 = 0.25;
