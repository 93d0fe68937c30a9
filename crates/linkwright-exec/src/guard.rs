//! Did anything disturb the measurement?
//!
//! Three disturbances are visible from inside a process, each as a counter that differs before and after a
//! sample:
//!
//! | disturbance | counter | resolution |
//! |---|---|---|
//! | another process took the core | involuntary context switches, `getrusage(RUSAGE_THREAD)` | exact |
//! | the hypervisor took the core | `steal` of this machine in `/proc/stat` | 10 ms tick |
//! | the scheduler moved the thread | `sched_getcpu` | endpoints of the window only |
//!
//! A disturbed sample is dropped and counted by reason, never silently. Reading `/proc/stat` costs
//! tens of microseconds and its tick is 10 ms, so it is read at most that often; a rise drops the
//! sample during which it was noticed.

use std::fs::File;
use std::io::{Read, Seek};
use std::time::{Duration, Instant};

linkwright_core::words! {
    /// Why a sample was dropped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Disturbance {
        /// Another thread ran on our core.
        Preempted = "preempted",
        /// The hypervisor ran something else on our core.
        Stolen = "stolen",
        /// The thread finished on another core than it started on.
        Migrated = "migrated",
        /// Late arrival: a rank missed the agreed start.
        Late = "late",
    }
}

/// How many samples were dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; 4]);

impl Drops {
    /// One more for `reason`.
    pub fn count(&mut self, reason: Disturbance) {
        self.0[reason as usize] += 1;
    }

    /// Dropped for `reason`.
    pub fn of(&self, reason: Disturbance) -> u64 {
        self.0[reason as usize]
    }

    /// Dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Watches the calling thread; open before a sample, close after it.
#[derive(Debug)]
pub struct Guard {
    switches: i64,
    cpu: i32,
    steal: Steal,
}

impl Guard {
    /// A guard of the calling thread and of the machine's steal time.
    pub fn of_thread_and_machine() -> Self {
        Guard {
            steal: Steal::new(),
            ..Guard::of_thread_only()
        }
    }

    /// A guard of the calling thread only: among many ranks, one of them watches the machine.
    pub fn of_thread_only() -> Self {
        Guard {
            switches: 0,
            cpu: -1,
            steal: Steal::blind(),
        }
    }

    /// The window begins.
    pub fn open(&mut self) {
        self.cpu = current_cpu();
        self.switches = involuntary_switches();
    }

    /// The window ends. Returns what disturbed it, the most specific reason first.
    pub fn close(&mut self) -> Option<Disturbance> {
        if involuntary_switches() != self.switches {
            return Some(Disturbance::Preempted);
        }
        if current_cpu() != self.cpu {
            return Some(Disturbance::Migrated);
        }
        self.steal.rose().then_some(Disturbance::Stolen)
    }
}

/// Watches every thread of this process for one window.
#[derive(Debug)]
pub struct ProcessGuard {
    switches: i64,
}

impl ProcessGuard {
    /// The window begins.
    pub fn open() -> Self {
        ProcessGuard {
            switches: switches_of(libc::RUSAGE_SELF),
        }
    }

    /// The window ends; whether any thread lost its core.
    pub fn close(self) -> bool {
        switches_of(libc::RUSAGE_SELF) != self.switches
    }
}

/// Involuntary context switches of the calling thread since it began.
pub(crate) fn involuntary_switches() -> i64 {
    switches_of(libc::RUSAGE_THREAD)
}

fn switches_of(whom: libc::c_int) -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure it is given; all-zero is a valid value of it.
    unsafe {
        libc::getrusage(whom, usage.as_mut_ptr());
        usage.assume_init().ru_nivcsw
    }
}

/// The processor the calling thread runs on, -1 where the kernel does not tell.
pub fn current_cpu() -> i32 {
    // SAFETY: takes nothing, returns a number.
    unsafe { libc::sched_getcpu() }
}

/// Steal time of the machine, looked at once per tick at most.
#[derive(Debug)]
struct Steal {
    file: Option<File>,
    ticks: u64,
    looked: Instant,
}

impl Steal {
    const TICK: Duration = Duration::from_millis(10);

    fn blind() -> Self {
        Steal {
            file: None,
            ticks: 0,
            looked: Instant::now(),
        }
    }

    fn new() -> Self {
        let mut steal = Steal {
            // No /proc, no steal time to see: a guard is worth having without it.
            file: File::open("/proc/stat").ok(),
            ..Steal::blind()
        };
        steal.ticks = steal.read().unwrap_or(0);
        steal
    }

    fn rose(&mut self) -> bool {
        if self.file.is_none() || self.looked.elapsed() < Self::TICK {
            return false;
        }
        self.looked = Instant::now();
        let Some(now) = self.read() else { return false };
        std::mem::replace(&mut self.ticks, now) != now
    }

    fn read(&mut self) -> Option<u64> {
        let file = self.file.as_mut()?;
        let mut start = [0u8; 256];
        file.rewind().ok()?;
        let n = file.read(&mut start).ok()?;
        steal_ticks(std::str::from_utf8(&start[..n]).ok()?)
    }
}

/// The eighth number of the line `cpu user nice system idle iowait irq softirq steal ...`.
fn steal_ticks(stat: &str) -> Option<u64> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    all.split_ascii_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_column() {
        let stat = "cpu  10132 290 3084 46828 1683 0 25 77 175 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(steal_ticks(stat), Some(77));
        assert_eq!(steal_ticks("intr 5"), None);
    }

    #[test]
    fn giving_up_the_core_is_not_a_disturbance_but_losing_it_is() {
        let mut guard = Guard::of_thread_only();
        guard.open();
        guard.switches -= 1;
        assert_eq!(guard.close(), Some(Disturbance::Preempted));
    }

    #[test]
    fn drops_are_counted_by_reason() {
        let mut drops = Drops::default();
        drops.count(Disturbance::Stolen);
        drops.count(Disturbance::Stolen);
        drops.count(Disturbance::Migrated);
        assert_eq!(drops.of(Disturbance::Stolen), 2);
        assert_eq!(drops.of(Disturbance::Preempted), 0);
        assert_eq!(drops.total(), 3);
    }
}
