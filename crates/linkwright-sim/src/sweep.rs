//! Many experiments on one machine, on all cores of one process.
//!
//! ```text
//!   experiments, the few large ones first, the others in the order of the plan
//!      | handed out one at a time, to the next free thread
//!   thread 1   thread 2   ...   thread N      build -> lower -> verify -> simulate
//!      |          |                |
//!      +----------+-- a short queue +--> next_within(): place in the plan, what was found
//! ```
//!
//! Experiments are independent: each builds its own schedule and fabric, so results depend neither on the number
//! of threads nor on which thread ran what. Only the order in which results arrive does; every result carries
//! its place in the plan.
//!
//! They are handed out one by one, because their costs differ by a factor of a million (a ping-pong compared with an
//! all-to-all) and a list cut in advance would leave threads idle. So would a large experiment that begins last, and
//! plans grow towards their ends: an experiment that is a good part of one thread's share goes first, largest first
//! (Graham, "Bounds on multiprocessing timing anomalies", 1969). The others keep their order; otherwise a consumer
//! that prints results in that order would wait for the end. The queue is short: a consumer that stops taking results
//! stops the threads instead of filling the memory. Dropping a [`Sweep`] ends it; a thread finishes the experiment it is in.
//!
//! The threads are a rayon pool of their own, so a sweep neither waits for nor disturbs another one.

use crate::error::SimError;
use crate::probes;
use crate::run::{ask, lowered, remark, Answer, How};
use crate::symmetric;
use linkwright_core::probes::Assignment;
use linkwright_core::Machine;
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::patterns::{self, Traffic};
use linkwright_schedule::{collectives, verify, Shape};
use rayon::iter::{ParallelBridge, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Results that may wait for each thread.
const WAITING_PER_THREAD: usize = 8;
/// An experiment is large where it is more than this part of what one thread has to do.
const LARGE: u128 = 8;

/// What is asked of the machine.
#[derive(Clone, Debug)]
pub enum Question {
    /// A collective by the algorithm of this key.
    Collective(String, Shape),
    /// The traffic pattern of this key.
    Pattern(String, Traffic),
    /// A schedule that is there already.
    Given(Arc<Schedule>),
    /// A rank-symmetric collective by the algorithm of this key, where one rank represents all.
    Folded(String, Shape),
    /// A rank-symmetric collective: one rank represents all where it can, otherwise all are simulated.
    Streamed(String, Shape),
    /// A probe with its values.
    Probe(Assignment),
}

/// One experiment; a probe reads no `how`.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its place in the plan.
    pub place: usize,
    /// What is asked.
    pub question: Question,
    /// How it runs.
    pub how: How,
}

impl Question {
    /// Messages to simulate, roughly: enough to know what is large.
    fn messages(&self) -> u128 {
        let pairs = |ranks: u32| u128::from(ranks) * u128::from(ranks);
        match self {
            Question::Collective(_, shape) | Question::Streamed(_, shape) => pairs(shape.ranks),
            Question::Pattern(_, traffic) => {
                u128::from(traffic.shape.ranks) * u128::from(traffic.count)
            }
            Question::Given(schedule) => schedule.message_count() as u128,
            Question::Folded(_, shape) => shape.ranks.into(),
            Question::Probe(_) => 1,
        }
    }
}

/// Brings what is large to the front.
fn large_first(experiments: &mut [Experiment], threads: usize) {
    let all: u128 = experiments.iter().map(|e| e.question.messages()).sum();
    let share = all / threads as u128;
    experiments.sort_by_key(|experiment| {
        let messages = experiment.question.messages();
        Reverse(if messages * LARGE > share {
            messages
        } else {
            0
        })
    });
}

/// What one experiment found.
#[derive(Debug)]
pub enum Finding {
    /// Times and limits of a schedule.
    Times(Box<Answer>),
    /// The answer to a probe.
    Answer(probes::Answer),
}

/// The outcome of an experiment.
pub type Outcome = Result<Finding, SimError>;

/// Asks one question of `machine`: builds, lowers and verifies its schedule, and simulates it.
pub fn answer(machine: &Machine, question: &Question, how: &How) -> Outcome {
    let built = match question {
        Question::Probe(asked) => return Ok(Finding::Answer(probes::answer(machine, asked)?)),
        Question::Folded(key, shape) => {
            let answer = symmetric::simulate(key, shape, machine, how)?;
            return Ok(Finding::Times(Box::new(answer)));
        }
        Question::Streamed(key, shape) => match symmetric::simulate(key, shape, machine, how) {
            Err(SimError::Unsuited { .. }) => Cow::Owned(collectives::build(key, shape)?),
            answer => return Ok(Finding::Times(Box::new(answer?))),
        },
        Question::Collective(key, shape) => Cow::Owned(collectives::build(key, shape)?),
        Question::Pattern(key, traffic) => Cow::Owned((patterns::find(key)?.build)(traffic)?),
        Question::Given(schedule) => Cow::Borrowed(&**schedule),
    };
    let (path, placement) = (how.path.as_deref(), &how.placement);
    let remark = remark(&built, machine, path, placement)?;
    let schedule = match lowered(&built, machine, path, placement)? {
        Some(lowered) => Cow::Owned(lowered),
        None => built,
    };
    verify(&schedule)?;
    let answer = ask(machine, &schedule, how)?;
    Ok(Finding::Times(Box::new(Answer { remark, ..answer })))
}

/// The outcome of waiting for a result.
#[derive(Debug)]
pub enum Next {
    /// The experiment at this place of the plan has ended.
    Result(usize, Outcome),
    /// None has ended so far.
    Later,
    /// All have.
    End,
}

/// Experiments under way.
pub struct Sweep {
    results: Receiver<(usize, thread::Result<Outcome>)>,
    _pool: ThreadPool,
}

impl Sweep {
    /// Starts `experiments` on `machine`, on `jobs` threads; 0 is one for each processor that this process may use.
    /// Fails where the system gives no threads.
    pub fn start(
        machine: Machine,
        mut experiments: Vec<Experiment>,
        jobs: usize,
    ) -> Result<Self, ThreadPoolBuildError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(jobs)
            .thread_name(|number| format!("sweep {number}"))
            .build()?;
        if pool.current_num_threads() > 1 {
            large_first(&mut experiments, pool.current_num_threads());
        }
        let waiting = WAITING_PER_THREAD * pool.current_num_threads();
        let (sender, results) = sync_channel(waiting);
        pool.spawn(move || {
            // A refused send means that the receiver is gone: the sweep is over.
            let _ = experiments.into_iter().par_bridge().try_for_each_with(
                sender,
                |sender,
                 Experiment {
                     place,
                     question,
                     how,
                 }| {
                    let asked = AssertUnwindSafe(|| answer(&machine, &question, &how));
                    sender.send((place, catch_unwind(asked)))
                },
            );
        });
        Ok(Sweep {
            results,
            _pool: pool,
        })
    }

    /// The next result, waiting for it no longer than `patience`. A panic of an experiment goes on here.
    pub fn next_within(&self, patience: Duration) -> Next {
        match self.results.recv_timeout(patience) {
            Ok((place, Ok(outcome))) => Next::Result(place, outcome),
            Ok((_, Err(panic))) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => Next::Later,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_begins_first_and_the_others_keep_their_order() {
        let ranks = [4, 8, 2, 16, 64, 4, 32, 2];
        let experiment = |(place, &ranks): (usize, &u32)| Experiment {
            place,
            question: Question::Collective("alltoall/linear".into(), Shape::new(ranks, 64)),
            how: How::default(),
        };
        let mut plan: Vec<_> = ranks.iter().enumerate().map(experiment).collect();
        large_first(&mut plan, 2);
        // 5,480 messages, 2,740 for each thread; above an eighth of that are those of 64 and 32 ranks.
        let order: Vec<_> = plan.iter().map(|e| e.place).collect();
        assert_eq!(order, [4, 6, 0, 1, 2, 3, 5, 7]);
    }
}
