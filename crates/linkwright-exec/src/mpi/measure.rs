//! The rules of measurement, applied by ranks that share nothing but messages.
//!
//! Every rank runs the same loop ([`crate::rounds`]). After each round the ranks exchange one vector (the
//! largest of each number over all ranks) and decide from it, so all make the same decision and none leads:
//!
//! ```text
//!   round:   agree on a start in the near future -> each waits for it -> region ... region -> exchange
//!   vector:  times of the regions | disturbances | late? | rank 0: seconds so far | latest clock
//! ```
//!
//! A region holds one repetition, or several back to back. It starts at an agreed time (`window`); a late
//! arrival invalidates the sample, and the next start leaves more room. Where most windows are missed (more
//! ranks than cores, a busy host) ranks start after a barrier (`barrier`).

use super::clock::{now_ns, synchronise, Offset};
use super::library::{Group, Library};
use super::walker::Work;
use crate::error::{ExecError, Result};
use crate::executor::{Launch, RunOptions};
use crate::guard::{Disturbance, Guard};
use crate::rounds::{self, Ranks, Sample};
use crate::timer::Clock;
use linkwright_core::Skew;
use std::time::Instant;

/// A start this much after the agreed time, beyond the clocks' error, is late.
const LATE_NS: f64 = 1_000.0;

/// Room before the first window, and between windows; doubled whenever it was too little.
const ROOM_NS: f64 = 20e3;
const MOST_ROOM_NS: f64 = 20e6;

/// Late samples after which windows are given up, if they are the majority.
const TOO_LATE: usize = 12;

linkwright_core::words! {
    /// How ranks start together.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Method {
        /// At an agreed time.
        #[default]
        Window = "window",
        /// After a barrier.
        Barrier = "barrier",
    }
}

/// The launch as one rank sees it; `start_ns` and `finish_ns` are its own, since the agreed start.
#[derive(Clone, Debug, Default)]
pub struct RankLaunch {
    /// The same at every rank except for its own starts and finishes.
    pub launch: Launch,
    /// How ranks started together.
    pub method: Method,
    /// How far the ranks' clocks may disagree.
    pub residual_ns: f64,
    /// The canary: round trip of 8 bytes between ranks 0 and 1, before and after.
    pub canary_ns: [f64; 2],
}

/// What is measured, and how its repetitions follow each other.
pub(super) struct Plan<'a> {
    pub options: &'a RunOptions<'a>,
    pub back_to_back: bool,
    pub oversubscribed: bool,
    /// Messages of a repetition that are timed one by one.
    pub watched: usize,
}

struct Processes<'a> {
    library: &'a Library,
    group: &'a Group,
    work: &'a mut dyn Work,
    skew: &'a Skew,
    seed: u64,
    offset: Offset,
    method: Method,
    begun: Instant,
    guard: Guard,
    /// The latest clock of any rank at the last exchange, in common time.
    latest_ns: f64,
    /// Time of a repetition, as far as it is known.
    expected_ns: f64,
    room_ns: f64,
    repetition: u64,
    watched: usize,
}

/// One launch on this rank; all ranks of the group call it together.
pub(super) fn measure(
    library: &Library,
    group: &Group,
    work: &mut dyn Work,
    plan: &Plan,
) -> Result<RankLaunch> {
    let before = synchronise(library, group)?;
    let mut processes = Processes::new(library, group, work, plan, before);
    let (together, shared) = (plan.back_to_back, plan.oversubscribed);
    let mut launch = rounds::measure(&mut processes, plan.options, together, shared)?;
    launch.ranks = group.size;
    let after = synchronise(library, group)?;
    let moved = (after.to_common_ns - before.to_common_ns).abs() as f64;
    Ok(RankLaunch {
        launch,
        method: processes.method,
        residual_ns: processes.largest(moved + before.error_ns.max(after.error_ns))?,
        canary_ns: [before.round_trip_ns, after.round_trip_ns],
    })
}

impl<'a> Processes<'a> {
    fn new(
        library: &'a Library,
        group: &'a Group,
        work: &'a mut dyn Work,
        plan: &Plan<'a>,
        offset: Offset,
    ) -> Self {
        Processes {
            library,
            group,
            work,
            skew: &plan.options.skew,
            seed: plan.options.seed,
            offset,
            method: match plan.oversubscribed {
                true => Method::Barrier,
                false => Method::Window,
            },
            begun: Instant::now(),
            guard: Guard::of_thread_and_machine(),
            latest_ns: 0.0,
            expected_ns: 0.0,
            room_ns: ROOM_NS,
            repetition: 0,
            watched: plan.watched,
        }
    }

    /// The largest of the ranks' numbers.
    fn largest(&self, own: f64) -> Result<f64> {
        let mut all = [0.0];
        self.library.max(self.group, &[own], &mut all)?;
        Ok(all[0])
    }

    /// Agrees on the common time again, after work that takes each rank a different time.
    fn agree(&mut self) -> Result<()> {
        self.library.barrier(self.group)?;
        self.latest_ns = self.largest(self.common_ns())?;
        Ok(())
    }

    fn common_ns(&self) -> f64 {
        (now_ns() + self.offset.to_common_ns) as f64
    }

    /// One sample of so many regions, of so many repetitions each.
    fn regions(&mut self, regions: u32, repetitions: u32) -> Result<Sample> {
        let clock = Clock::get();
        let count = regions as usize;
        let mut own = vec![0.0; count + Disturbance::ALL.len() + 2];
        let mut all = vec![0.0; own.len()];
        let (mut start_ns, mut late) = (0.0, false);
        let spacing = 1.5 * self.expected_ns * f64::from(repetitions) + self.room_ns / 4.0;
        let first = self.latest_ns + self.room_ns;
        self.guard.open();
        for (region, time) in own[..count].iter_mut().enumerate() {
            let agreed = first + region as f64 * spacing;
            let started = self.start_together(agreed, clock)?;
            late |= started.1;
            start_ns += started.0 / count as f64;
            let start = clock.now();
            for _ in 0..repetitions {
                self.work.run()?;
            }
            let whole = clock.ns_between(start, clock.now()) - clock.overhead_ns();
            *time = whole.max(0.0) / f64::from(repetitions);
        }
        let own_ns = own[..count].iter().sum::<f64>() / count as f64;
        if let Some(reason) = self.guard.close() {
            own[count + reason as usize] = 1.0;
        }
        own[count + Disturbance::Late as usize] = f64::from(u8::from(late));
        let rest = count + Disturbance::ALL.len();
        if self.group.rank == 0 {
            own[rest] = self.begun.elapsed().as_secs_f64();
        }
        own[rest + 1] = self.common_ns();
        self.library.max(self.group, &own, &mut all)?;
        self.latest_ns = all[rest + 1];
        let slowest_ns = all[..count].iter().sum::<f64>() / count as f64;
        self.expected_ns = slowest_ns;
        let disturbed = |reason: &Disturbance| all[count + *reason as usize] > 0.0;
        if disturbed(&Disturbance::Late) {
            self.room_ns = (2.0 * self.room_ns).min(MOST_ROOM_NS);
        }
        Ok(Sample {
            slowest_ns,
            start_ns: vec![start_ns],
            finish_ns: vec![start_ns + own_ns],
            disturbance: Disturbance::ALL.into_iter().find(disturbed),
            elapsed_s: all[rest],
        })
    }

    /// Waits for the start of a region. Returns how long after the agreed time it began, and whether too late.
    #[inline(always)]
    fn start_together(&mut self, agreed: f64, clock: &Clock) -> Result<(f64, bool)> {
        let rank = self.group.rank as usize;
        let delay = self.skew.delay_ns(rank, self.seed, self.repetition);
        self.repetition += 1;
        if self.method == Method::Window {
            let local = agreed as i64 - self.offset.to_common_ns;
            let own = local + delay as i64;
            let mut now = now_ns();
            let late = (now - own) as f64 > LATE_NS;
            while now < own {
                std::hint::spin_loop();
                now = now_ns();
            }
            return Ok(((now - local) as f64, late));
        }
        self.library.barrier(self.group)?;
        let start = clock.now();
        while clock.ns_between(start, clock.now()) < delay {
            std::hint::spin_loop();
        }
        Ok((delay, false))
    }
}

impl Ranks for Processes<'_> {
    type Error = ExecError;

    fn fill(&mut self) -> Result<()> {
        self.work.fill();
        self.agree()
    }

    fn sample(&mut self, repetitions: u32, back_to_back: bool) -> Result<Sample> {
        match back_to_back {
            true => self.regions(1, repetitions),
            false => self.regions(repetitions, 1),
        }
    }

    fn watched(&self) -> usize {
        self.watched
    }

    /// Ranks leave a barrier together as well as they can; what disturbs one of them is not exchanged.
    fn latencies(&mut self) -> Result<(Vec<f64>, bool)> {
        let mut found = Vec::new();
        self.guard.open();
        self.library.barrier(self.group)?;
        self.work.run_watched(&mut found)?;
        let disturbed = self.guard.close().is_some();
        self.agree()?;
        Ok((found, disturbed))
    }

    /// A wrong result anywhere ends the launch everywhere.
    fn check(&mut self, _back_to_back: bool) -> Result<u64> {
        self.work.fill();
        self.work.run()?;
        let outcome = self.work.check();
        let wrong = if outcome.is_err() {
            f64::from(self.group.rank + 1)
        } else {
            0.0
        };
        let largest = self.largest(wrong)?;
        let checked = outcome?;
        match largest {
            0.0 => {
                self.agree()?;
                Ok(checked)
            }
            rank => Err(ExecError::RankFailed {
                rank: rank as u32 - 1,
                message: "its data are wrong".to_owned(),
            }),
        }
    }

    /// Ranks calibrate their own clocks, so the batch must be the largest of all.
    fn agree_on_batch(&mut self, own: u32) -> Result<u32> {
        Ok(self.largest(f64::from(own))? as u32)
    }

    fn change_start(&mut self, late: usize, kept: usize) -> bool {
        let change = self.method == Method::Window && late > TOO_LATE.max(kept);
        if change {
            self.method = Method::Barrier;
        }
        change
    }
}
