//! The rules of measurement for ranks that run together.
//!
//! ```text
//!   fill, first repetition (kept apart), check
//!   estimate -> batch; warm-up until medians agree
//!   samples, each guarded; dropped ones are counted and repeated
//!   of a pattern: repetitions in which each message is timed, apart from the samples
//!   fill, repetition, check
//! ```
//!
//! Data are not refilled between samples, so in-place reductions keep growing (integers wrap, floats
//! end at infinity). The time of an addition does not depend on its operands, and checks use freshly
//! filled data, before and after.

use crate::executor::{Launch, RunOptions};
use crate::guard::Disturbance;
use crate::sampling::{batch_size, median, WarmUp};
use crate::timer::Clock;

/// Most repetitions of a sample with a barrier before each: beyond, more samples tell more.
const MOST_APART: u32 = 1_000;

/// Messages of a pattern that are timed one by one, if that takes no longer than its share of the time.
const WATCHED: usize = 4_096;
/// Most repetitions for that, and the share of a launch's time.
const MOST_WATCHES: usize = 64;
const WATCH_SHARE: f64 = 0.05;

/// One sample, per repetition. Starts and finishes are those of the ranks that this process sees.
#[derive(Debug)]
pub(crate) struct Sample {
    pub slowest_ns: f64,
    pub start_ns: Vec<f64>,
    pub finish_ns: Vec<f64>,
    pub disturbance: Option<Disturbance>,
    /// Since the launch began.
    pub elapsed_s: f64,
}

/// Ranks that run a schedule together: threads of this process, or processes of an MPI job.
pub(crate) trait Ranks {
    type Error;

    /// Writes the initial data.
    fn fill(&mut self) -> Result<(), Self::Error>;

    /// Repeats the schedule back to back, or with the ranks starting together each time.
    fn sample(&mut self, repetitions: u32, back_to_back: bool) -> Result<Sample, Self::Error>;

    /// Runs on fresh data and compares with the postcondition; the elements that were compared.
    fn check(&mut self, back_to_back: bool) -> Result<u64, Self::Error>;

    /// Messages of a repetition, over all ranks, that are worth timing one by one.
    fn watched(&self) -> usize;

    /// One repetition: the latencies, in ns, of the messages of the ranks that this process sees, and whether something
    /// disturbed it.
    fn latencies(&mut self) -> Result<(Vec<f64>, bool), Self::Error>;

    /// The batch that all ranks use, where each has estimated its own.
    fn agree_on_batch(&mut self, own: u32) -> Result<u32, Self::Error> {
        Ok(own)
    }

    /// Called with the number of late samples and of kept ones; true: ranks start in another way from now on.
    fn change_start(&mut self, _late: usize, _kept: usize) -> bool {
        false
    }
}

/// One launch of `ranks`.
pub(crate) fn measure<R: Ranks>(
    ranks: &mut R,
    options: &RunOptions,
    back_to_back: bool,
    oversubscribed: bool,
) -> Result<Launch, R::Error> {
    let launch = Launch {
        back_to_back,
        oversubscribed,
        ..Launch::default()
    };
    let mut rounds = Rounds {
        ranks,
        options,
        launch,
        elapsed_s: 0.0,
    };
    rounds.ranks.fill()?;
    rounds.launch.first_ns = rounds.sample(1, false)?.slowest_ns;
    rounds.check()?;
    rounds.launch.batch = match options.batch {
        Some(batch) => batch.max(1),
        None => rounds.choose_batch()?,
    };
    rounds.warm_up()?;
    rounds.collect()?;
    rounds.watch()?;
    rounds.check()?;
    Ok(rounds.launch)
}

struct Rounds<'a, R> {
    ranks: &'a mut R,
    options: &'a RunOptions<'a>,
    launch: Launch,
    /// At the end of the last sample.
    elapsed_s: f64,
}

impl<R: Ranks> Rounds<'_, R> {
    fn sample(&mut self, repetitions: u32, back_to_back: bool) -> Result<Sample, R::Error> {
        let sample = self.ranks.sample(repetitions, back_to_back)?;
        self.elapsed_s = sample.elapsed_s;
        Ok(sample)
    }

    fn check(&mut self) -> Result<(), R::Error> {
        if !self.options.unchecked {
            self.launch.checked_elements += self.ranks.check(self.launch.back_to_back)?;
        }
        Ok(())
    }

    /// Sized by three cold repetitions, then by a whole warm batch.
    fn choose_batch(&mut self) -> Result<u32, R::Error> {
        let back_to_back = self.launch.back_to_back;
        let most = if back_to_back { u32::MAX } else { MOST_APART };
        let mut batch = 3;
        for _ in 0..2 {
            let one_ns = self.sample(batch, back_to_back)?.slowest_ns;
            let own = batch_size(one_ns, Clock::get()).min(most);
            batch = self.ranks.agree_on_batch(own)?;
        }
        Ok(batch)
    }

    /// Reading the clock twice for each message would slow short ones down, so no sample is timed in this way. How
    /// often follows from what all ranks know, so they agree.
    fn watch(&mut self) -> Result<(), R::Error> {
        let each = self.ranks.watched();
        let Some(one_ns) = median(&mut self.launch.slowest_ns.clone()) else {
            return Ok(());
        };
        if each == 0 {
            return Ok(());
        }
        let share_ns = WATCH_SHARE * self.options.sampling.time_budget.as_nanos() as f64;
        let affordable = (share_ns / one_ns.max(1.0)) as usize;
        let times = WATCHED
            .div_ceil(each)
            .min(affordable)
            .clamp(1, MOST_WATCHES);
        for _ in 0..times {
            let (found, disturbed) = self.ranks.latencies()?;
            if !disturbed || self.launch.oversubscribed {
                self.launch.message_ns.extend(found);
            }
        }
        Ok(())
    }

    /// Half of the budget at most: a machine that never settles is measured all the same.
    fn warm_up(&mut self) -> Result<(), R::Error> {
        let sampling = &self.options.sampling;
        let half_s = sampling.time_budget.as_secs_f64() / 2.0;
        let mut warm_up = WarmUp::new(sampling.warmup_at_most);
        let mut late = 0;
        while warm_up.batches() < sampling.warmup_at_most && self.elapsed_s < half_s {
            let mut few = [0.0; 3];
            for value in &mut few {
                let sample = self.sample(self.launch.batch, self.launch.back_to_back)?;
                *value = sample.slowest_ns;
                late += usize::from(sample.disturbance == Some(Disturbance::Late));
            }
            self.ranks.change_start(late, 0);
            if warm_up.push(median(&mut few).expect("three values")) {
                break;
            }
        }
        self.launch.warmup_batches = warm_up.batches();
        self.launch.warmed_up = warm_up.agreed();
        Ok(())
    }

    fn collect(&mut self) -> Result<(), R::Error> {
        let sampling = &self.options.sampling;
        let budget_s = sampling.time_budget.as_secs_f64();
        let mut late = 0;
        loop {
            let sample = self.sample(self.launch.batch, self.launch.back_to_back)?;
            let launch = &mut self.launch;
            // Ranks that share a core preempt each other by design.
            match sample.disturbance.filter(|_| !launch.oversubscribed) {
                None => {
                    launch.slowest_ns.push(sample.slowest_ns);
                    launch.start_ns.extend(sample.start_ns);
                    launch.finish_ns.extend(sample.finish_ns);
                }
                Some(reason) => {
                    late += usize::from(reason == Disturbance::Late);
                    launch.drops.count(reason);
                    launch.disturbed_ns.push(sample.slowest_ns);
                }
            }
            if self.ranks.change_start(late, launch.slowest_ns.len()) {
                // Samples of one launch start in one way.
                launch.slowest_ns.clear();
                launch.start_ns.clear();
                launch.finish_ns.clear();
            }
            let kept = &launch.slowest_ns;
            if kept.len() >= sampling.samples || sampling.settled(kept) {
                return Ok(());
            }
            if self.elapsed_s >= budget_s {
                launch.out_of_time = true;
                return Ok(());
            }
        }
    }
}
