//! Integer picoseconds, integer bytes, and the only conversions between them.
//!
//! Simulated time is an integer number of picoseconds, so the same input gives the same bytes of
//! output everywhere. A duration that follows from a rate is rounded down once per event and is
//! never summed from rounded parts.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use crate::ratio::Ratio;

/// A point in simulated time, or a duration, in picoseconds.
///
/// Sums and multiples end at [`TimePs::MAX`], 213 days: a simulation that gets there is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TimePs(pub u64);

impl TimePs {
    /// The start of every simulation.
    pub const ZERO: TimePs = TimePs(0);
    /// Later than any event.
    pub const MAX: TimePs = TimePs(u64::MAX);

    /// Whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        TimePs(ns * 1_000)
    }

    /// From a decimal number of seconds, to the nearest picosecond.
    pub fn from_secs_f64(seconds: f64) -> Self {
        TimePs((seconds * 1e12).round() as u64)
    }

    /// Nanoseconds, for output.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Microseconds, for output.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Difference, or zero where `other` is later.
    pub fn saturating_sub(self, other: TimePs) -> TimePs {
        TimePs(self.0.saturating_sub(other.0))
    }
}

impl Add for TimePs {
    type Output = TimePs;
    fn add(self, other: TimePs) -> TimePs {
        TimePs(self.0.saturating_add(other.0))
    }
}

impl AddAssign for TimePs {
    fn add_assign(&mut self, other: TimePs) {
        *self = *self + other;
    }
}

impl Sub for TimePs {
    type Output = TimePs;
    fn sub(self, other: TimePs) -> TimePs {
        TimePs(self.0 - other.0)
    }
}

impl Mul<u64> for TimePs {
    type Output = TimePs;
    fn mul(self, n: u64) -> TimePs {
        TimePs(self.0.saturating_mul(n))
    }
}

impl Sum for TimePs {
    fn sum<I: Iterator<Item = TimePs>>(iter: I) -> TimePs {
        iter.fold(TimePs::ZERO, Add::add)
    }
}

impl fmt::Display for TimePs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps", self.0)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Bytes(pub u64);

/// A rate in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct BytesPerSec(pub f64);

impl BytesPerSec {
    /// Time to move `bytes` at this rate, rounded down to a picosecond.
    pub fn time(self, bytes: Bytes) -> TimePs {
        TimePs((bytes.0 as f64 * 1e12 / self.0) as u64)
    }
}

/// A clock as an exact frequency.
///
/// A number of cycles becomes a time in one go, `floor(cycles / frequency)`: ten cycles of
/// 3 GHz last 3333 ps, not ten times 333 ps. Count in cycles, convert once per event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    hertz: Ratio,
}

impl Clock {
    /// A clock of this frequency.
    ///
    /// # Panics
    /// When the frequency is zero.
    pub fn new(hertz: Ratio) -> Self {
        assert!(!hertz.is_zero(), "a clock needs a frequency above zero");
        Clock { hertz }
    }

    /// The frequency in Hz.
    pub fn hertz(self) -> Ratio {
        self.hertz
    }

    /// How long `cycles` cycles last, rounded down to a picosecond.
    ///
    /// # Panics
    /// When the time does not fit 64 bits (213 days).
    pub fn time(self, cycles: u64) -> TimePs {
        let ps = Ratio::new(u128::from(cycles) * 1_000_000_000_000, 1).over(self.hertz);
        let ps = ps.and_then(Ratio::floor);
        TimePs(ps.expect("a simulated time fits 64 bits of picoseconds"))
    }
}
