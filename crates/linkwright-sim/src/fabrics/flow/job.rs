//! A piece of work: a number of bytes, a ceiling on their rate, and the resources that they cross.

use super::uses::List;
use linkwright_core::TimePs;

/// Units of work per byte: progress in them is bytes per second times picoseconds.
pub(super) const WHOLE: u128 = 1_000_000_000_000;

/// Bytes to move over some resources at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// Whose job it is.
    pub token: u32,
    /// Which piece of the route, where several work at once.
    pub pass: u32,
    pub bytes: u64,
    /// Bytes per second when no other job is there.
    pub ceiling: u64,
    /// Over what.
    pub uses: List,
}

/// Bytes as work.
pub(super) fn work(bytes: u64) -> u128 {
    u128::from(bytes) * WHOLE
}

/// When `left` is done at `rate`, rounded up to a picosecond.
pub(super) fn end_of(now: u64, left: u128, rate: u64) -> u64 {
    // A division of 128 bits costs ten times one of 64; up to 18 MB the short one does.
    let time = match u64::try_from(left) {
        Ok(left) => u128::from(left.div_ceil(rate)),
        Err(_) => left.div_ceil(u128::from(rate)),
    };
    u64::try_from(u128::from(now) + time).expect("a simulated time fits 64 bits of picoseconds")
}

/// How long `bytes` take at `rate`, rounded up to a picosecond.
pub(super) fn time(bytes: u64, rate: u64) -> TimePs {
    TimePs(end_of(0, work(bytes), rate))
}
