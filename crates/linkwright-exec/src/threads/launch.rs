//! One launch: a thread per rank, pinned, running rounds that rank 0 leads.
//!
//! ```text
//!   rank 0: write order | barrier | own share | barrier | read reports, decide
//!   others:             | barrier | own share | barrier |
//! ```
//!
//! Rank 0 makes all decisions (size of a batch, end of the warm-up, enough samples) between rounds, so the
//! ranks agree without communicating. Within a round that runs the schedule, the ranks meet at a
//! further barrier right before each timed region. The calling thread only watches: it notices
//! when nothing moves for a long time, and when the caller wants to stop.

use super::waiting::Poisoned;
use super::world::{RankCode, Shared, World};
use crate::crew::{lock, message};
use crate::error::{ExecError, Result};
use crate::guard::{Disturbance, Guard};
use crate::timer::{Clock, Ticks};
use crate::topology::pin_to;
use linkwright_core::Skew;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// How often the calling thread checks.
const WATCH: Duration = Duration::from_millis(200);
/// If nothing moves for this long, nothing will.
const STUCK_AFTER: Duration = Duration::from_secs(120);

/// What all ranks do in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// End the launch.
    #[default]
    Stop,
    /// Write the initial state.
    Fill,
    /// Compare with the postcondition.
    Check,
    /// Repeat the schedule, with a barrier before each repetition or back to back.
    Run {
        repetitions: u32,
        back_to_back: bool,
    },
    /// Repeat it this often back to back, and time each repetition.
    Row(u32),
    /// Once, timing each message.
    Watch,
}

/// What a rank found in a round.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Start and finish of each timed region.
    pub times: Vec<(Ticks, Ticks)>,
    /// Of each message that this rank began.
    pub latencies_ns: Vec<f64>,
    pub disturbance: Option<Disturbance>,
    pub checked: Option<Result<u64>>,
}

/// What ranks share besides the world of the schedule.
pub(super) struct RankThreads<'a> {
    pub world: World<'a>,
    pub skew: Skew,
    pub seed: u64,
    /// Processor of each rank.
    pub cpus: Vec<u32>,
    order: Shared<Order>,
    reports: Vec<Shared<Report>>,
    /// Grows with every round: the watcher's sign of life.
    rounds: AtomicU64,
    unpinned: Mutex<Option<String>>,
}

/// One rank at work.
struct RankThread<'c> {
    threads: &'c RankThreads<'c>,
    code: RankCode<'c>,
    rank: usize,
    guard: Guard,
    barriers: u64,
    epoch: u64,
    repetition: u64,
}

/// Rank 0, between rounds.
pub(super) struct Leader<'c>(RankThread<'c>);

impl<'a> RankThreads<'a> {
    pub(super) fn new(world: World<'a>, cpus: Vec<u32>, skew: Skew, seed: u64) -> Self {
        let ranks = world.waiters.ranks();
        RankThreads {
            world,
            skew,
            seed,
            cpus,
            order: Shared::new(Order::Stop),
            reports: (0..ranks).map(|_| Shared::default()).collect(),
            rounds: AtomicU64::new(0),
            unpinned: Mutex::new(None),
        }
    }

    /// Why some rank runs unpinned.
    pub(super) fn unpinned(&self) -> Option<String> {
        lock(&self.unpinned).clone()
    }

    /// Starts all ranks; `lead` runs on rank 0's thread and decides the rounds.
    pub(super) fn launch<T: Send>(
        &self,
        cancelled: Option<&(dyn Fn() -> bool + Sync)>,
        lead: impl FnOnce(&mut Leader) -> Result<T, Stopped> + Send,
    ) -> Result<T> {
        let (watcher, running) = (thread::current(), AtomicUsize::new(self.reports.len()));
        let outcome = Mutex::new(None);
        thread::scope(|scope| {
            let mut lead = Some(lead);
            for rank in 0..self.reports.len() {
                let lead = lead.take();
                let (watcher, running, outcome) = (&watcher, &running, &outcome);
                scope.spawn(move || {
                    let work = || match lead {
                        Some(lead) => {
                            let led = self.lead(lead);
                            *lock(outcome) = Some(led);
                        }
                        None => self.follow(rank),
                    };
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                        self.fail(ExecError::RankFailed {
                            rank: rank as u32,
                            message: message(&*panic),
                        });
                    }
                    running.fetch_sub(1, Ordering::Release);
                    watcher.unpark();
                });
            }
            self.watch(&running, cancelled);
        });
        if let Some(failure) = lock(&self.world.failure).take() {
            return Err(failure);
        }
        match outcome.into_inner().expect("no panic while held") {
            Some(Ok(value)) => Ok(value),
            Some(Err(Stopped::Failed(error))) => Err(error),
            Some(Err(Stopped::Poisoned)) | None => Err(ExecError::Cancelled),
        }
    }

    /// Keeps the first failure and releases all ranks.
    fn fail(&self, error: ExecError) {
        lock(&self.world.failure).get_or_insert(error);
        self.world.waiters.poison();
    }

    fn watch(&self, running: &AtomicUsize, cancelled: Option<&(dyn Fn() -> bool + Sync)>) {
        let (mut rounds, mut moved) = (0, Instant::now());
        while running.load(Ordering::Acquire) > 0 {
            thread::park_timeout(WATCH);
            if cancelled.is_some_and(|cancelled| cancelled()) {
                self.fail(ExecError::Cancelled);
            }
            let now = self.rounds.load(Ordering::Relaxed);
            if std::mem::replace(&mut rounds, now) != now {
                moved = Instant::now();
            } else if moved.elapsed() > STUCK_AFTER {
                self.fail(ExecError::Stuck {
                    seconds: STUCK_AFTER.as_secs(),
                    waiting: format!("{} ranks are in round {now}", self.reports.len()),
                });
            }
        }
    }

    /// Sets up a rank: core, memory, addresses.
    fn enter(&self, rank: usize) -> Result<RankThread<'_>, Poisoned> {
        self.world.waiters.enter(rank);
        if let Err(error) = pin_to(self.cpus[rank]) {
            *lock(&self.unpinned) = Some(error.to_string());
        }
        self.world.allocate(rank);
        self.world.barrier.wait(1, &self.world.waiters, rank)?;
        Ok(RankThread {
            threads: self,
            code: self.world.link(rank),
            rank,
            guard: if rank == 0 {
                Guard::of_thread_and_machine()
            } else {
                Guard::of_thread_only()
            },
            barriers: 1,
            epoch: 0,
            repetition: 0,
        })
    }

    fn lead<T>(&self, lead: impl FnOnce(&mut Leader) -> Result<T, Stopped>) -> Result<T, Stopped> {
        let mut leader = Leader(self.enter(0)?);
        let outcome = lead(&mut leader);
        if !matches!(outcome, Err(Stopped::Poisoned)) {
            leader.round(Order::Stop)?;
        }
        outcome
    }

    fn follow(&self, rank: usize) {
        // A poisoned wait means that another rank has left its error already.
        let Ok(mut thread) = self.enter(rank) else {
            return;
        };
        while let Ok(order) = thread.round() {
            if order == Order::Stop {
                return;
            }
        }
    }
}

/// Why the leader stopped early.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Another rank failed and has left its error.
    Poisoned,
    /// The leader found this.
    Failed(ExecError),
}

impl From<Poisoned> for Stopped {
    fn from(_: Poisoned) -> Self {
        Stopped::Poisoned
    }
}

impl From<ExecError> for Stopped {
    fn from(error: ExecError) -> Self {
        Stopped::Failed(error)
    }
}

impl Leader<'_> {
    /// Lets all ranks do `order`.
    pub(super) fn round(&mut self, order: Order) -> Result<(), Poisoned> {
        // SAFETY: the others read it only after the barrier that opens the round.
        unsafe { *self.0.threads.order.write() = order };
        self.0.threads.rounds.fetch_add(1, Ordering::Relaxed);
        self.0.round().map(|_| ())
    }

    /// The reports of the round that just ended, by rank.
    pub(super) fn reports(&self) -> impl Iterator<Item = &Report> {
        let threads = self.0.threads;
        // SAFETY: written before the barrier that ended the round.
        threads
            .reports
            .iter()
            .map(|report| unsafe { report.read() })
    }
}

impl RankThread<'_> {
    fn barrier(&mut self) -> Result<(), Poisoned> {
        self.barriers += 1;
        let world = &self.threads.world;
        world.barrier.wait(self.barriers, &world.waiters, self.rank)
    }

    fn round(&mut self) -> Result<Order, Poisoned> {
        self.barrier()?;
        // SAFETY: written before the barrier.
        let order = unsafe { *self.threads.order.read() };
        // SAFETY: the leader reads it after the barrier that ends the round.
        let report = unsafe { self.threads.reports[self.rank].write() };
        match order {
            Order::Stop => {}
            Order::Fill => self
                .each_buffer(|world, set, participant, buffer| {
                    // SAFETY: between epochs every rank touches only what it owns.
                    let memory = unsafe { world.buffer(set, participant, buffer) };
                    world.contents.initialise(participant, buffer, memory);
                    Ok(0)
                })
                .map(|_| ())
                .expect("filling cannot fail"),
            Order::Check => {
                report.checked = Some(self.each_buffer(|world, set, participant, buffer| {
                    // SAFETY: as above.
                    let memory = unsafe { world.buffer(set, participant, buffer) };
                    world.contents.check("threads", participant, buffer, memory)
                }));
            }
            Order::Run {
                repetitions,
                back_to_back,
            } => {
                report.times.clear();
                self.guard.open();
                if back_to_back {
                    self.run_back_to_back(repetitions, repetitions, report)?;
                } else {
                    self.run_apart(repetitions, report)?;
                }
                report.disturbance = self.guard.close();
            }
            Order::Row(repetitions) => {
                report.times.clear();
                self.guard.open();
                self.run_back_to_back(repetitions, 1, report)?;
                report.disturbance = self.guard.close();
            }
            Order::Watch => {
                report.latencies_ns.clear();
                self.guard.open();
                self.barrier()?;
                self.code
                    .run_watched(self.epoch, 0, &mut report.latencies_ns)?;
                self.epoch += 1;
                report.disturbance = self.guard.close();
            }
        }
        self.barrier()?;
        Ok(order)
    }

    /// Visits every buffer of every set that this rank owns; returns the sum of what `visit` returns.
    fn each_buffer(&self, visit: impl Fn(&World, usize, u32, usize) -> Result<u64>) -> Result<u64> {
        let world = &self.threads.world;
        let mut sum = 0;
        for participant in world.owned(self.rank) {
            for set in 0..world.sets {
                for buffer in 0..world.contents.schedule.buffers.len() {
                    if world.contents.bytes(participant, buffer) > 0 {
                        sum += visit(world, set, participant, buffer)?;
                    }
                }
            }
        }
        Ok(sum)
    }

    fn run_apart(&mut self, repetitions: u32, report: &mut Report) -> Result<(), Poisoned> {
        let clock = Clock::get();
        for _ in 0..repetitions {
            self.repetition += 1;
            let late = clock.ticks_in(self.threads.skew.delay_ns(
                self.rank,
                self.threads.seed,
                self.repetition,
            ));
            self.barrier()?;
            let mut start = clock.now();
            if late > 0 {
                let arrival = start.0 + late;
                while start.0 < arrival {
                    std::hint::spin_loop();
                    start = clock.now();
                }
            }
            self.code.run(self.epoch, 0)?;
            report.times.push((start, clock.now()));
            self.epoch += 1;
        }
        Ok(())
    }

    /// Alternates between two sets of buffers: no rank finishes epoch e + 1 before all have entered it,
    /// hence finished epoch e, hence left the buffers that epoch e + 2 uses. The clock is read
    /// after every `timed` repetitions.
    fn run_back_to_back(
        &mut self,
        repetitions: u32,
        timed: u32,
        report: &mut Report,
    ) -> Result<(), Poisoned> {
        let clock = Clock::get();
        // The barrier below also separates this set from whatever used it last.
        self.barrier()?;
        let mut start = clock.now();
        for _ in 0..repetitions / timed {
            for _ in 0..timed {
                self.code.run(self.epoch, (self.epoch & 1) as usize)?;
                self.epoch += 1;
            }
            let finish = clock.now();
            report.times.push((start, finish));
            start = finish;
        }
        Ok(())
    }
}
