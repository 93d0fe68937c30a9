//! The rules of measurement, applied by ranks that share nothing but messages.
//!
//! Every rank walks through the same loop. After each round they exchange one vector (the largest of
//! each number over all ranks) and decide from it, so all decide alike and nobody leads:
//!
//! ```text
//!   round:   agree on a start in the near future -> each waits for it -> region ... region -> exchange
//!   vector:  times of the regions | disturbances | late? | rank 0: seconds so far | latest clock
//! ```
//!
//! A region holds one repetition, or several back to back. It starts at an agreed time (`window`); a
//! rank that was not ready by then makes the sample invalid, and the next start leaves more room. Where
//! most windows are missed (more ranks than cores, a busy host) ranks start after a barrier (`barrier`).

use super::clock::{now_ns, synchronise, Offset};
use super::library::{Group, Library};
use super::walker::Work;
use crate::error::{ExecError, Result};
use crate::executor::{Launch, RunOptions};
use crate::guard::{Disturbance, Guard};
use crate::sampling::{batch_size, median, WarmUp};
use crate::timer::Clock;
use linkwright_core::Skew;
use std::time::Instant;

/// Most regions of a sample: beyond, more samples tell more.
const MOST_APART: u32 = 1_000;

/// A start this much after the agreed time, beyond the clocks' error, is late.
const LATE_NS: f64 = 1_000.0;

/// Room before the first window, and between windows; doubled whenever it was too little.
const ROOM_NS: f64 = 20e3;
const MOST_ROOM_NS: f64 = 20e6;

/// Late samples after which windows are given up, if they are the majority.
const TOO_LATE: usize = 12;

/// How ranks start together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// At an agreed time.
    #[default]
    Window,
    /// After a barrier.
    Barrier,
}

impl Method {
    /// For people and for columns.
    pub fn name(self) -> &'static str {
        match self {
            Method::Window => "window",
            Method::Barrier => "barrier",
        }
    }
}

/// What one rank knows of a launch; `start_ns` and `finish_ns` are its own, since the agreed start.
#[derive(Clone, Debug, Default)]
pub struct RankLaunch {
    /// The same at every rank, but for the own starts and finishes.
    pub launch: Launch,
    /// How ranks started together.
    pub method: Method,
    /// How far the ranks' clocks may disagree.
    pub residual_ns: f64,
    /// Round trip of 8 bytes between ranks 0 and 1, before and after.
    pub probe_ns: [f64; 2],
}

/// What is measured, and how its repetitions follow each other.
pub(super) struct Plan<'a> {
    pub options: &'a RunOptions<'a>,
    pub back_to_back: bool,
    pub oversubscribed: bool,
}

/// One sample, per repetition.
struct Sample {
    slowest_ns: f64,
    start_ns: f64,
    finish_ns: f64,
    disturbance: Option<Disturbance>,
    elapsed_s: f64,
}

struct Rounds<'a> {
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
}

/// One launch on this rank; all ranks of the group call it together.
pub(super) fn measure(
    library: &Library,
    group: &Group,
    work: &mut dyn Work,
    plan: &Plan,
) -> Result<RankLaunch> {
    let before = synchronise(library, group)?;
    let options = plan.options;
    let mut rounds = Rounds::new(library, group, work, plan, before);
    let mut launch = Launch {
        ranks: group.size,
        back_to_back: plan.back_to_back,
        oversubscribed: plan.oversubscribed,
        ..Launch::default()
    };
    rounds.work.fill();
    rounds.agree()?;
    launch.first_ns = rounds.sample(1, 1)?.slowest_ns;
    if options.check {
        launch.checked_elements = rounds.check()?;
    }
    launch.batch = match options.batch {
        Some(batch) => batch.max(1),
        None => rounds.choose_batch(plan.back_to_back)?,
    };
    rounds.warm_up(options, &mut launch)?;
    rounds.collect(options, &mut launch)?;
    if options.check {
        launch.checked_elements += rounds.check()?;
    }
    let after = synchronise(library, group)?;
    let moved = (after.to_common_ns - before.to_common_ns).abs() as f64;
    Ok(RankLaunch {
        launch,
        method: rounds.method,
        residual_ns: rounds.largest(moved + before.error_ns.max(after.error_ns))?,
        probe_ns: [before.round_trip_ns, after.round_trip_ns],
    })
}

impl<'a> Rounds<'a> {
    fn new(
        library: &'a Library,
        group: &'a Group,
        work: &'a mut dyn Work,
        plan: &Plan<'a>,
        offset: Offset,
    ) -> Self {
        Rounds {
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
            guard: Guard::new(),
            latest_ns: 0.0,
            expected_ns: 0.0,
            room_ns: ROOM_NS,
            repetition: 0,
        }
    }

    /// The largest of the ranks' numbers.
    fn largest(&self, own: f64) -> Result<f64> {
        let mut all = [0.0];
        self.library.max(self.group, &[own], &mut all)?;
        Ok(all[0])
    }

    /// Agrees on the common time anew, after something for which ranks need different times.
    fn agree(&mut self) -> Result<()> {
        self.library.barrier(self.group)?;
        self.latest_ns = self.largest(self.common_ns())?;
        Ok(())
    }

    fn common_ns(&self) -> f64 {
        (now_ns() + self.offset.to_common_ns) as f64
    }

    /// Runs once on fresh data and compares; a wrong result anywhere ends the launch everywhere.
    fn check(&mut self) -> Result<u64> {
        self.work.fill();
        self.work.run()?;
        let found = self.work.check();
        let wrong = if found.is_err() {
            f64::from(self.group.rank + 1)
        } else {
            0.0
        };
        let largest = self.largest(wrong)?;
        let checked = found?;
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

    /// One sample of so many repetitions: in one region, or each in its own.
    fn repeat(&mut self, repetitions: u32, back_to_back: bool) -> Result<Sample> {
        match back_to_back {
            true => self.sample(1, repetitions),
            false => self.sample(repetitions, 1),
        }
    }

    fn sample(&mut self, regions: u32, repetitions: u32) -> Result<Sample> {
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
            start_ns,
            finish_ns: start_ns + own_ns,
            disturbance: Disturbance::ALL.into_iter().find(disturbed),
            elapsed_s: all[rest],
        })
    }

    /// Waits for the start of a region: how long after the agreed time it began, and whether too late.
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

    fn choose_batch(&mut self, back_to_back: bool) -> Result<u32> {
        let most = if back_to_back { 1_000_000 } else { MOST_APART };
        let cold = self.repeat(3, back_to_back)?.slowest_ns;
        let guess = self.agreed_batch(cold, most)?;
        let warm = self.repeat(guess, back_to_back)?.slowest_ns;
        self.agreed_batch(warm, most)
    }

    /// Ranks calibrate their clocks by themselves, so that the batch must be the largest of all.
    fn agreed_batch(&mut self, one_ns: f64, most: u32) -> Result<u32> {
        let own = batch_size(one_ns, Clock::get()).min(most);
        Ok(self.largest(f64::from(own))? as u32)
    }

    /// Half of the budget at most: a machine that never settles is measured all the same.
    fn warm_up(&mut self, options: &RunOptions, launch: &mut Launch) -> Result<()> {
        let mut warm_up = WarmUp::new(options.warmup_at_most);
        let (mut late, mut elapsed_s) = (0, 0.0);
        let half_s = options.time_budget.as_secs_f64() / 2.0;
        while warm_up.batches() < options.warmup_at_most && elapsed_s < half_s {
            let mut few = Vec::with_capacity(3);
            for _ in 0..3 {
                let sample = self.repeat(launch.batch, launch.back_to_back)?;
                few.push(sample.slowest_ns);
                late += usize::from(sample.disturbance == Some(Disturbance::Late));
                elapsed_s = sample.elapsed_s;
            }
            let ready = warm_up.push(median(&mut few).expect("three values"));
            if late > TOO_LATE {
                self.method = Method::Barrier;
            }
            if ready {
                break;
            }
        }
        launch.warmup_batches = warm_up.batches();
        launch.warmed_up = warm_up.agreed();
        Ok(())
    }

    fn collect(&mut self, options: &RunOptions, launch: &mut Launch) -> Result<()> {
        let budget_s = options.time_budget.as_secs_f64();
        let mut late = 0;
        loop {
            let sample = self.repeat(launch.batch, launch.back_to_back)?;
            // Ranks that share a core preempt each other by design.
            match sample.disturbance.filter(|_| !launch.oversubscribed) {
                None => {
                    launch.slowest_ns.push(sample.slowest_ns);
                    launch.start_ns.push(sample.start_ns);
                    launch.finish_ns.push(sample.finish_ns);
                }
                Some(reason) => {
                    late += usize::from(reason == Disturbance::Late);
                    launch.drops.count(reason);
                    launch.disturbed_ns.push(sample.slowest_ns);
                }
            }
            if self.method == Method::Window && late > TOO_LATE.max(launch.slowest_ns.len()) {
                self.method = Method::Barrier;
                // One launch, one method.
                launch.slowest_ns.clear();
                launch.start_ns.clear();
                launch.finish_ns.clear();
            }
            if launch.slowest_ns.len() >= options.samples || options.settled(&launch.slowest_ns) {
                return Ok(());
            }
            if sample.elapsed_s >= budget_s {
                launch.out_of_time = true;
                return Ok(());
            }
        }
    }
}
