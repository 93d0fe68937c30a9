//! Prices candidates on all cores and keeps the fastest.
//!
//! Candidates of a batch are simulated in parallel and accepted in the order of the batch: by time, then by place. So
//! the same candidates give the same winner on any number of threads. A candidate that would become the best is first
//! proved and simulated in full, with its limits; one that fails is refused, and the next takes its place.

use crate::candidate::{Candidate, Recipe};
use crate::error::{Result, SynthesisError};
use crate::problem::Problem;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::verify;
use linkwright_sim::{lowered, run};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Its simulated time.
    Time(TimePs),
    /// It was not simulated, because the time was over.
    Skipped,
    /// It cannot run on this machine.
    Refused(String),
}

impl Verdict {
    /// The time, if there is one.
    pub fn time(&self) -> Option<TimePs> {
        match self {
            Verdict::Time(time) => Some(*time),
            _ => None,
        }
    }
}

/// The fastest candidate so far: proved, and simulated in full.
#[derive(Clone, Debug)]
pub struct Winner {
    /// Key of its method.
    pub method: &'static str,
    /// How it is made.
    pub recipe: Recipe,
    /// The schedule, before the machine lowers it.
    pub schedule: Schedule,
    /// Issue policy of every lane.
    pub issue: Issue,
    /// Its simulated time.
    pub time: TimePs,
}

/// What ends a search.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Time for the search; none: until the methods have no more candidates.
    pub budget: Option<Duration>,
    /// Threads; 0 is one for each processor.
    pub jobs: usize,
    /// Set from elsewhere to end the search with the best so far.
    pub stop: Arc<AtomicBool>,
}

/// Prices candidates and remembers the best.
pub struct Judge {
    problem: Problem,
    pool: ThreadPool,
    deadline: Option<Instant>,
    stop: Arc<AtomicBool>,
    best: Option<Winner>,
    known: Option<(TimePs, Recipe)>,
    tried: usize,
    skipped: usize,
    first_refusal: Option<String>,
    better: Box<dyn FnMut(&Winner, usize) + Send>,
}

impl Judge {
    /// A judge without candidates, who tells `better` of each new best and of how many were tried by then.
    pub fn new(
        problem: Problem,
        limits: &Limits,
        better: impl FnMut(&Winner, usize) + Send + 'static,
    ) -> Self {
        let pool = ThreadPoolBuilder::new()
            .num_threads(limits.jobs)
            .thread_name(|number| format!("judge {number}"))
            .build()
            .expect("the system gives threads");
        Judge {
            problem,
            pool,
            deadline: limits.budget.map(|budget| Instant::now() + budget),
            stop: limits.stop.clone(),
            best: None,
            known: None,
            tried: 0,
            skipped: 0,
            first_refusal: None,
            better: Box::new(better),
        }
    }

    /// Make and price the candidates that recipes and issue policies give; a recipe that does not fit is refused.
    pub fn try_recipes(&mut self, method: &'static str, asked: &[(Recipe, Issue)]) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(asked.len());
        // A few at a time, because schedules may be large.
        for batch in asked.chunks(4 * self.pool.current_num_threads().max(4)) {
            let shape = &self.problem.shape;
            let made: Vec<_> = match over(self.deadline, &self.stop) {
                true => batch.iter().map(|_| None).collect(),
                false => (self.pool)
                    .install(|| batch.par_iter().map(|(r, _)| Some(r.make(shape))).collect()),
            };
            let mut candidates = Vec::new();
            let mut found = Vec::new();
            for ((recipe, issue), made) in batch.iter().zip(made) {
                found.push(match made {
                    None => Some(Verdict::Skipped),
                    Some(Err(error)) => Some(Verdict::Refused(error.to_string())),
                    Some(Ok(schedule)) => {
                        candidates.push(Candidate {
                            method,
                            recipe: recipe.clone(),
                            schedule,
                            issue: *issue,
                            path: None,
                        });
                        None
                    }
                });
            }
            self.skipped += found
                .iter()
                .filter(|v| **v == Some(Verdict::Skipped))
                .count();
            let mut priced = self.consider(candidates).into_iter();
            let verdict = |found: Option<Verdict>| found.or_else(|| priced.next());
            verdicts.extend(found.into_iter().filter_map(verdict));
        }
        verdicts
    }

    /// Price candidates; the fastest of them may become the best.
    pub fn consider(&mut self, candidates: Vec<Candidate>) -> Vec<Verdict> {
        let (problem, deadline, stop) = (&self.problem, self.deadline, &self.stop);
        let price = |candidate: &Candidate| match over(deadline, stop) {
            true => Verdict::Skipped,
            false => match time_of(problem, candidate) {
                Ok(time) => Verdict::Time(time),
                Err(error) => Verdict::Refused(error.to_string()),
            },
        };
        let mut verdicts: Vec<Verdict> =
            (self.pool).install(|| candidates.par_iter().map(price).collect());
        for verdict in &verdicts {
            match verdict {
                Verdict::Time(_) => self.tried += 1,
                Verdict::Skipped => self.skipped += 1,
                Verdict::Refused(why) => {
                    self.tried += 1;
                    self.first_refusal.get_or_insert_with(|| why.clone());
                }
            }
        }
        self.accept(&candidates, &mut verdicts);
        verdicts
    }

    /// Prove what is faster than the best, the fastest first.
    fn accept(&mut self, candidates: &[Candidate], verdicts: &mut [Verdict]) {
        let mut order: Vec<(TimePs, usize)> = (verdicts.iter().enumerate())
            .filter_map(|(place, verdict)| Some((verdict.time()?, place)))
            .collect();
        order.sort();
        for &(time, place) in &order {
            let candidate = &candidates[place];
            if candidate.recipe.is_known() && self.known.as_ref().is_none_or(|k| time < k.0) {
                self.known = Some((time, candidate.recipe.clone()));
            }
        }
        for (time, place) in order {
            if self.best.as_ref().is_some_and(|best| best.time <= time) {
                return;
            }
            match prove(&self.problem, &candidates[place]) {
                Ok(()) => return self.win(&candidates[place], time),
                Err(error) => verdicts[place] = Verdict::Refused(error.to_string()),
            }
        }
    }

    fn win(&mut self, candidate: &Candidate, time: TimePs) {
        let winner = Winner {
            method: candidate.method,
            recipe: candidate.recipe.clone(),
            schedule: candidate.schedule.clone(),
            issue: candidate.issue,
            time,
        };
        (self.better)(&winner, self.tried);
        self.best = Some(winner);
    }

    /// A judge of another problem, such as a part of this one, with the same time and stop.
    pub fn of_part(&self, problem: Problem) -> Self {
        let limits = Limits {
            budget: None,
            jobs: self.pool.current_num_threads(),
            stop: self.stop.clone(),
        };
        Judge {
            deadline: self.deadline,
            ..Judge::new(problem, &limits, |_, _| ())
        }
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The best so far.
    pub fn incumbent(&self) -> Option<&Winner> {
        self.best.as_ref()
    }

    /// The best registered algorithm as it is, under any issue policy.
    pub fn known(&self) -> Option<&(TimePs, Recipe)> {
        self.known.as_ref()
    }

    /// Candidates that were simulated or refused.
    pub fn tried(&self) -> usize {
        self.tried
    }

    /// Whether every candidate that was proposed has been looked at.
    pub fn is_complete(&self) -> bool {
        self.skipped == 0
    }

    /// Whether there is time for more candidates.
    pub fn time_left(&self) -> bool {
        !over(self.deadline, &self.stop)
    }

    /// The best, or why there is none.
    pub fn finish(self) -> Result<Winner> {
        match (self.best, self.first_refusal) {
            (Some(best), _) => Ok(best),
            (None, Some(first)) => Err(SynthesisError::Nothing {
                tried: self.tried,
                first,
            }),
            (None, None) => Err(SynthesisError::NoTime),
        }
    }
}

fn over(deadline: Option<Instant>, stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed) || deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// The schedule as it runs on the machine.
fn as_run<'a>(problem: &Problem, candidate: &'a Candidate) -> Result<Cow<'a, Schedule>> {
    let path = candidate.path.as_deref().or(problem.path.as_deref());
    let made = lowered(&candidate.schedule, &problem.machine, path)?;
    Ok(made.map_or(Cow::Borrowed(&candidate.schedule), Cow::Owned))
}

fn time_of(problem: &Problem, candidate: &Candidate) -> Result<TimePs> {
    let schedule = as_run(problem, candidate)?;
    let options = options(problem, candidate);
    let modelled = run(&schedule, &problem.machine, &options)?;
    Ok(modelled.simulation.makespan)
}

fn options(problem: &Problem, candidate: &Candidate) -> linkwright_sim::Options {
    let mut options = problem.options(candidate.issue);
    options.path = candidate.path.clone().or(options.path);
    options
}

fn prove(problem: &Problem, candidate: &Candidate) -> Result<()> {
    let schedule = as_run(problem, candidate)?;
    verify(&schedule).map_err(linkwright_sim::SimError::from)?;
    Ok(())
}
