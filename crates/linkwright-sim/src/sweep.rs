//! Many experiments on one machine, on all cores of one process.
//!
//! ```text
//!   experiments, in the order of the plan
//!      | handed out one at a time, to whoever is free
//!   thread 1   thread 2   ...   thread N      build -> lower -> verify -> simulate
//!      |          |                |
//!      +----------+-- a short queue +--> next_within(): place in the plan, what was found
//! ```
//!
//! Experiments know nothing of each other: each builds its own schedule and fabric, so what is found depends
//! neither on the number of threads nor on who ran what. Only the order in which results arrive does; every
//! result carries its place in the plan.
//!
//! They are handed out one by one and in order, because their costs differ by a factor of a million (a ping-pong
//! beside an all-to-all) and a list cut in advance would leave threads idle. The queue is short: who does not
//! take results stops the threads instead of filling the memory. Dropping a [`Sweep`] ends it; a thread finishes
//! the experiment it is in.
//!
//! The threads are a rayon pool of their own, so a sweep neither waits for nor disturbs another one.

use crate::error::SimError;
use crate::probes::{self, Answer};
use crate::run::{lowered, run, Modelled, Options};
use crate::walk::{walk, How};
use linkwright_core::probes::Assignment;
use linkwright_core::Machine;
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::patterns::{self, Traffic};
use linkwright_schedule::{collectives, verify, ScheduleError, Shape, VerifyError};
use rayon::iter::{ParallelBridge, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Results that may wait for each thread.
const WAITING_PER_THREAD: usize = 8;

/// What is asked of the machine.
#[derive(Clone, Debug)]
pub enum Question {
    /// A collective by the algorithm of this key.
    Collective(String, Shape),
    /// The traffic pattern of this key.
    Pattern(String, Traffic),
    /// The same without a schedule: one rank that stands for all, or all ranks as they are read.
    Walk(String, Shape, How),
    /// A probe with its values.
    Probe(Assignment),
}

/// One experiment; a probe reads no options.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its place in the plan.
    pub place: usize,
    /// What is asked.
    pub question: Question,
    /// How it runs.
    pub options: Options,
}

/// What one experiment found.
#[derive(Debug)]
pub enum Found {
    /// Times and limits of a schedule.
    Times(Box<Modelled>),
    /// The answer to a probe.
    Answer(Answer),
}

/// Why an experiment gave no number.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Failure {
    /// The schedule cannot be made for this shape.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The schedule is wrong.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The simulation failed, or the machine cannot answer.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// What an experiment came to.
pub type Outcome = Result<Found, Failure>;

/// Asks one question of `machine`: builds, lowers and verifies its schedule, and simulates it.
pub fn ask(machine: &Machine, question: &Question, options: &Options) -> Outcome {
    let built = match question {
        Question::Probe(asked) => return Ok(Found::Answer(probes::answer(machine, asked)?)),
        Question::Walk(key, shape, how) => {
            let program = collectives::program(key, shape)?;
            return Ok(Found::Times(Box::new(walk(
                program, machine, options, *how,
            )?)));
        }
        Question::Collective(key, shape) => collectives::build(key, shape)?,
        Question::Pattern(key, traffic) => (patterns::find(key)?.build)(traffic)?,
    };
    let schedule: Schedule = lowered(&built, machine, options.path.as_deref())?.unwrap_or(built);
    verify(&schedule)?;
    Ok(Found::Times(Box::new(run(&schedule, machine, options)?)))
}

/// What waiting for a result came to.
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
    pub fn start(machine: Machine, experiments: Vec<Experiment>, jobs: usize) -> Self {
        let pool = ThreadPoolBuilder::new()
            .num_threads(jobs)
            .thread_name(|number| format!("sweep {number}"))
            .build()
            .expect("the system gives threads");
        let waiting = WAITING_PER_THREAD * pool.current_num_threads();
        let (sender, results) = sync_channel(waiting);
        pool.spawn(move || {
            // A refused send means that nobody listens any more: the sweep is over.
            let _ = experiments.into_iter().par_bridge().try_for_each_with(
                sender,
                |sender,
                 Experiment {
                     place,
                     question,
                     options,
                 }| {
                    let asked = AssertUnwindSafe(|| ask(&machine, &question, &options));
                    sender.send((place, catch_unwind(asked)))
                },
            );
        });
        Sweep {
            results,
            _pool: pool,
        }
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
