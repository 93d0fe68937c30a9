//! Threads on processors of their own: a leader that samples, and helpers.
//!
//! ```text
//!   leader   | ready? | sample sample sample ...          | stop
//!   helper 1 | ready  | work work work ... (neighbours: until stop)
//!                     | n times, then wait (team: as often as the leader)
//! ```
//!
//! The calling thread only watches whether the caller wants to stop: this keeps its own affinity as it was,
//! and `cancelled` may be called on it only. If a helper panics, all are released and its message is the error.

use super::probe::{Answer, Setting};
use crate::crew::{lock, message};
use crate::error::{ExecError, Result};
use crate::guard::{Disturbance, Guard};
use crate::sampling::Samples;
use crate::topology::pin_to;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread::{self, Thread};
use std::time::Duration;

/// How often the calling thread looks up.
const WATCH: Duration = Duration::from_millis(50);
/// Spins before a waiting thread yields: enough if every thread has a core.
const SPINS: u32 = 100_000;

/// A value with cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Apart<T>(pub T);

/// What the threads share.
#[derive(Debug, Default)]
pub(super) struct Workers {
    stop: Apart<AtomicBool>,
    ready: AtomicUsize,
    unpinned: Mutex<Option<String>>,
    failed: Mutex<Option<String>>,
    /// Number of the round, and how often helpers do their work in it.
    round: Apart<(AtomicU64, AtomicU32)>,
    finished: Apart<AtomicUsize>,
    /// The disturbance of any helper in the round, plus one.
    disturbed: Apart<AtomicU8>,
    helpers: usize,
    /// Threads at work.
    running: AtomicUsize,
}

impl Workers {
    /// Runs `lead` on the first processor and `helper(i)` on the (i + 1)st of the next `helpers`, which must
    /// exist. `lead` begins when every helper has called [`Workers::enter`].
    pub(super) fn launch(
        setting: &Setting,
        helpers: usize,
        helper: impl Fn(usize, &Workers) -> Result<()> + Sync,
        lead: impl FnOnce(&Workers) -> Result<Answer> + Send,
    ) -> Result<Answer> {
        let workers = Workers {
            helpers,
            running: AtomicUsize::new(helpers + 1),
            ..Workers::default()
        };
        let (outcome, error) = (Mutex::new(None), Mutex::new(None));
        let watcher = thread::current();
        thread::scope(|scope| {
            let (workers, helper, outcome, error, watcher) =
                (&workers, &helper, &outcome, &error, &watcher);
            let (leads, others) = setting.cpus.split_first().expect("one at least");
            for (number, &cpu) in others[..helpers].iter().enumerate() {
                let work = move || {
                    if let Err(found) = helper(number, workers) {
                        lock(error).get_or_insert(found);
                    }
                };
                scope.spawn(move || workers.employ(cpu, watcher, work));
            }
            let work = move || {
                workers.wait_until(|| workers.ready.load(Ordering::Acquire) == helpers);
                if !workers.stopped() {
                    *lock(outcome) = Some(lead(workers));
                }
            };
            scope.spawn(move || workers.employ(*leads, watcher, work));
            workers.watch(setting);
        });
        if let Some(message) = lock(&workers.failed).take() {
            return Err(ExecError::RankFailed { rank: 0, message });
        }
        if let Some(error) = lock(&error).take() {
            return Err(error);
        }
        let mut answer = lock(&outcome).take().unwrap_or(Err(ExecError::Cancelled))?;
        if answer.samples.values_ns.is_empty()
            && setting.cancelled.is_some_and(|cancelled| cancelled())
        {
            return Err(ExecError::Cancelled);
        }
        answer.notes.extend(lock(&workers.unpinned).take());
        Ok(answer)
    }

    /// Does `work` on a processor. However it ends, no thread waits for it afterwards.
    fn employ(&self, cpu: u32, watcher: &Thread, work: impl FnOnce()) {
        self.pin(cpu);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            *lock(&self.failed) = Some(message(&*panic));
        }
        self.stop();
        self.running.fetch_sub(1, Ordering::Release);
        watcher.unpark();
    }

    fn watch(&self, setting: &Setting) {
        while self.running.load(Ordering::Acquire) > 0 {
            thread::park_timeout(WATCH);
            if setting.cancelled.is_some_and(|cancelled| cancelled()) {
                self.stop();
            }
        }
    }

    fn pin(&self, cpu: u32) {
        if let Err(error) = pin_to(cpu) {
            *lock(&self.unpinned) = Some(error.to_string());
        }
    }

    fn stop(&self) {
        self.stop.0.store(true, Ordering::Release);
    }

    /// Whether all threads are to end.
    #[inline]
    pub(super) fn stopped(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    /// A helper is ready.
    pub(super) fn enter(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
    }

    /// A helper that takes part in rounds: does `work(n)` in each, until the end.
    pub(super) fn follow(&self, mut work: impl FnMut(u32)) {
        let mut guard = Guard::of_thread_only();
        self.enter();
        for round in 1.. {
            self.wait_until(|| self.round.0 .0.load(Ordering::Acquire) == round);
            if self.stopped() {
                return;
            }
            guard.open();
            work(self.round.0 .1.load(Ordering::Relaxed));
            if let Some(found) = guard.close() {
                self.disturbed.0.store(found as u8 + 1, Ordering::Relaxed);
            }
            self.finished.0.fetch_add(1, Ordering::Release);
        }
    }

    /// The leader's round: all threads do their work `n` times. Returns what disturbed a helper.
    pub(super) fn round(&self, n: u32, own: impl FnOnce(u32)) -> Option<Disturbance> {
        self.finished.0.store(0, Ordering::Relaxed);
        self.disturbed.0.store(0, Ordering::Relaxed);
        self.round.0 .1.store(n, Ordering::Relaxed);
        self.round.0 .0.fetch_add(1, Ordering::Release);
        own(n);
        self.wait_until(|| self.finished.0.load(Ordering::Acquire) == self.helpers);
        let found = self.disturbed.0.load(Ordering::Relaxed);
        found
            .checked_sub(1)
            .map(|reason| Disturbance::ALL[usize::from(reason)])
    }

    /// The leader's samples of `work`, until there are enough or all threads are to end.
    pub(super) fn sample(
        &self,
        setting: &Setting,
        work: impl FnMut(u32) -> Option<Disturbance>,
    ) -> Samples {
        setting.sampling.measure(&|| self.stopped(), work)
    }

    /// Waits until `done`, or until all threads are to end.
    pub(super) fn wait_until(&self, done: impl Fn() -> bool) {
        let mut spins = 0;
        while !done() && !self.stopped() {
            spins += 1;
            if spins > SPINS {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Sampling;
    use crate::topology::allowed_cpus;

    fn setting(cancelled: Option<&(dyn Fn() -> bool + Sync)>) -> Setting<'_> {
        let cpus = allowed_cpus().into_iter().cycle().take(3).collect();
        Setting {
            sampling: Sampling::of(5, 1, Duration::from_secs(5)),
            cancelled,
            ..Setting::of(cpus)
        }
    }

    #[test]
    fn a_team_does_its_work_as_often_as_the_leader() {
        let done: [AtomicU32; 3] = Default::default();
        let work = |who: usize, n| {
            done[who].fetch_add(n, Ordering::Relaxed);
        };
        let lead = |workers: &Workers| {
            for n in 1..=4 {
                workers.round(n, |n| work(0, n));
            }
            Ok(Answer::default())
        };
        let follow = |i: usize, workers: &Workers| {
            workers.follow(|n| work(i + 1, n));
            Ok(())
        };
        Workers::launch(&setting(None), 2, follow, lead).unwrap();
        assert_eq!(done.map(AtomicU32::into_inner), [10; 3]);
    }

    #[test]
    fn failures_and_the_wish_to_stop_release_everybody() {
        let wait = |workers: &Workers| {
            workers.wait_until(|| false);
            Ok(Answer::default())
        };
        let panics = |_: usize, workers: &Workers| {
            workers.enter();
            panic!("no more");
        };
        let error = Workers::launch(&setting(None), 1, panics, wait).unwrap_err();
        assert!(error.to_string().contains("no more"), "{error}");
        let follows = |_: usize, workers: &Workers| {
            workers.follow(|_| ());
            Ok(())
        };
        let error = Workers::launch(&setting(Some(&|| true)), 1, follows, wait).unwrap_err();
        assert_eq!(error, ExecError::Cancelled);
    }
}
