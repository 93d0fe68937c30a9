//! One monotonic clock, and how far it can be trusted.
//!
//! Where the processor's time-stamp counter is invariant (it ticks at one rate in every power
//! state, CPUID leaf 0x8000_0007, EDX bit 8) reading it costs some ten nanoseconds and no system
//! call; its rate is found by reading it beside the operating system's raw clock at both ends of
//! a short pause:
//!
//! ```text
//!   ns per tick = (raw_1 - raw_0) / (tsc_1 - tsc_0)
//! ```
//!
//! Each end is the tightest of many bracketed readings (tsc, raw, tsc), so the error of the rate is
//! about (bracket width) / (pause): some 50 ns in 20 ms, a few parts per million. Elsewhere the
//! clock is `CLOCK_MONOTONIC_RAW` itself, with one tick per nanosecond.
//!
//! Two numbers limit what can be timed: the *resolution* (smallest step between two readings) and the
//! *overhead* (what a pair of readings adds to the timed code; it is subtracted from every sample). Readings are fenced, so neither loads nor stores of the timed code leak out.
//!
//! Ticks of two cores are compared only for the start and finish of ranks within one sample; an
//! invariant counter is synchronised over the cores of a machine by its firmware, and
//! [`Clock::source`] is reported so that a reader can judge it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A point in time in ticks of the one clock of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// The calibrated clock. Get it with [`Clock::get`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    ns_per_tick: f64,
    resolution_ns: f64,
    overhead_ns: f64,
    tsc: bool,
}

impl Clock {
    /// The clock of this process, calibrated on the first call (about 25 ms).
    pub fn get() -> &'static Clock {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(Clock::calibrate)
    }

    fn calibrate() -> Clock {
        let tsc = tsc_is_invariant();
        let mut clock = Clock {
            ns_per_tick: if tsc { tsc_period_ns() } else { 1.0 },
            resolution_ns: 0.0,
            overhead_ns: 0.0,
            tsc,
        };
        clock.measure_self();
        clock
    }

    fn measure_self(&mut self) {
        let mut steps: Vec<u64> = (0..10_000)
            .map(|_| {
                let first = self.now();
                self.now().0 - first.0
            })
            .collect();
        steps.sort_unstable();
        let smallest = steps.iter().copied().find(|&step| step > 0).unwrap_or(1);
        self.overhead_ns = steps[steps.len() / 2] as f64 * self.ns_per_tick;
        // A counter whose readings never repeat resolves at least one reading's cost; one that
        // repeats shows its true step.
        let repeats = steps[0] == 0;
        self.resolution_ns = self.ns_per_tick * if repeats { smallest as f64 } else { 1.0 };
    }

    /// The present. All earlier work is done and no later work has begun.
    #[inline(always)]
    pub fn now(&self) -> Ticks {
        #[cfg(target_arch = "x86_64")]
        if self.tsc {
            use std::arch::x86_64::{_mm_lfence, _rdtsc};
            // SAFETY: both instructions exist on every x86-64 processor.
            return unsafe {
                _mm_lfence();
                let ticks = _rdtsc();
                _mm_lfence();
                Ticks(ticks)
            };
        }
        Ticks(raw_ns())
    }

    /// Nanoseconds from `start` to `end`; negative where `end` is earlier (clocks of two cores).
    #[inline]
    pub fn ns_between(&self, start: Ticks, end: Ticks) -> f64 {
        end.0.wrapping_sub(start.0) as i64 as f64 * self.ns_per_tick
    }

    /// What lasted from `start` to `end`, without the reading of the clock; what is shorter than that reading cannot be
    /// told from it and counts as that long.
    #[inline]
    pub fn latency_ns(&self, start: Ticks, end: Ticks) -> f64 {
        let whole = self.ns_between(start, end) - self.overhead_ns();
        whole.max(self.overhead_ns()).max(self.resolution_ns())
    }

    /// How many ticks last `ns` nanoseconds.
    #[inline]
    pub fn ticks_in(&self, ns: f64) -> u64 {
        (ns / self.ns_per_tick) as u64
    }

    /// Smallest step the clock can show.
    pub fn resolution_ns(&self) -> f64 {
        self.resolution_ns
    }

    /// What a pair of readings adds to the time of the code between them.
    pub fn overhead_ns(&self) -> f64 {
        self.overhead_ns
    }

    /// `tsc` or `clock_monotonic_raw`.
    pub fn source(&self) -> &'static str {
        if self.tsc {
            "tsc"
        } else {
            "clock_monotonic_raw"
        }
    }
}

/// The operating system's clock, without adjustments.
fn raw_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place to write to, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
fn tsc_is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER_LEAF: u32 = 0x8000_0007;
    let highest = __cpuid(0x8000_0000).eax;
    highest >= POWER_LEAF && __cpuid(POWER_LEAF).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_is_invariant() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn tsc_period_ns() -> f64 {
    let (tick_0, ns_0) = tsc_beside_raw();
    let pause = Instant::now();
    while pause.elapsed() < Duration::from_millis(20) {
        std::hint::spin_loop();
    }
    let (tick_1, ns_1) = tsc_beside_raw();
    (ns_1 - ns_0) as f64 / (tick_1 - tick_0) as f64
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_period_ns() -> f64 {
    1.0
}

/// The tightest of many readings of both clocks.
#[cfg(target_arch = "x86_64")]
fn tsc_beside_raw() -> (u64, u64) {
    use std::arch::x86_64::_rdtsc;
    (0..200)
        .map(|_| {
            // SAFETY: reads a counter.
            let before = unsafe { _rdtsc() };
            let ns = raw_ns();
            // SAFETY: reads a counter.
            let after = unsafe { _rdtsc() };
            (after - before, (before + (after - before) / 2, ns))
        })
        .min_by_key(|&(width, _)| width)
        .expect("two hundred readings")
        .1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_operating_system() {
        let clock = Clock::get();
        let (before, ticks) = (Instant::now(), clock.now());
        std::thread::sleep(Duration::from_millis(30));
        let mine = clock.ns_between(ticks, clock.now());
        let theirs = before.elapsed().as_nanos() as f64;
        assert!(
            (mine / theirs - 1.0).abs() < 0.01,
            "{mine} ns against {theirs} ns"
        );
    }

    #[test]
    fn never_runs_backwards_on_one_thread() {
        let clock = Clock::get();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn knows_its_own_cost() {
        let clock = Clock::get();
        assert!(clock.resolution_ns() > 0.0);
        assert!(clock.overhead_ns() < 10_000.0);
    }
}
