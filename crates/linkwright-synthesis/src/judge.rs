//! The judge: prices candidates on all cores and remembers the best.
//!
//! ```text
//!   batch ---> thread 1: make, lower, simulate -- stopped beyond the incumbent --> Time | Slower | Refused
//!         `--> thread 2: ...                                                         |
//!   when all are priced, in the order (time, place in the batch): verify, simulate with limits --> new incumbent
//! ```
//!
//! The incumbent that stops a batch is that from before the batch, so verdicts depend neither on the number of threads
//! nor on which of them was fast. A candidate that is stopped, refused or slower costs no proof; a winner is proved and
//! simulated as any schedule, and refused if it is wrong.

use crate::candidate::{Candidate, Draft};
use crate::compose::explored::Explored;
use crate::graph::Graph;
use crate::problem::Problem;
use crate::Result;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::patience::while_wanted;
use linkwright_schedule::{verify, Schedule, ScheduleError};
use linkwright_sim::{lowered, run, Modelled, Options, Pricer, SimError};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Most operations of a schedule that is made; about 200 bytes each while it is simulated.
pub const MOST_OPERATIONS: u64 = 1 << 22;

/// What the judge says of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes this long, with the best of its issue policies.
    Time(TimePs),
    /// It takes longer than the incumbent.
    Slower,
    /// It cannot run, and why.
    Refused(String),
    /// Nobody looked at it: the time is over.
    Late,
}

impl Verdict {
    /// The time, where there is one.
    pub fn time(&self) -> Option<TimePs> {
        match self {
            Verdict::Time(time) => Some(*time),
            _ => None,
        }
    }
}

/// The best candidate so far, proved.
#[derive(Clone, Debug)]
pub struct Winner {
    /// What was proposed.
    pub candidate: Candidate,
    /// Its makespan.
    pub time: TimePs,
    /// Candidates that had been priced when it won, those of its batch included.
    pub tried: u64,
    /// Time since the search began.
    pub elapsed: Duration,
}

/// When to end, and with how many threads to work.
#[derive(Clone, Debug)]
pub struct Control {
    /// Set from outside to end the search as soon as possible.
    pub stop: Arc<AtomicBool>,
    /// How long to search.
    pub budget: Duration,
    /// Threads; 0 is one for each processor that this process may use.
    pub threads: usize,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            stop: Arc::default(),
            budget: Duration::MAX,
            threads: 0,
        }
    }
}

/// Called with each new winner.
pub type Report = Box<dyn FnMut(&Winner) + Send + Sync>;

/// Prices candidates for one problem.
pub struct Judge {
    problem: Arc<Problem>,
    pool: Arc<ThreadPool>,
    /// One for each thread.
    pricers: Vec<Mutex<Pricer>>,
    graph: OnceLock<Graph>,
    winner: Option<Winner>,
    tried: u64,
    refusal: Option<String>,
    unseen: u64,
    /// Compositions, for methods that go on from them.
    pub(crate) explored: Explored,
    stop: Arc<AtomicBool>,
    begun: Instant,
    /// When the method that is at work is to end; `None`: never.
    until: Option<Instant>,
    report: Report,
}

impl Judge {
    /// A judge without an incumbent, whose time begins now.
    pub fn new(problem: Arc<Problem>, control: Control, report: Report) -> Self {
        let pool = ThreadPoolBuilder::new()
            .num_threads(control.threads)
            .thread_name(|number| format!("judge {number}"))
            .build()
            .expect("the system gives threads");
        let begun = Instant::now();
        let until = begun.checked_add(control.budget);
        Judge::on(
            problem,
            Arc::new(pool),
            (control.stop, begun, until),
            report,
        )
    }

    fn on(
        problem: Arc<Problem>,
        pool: Arc<ThreadPool>,
        (stop, begun, until): (Arc<AtomicBool>, Instant, Option<Instant>),
        report: Report,
    ) -> Self {
        let pricer = |_| Mutex::new(Pricer::new(problem.machine.clone()));
        Judge {
            pricers: (0..pool.current_num_threads()).map(pricer).collect(),
            problem,
            pool,
            graph: OnceLock::new(),
            winner: None,
            tried: 0,
            refusal: None,
            unseen: 0,
            explored: Explored::default(),
            stop,
            begun,
            until,
            report,
        }
    }

    /// A judge of another problem, such as a smaller one, with the same threads and the same end. It reports to nobody.
    pub fn beside(&self, problem: Arc<Problem>) -> Judge {
        let clock = (self.stop.clone(), self.begun, self.until);
        Judge::on(problem, self.pool.clone(), clock, Box::new(|_| ()))
    }

    /// What is to be found.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The best so far.
    pub fn incumbent(&self) -> Option<&Winner> {
        self.winner.as_ref()
    }

    /// Candidates priced so far.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Why the first candidate that was refused was.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Known algorithms at which nobody looked, because the time was over.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// So many known algorithms had no verdict when the time was over.
    pub(crate) fn note_unseen(&mut self, count: usize) {
        self.unseen += count as u64;
    }

    /// Whether the method that is at work may go on.
    pub fn time_left(&self) -> bool {
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        !over && !self.stop.load(Ordering::Relaxed)
    }

    /// What is left of its time; `None` where it has no end.
    pub fn remaining(&self) -> Option<Duration> {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.map(left)
    }

    /// Let the next method end at `until`.
    pub(crate) fn end_at(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// The machine as a graph, for messages of the problem's path.
    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| Graph::new(&self.problem))
    }

    /// Price schedules that are there; the best becomes the incumbent if it is faster.
    pub fn consider(&mut self, candidates: Vec<Candidate>) -> Vec<Verdict> {
        let drafts: Vec<Draft> = candidates.into_iter().map(Draft::from).collect();
        self.consider_drafts(&drafts)
    }

    /// The same of schedules that are made meanwhile.
    pub fn consider_drafts(&mut self, drafts: &[Draft]) -> Vec<Verdict> {
        let within = self.consider_within(drafts, TimePs::ZERO);
        within.into_iter().map(|one| one.0).collect()
    }

    /// The same with the times of all that take less than `limit`, where that is more than the incumbent takes, and the
    /// policy with which each takes least.
    pub fn consider_within(&mut self, drafts: &[Draft], limit: TimePs) -> Vec<(Verdict, Issue)> {
        let mut verdicts = self.priced(drafts, self.bar().max(limit), None);
        if self.winner.is_none() && !verdicts.iter().any(|one| one.0.time().is_some()) {
            self.answer(drafts, &mut verdicts);
        }
        self.considered(drafts, verdicts)
    }

    /// The same of those with which the processor is done within `patience`; others are [`Verdict::Late`].
    pub fn consider_for(&mut self, drafts: &[Draft], patience: Option<Duration>) -> Vec<Verdict> {
        let verdicts = self.priced(drafts, self.bar(), patience);
        let considered = self.considered(drafts, verdicts);
        considered.into_iter().map(|one| one.0).collect()
    }

    /// Without any answer, wait for the first of those that were late.
    fn answer(&self, drafts: &[Draft], verdicts: &mut [(Verdict, Issue)]) {
        for (draft, verdict) in drafts.iter().zip(verdicts) {
            if verdict.0 == Verdict::Late {
                let mut pricer = Pricer::new(self.problem.machine.clone());
                *verdict = self.price_one(draft, &mut pricer, TimePs::MAX, None);
                if verdict.0.time().is_some() {
                    return;
                }
            }
        }
    }

    /// Accept the best of what was priced.
    fn considered(
        &mut self,
        drafts: &[Draft],
        mut verdicts: Vec<(Verdict, Issue)>,
    ) -> Vec<(Verdict, Issue)> {
        let looked_at = verdicts.iter().filter(|one| one.0 != Verdict::Late);
        self.tried += looked_at.count() as u64;
        let timed = |(place, (verdict, issue)): (usize, &(Verdict, Issue))| {
            Some((verdict.time()?, place, *issue))
        };
        let priced = &verdicts;
        let mut order: Vec<_> = priced.iter().enumerate().filter_map(timed).collect();
        order.sort_unstable_by_key(|&(time, place, _)| (time, place));
        for (time, place, issue) in order {
            if time >= self.bar() {
                break;
            }
            match self.proved(&drafts[place], issue) {
                Ok(winner) => self.accept(winner),
                Err(why) => verdicts[place].0 = Verdict::Refused(why.to_string()),
            }
        }
        self.note_refusal(&verdicts);
        verdicts
    }

    /// Remember why the first that was refused was.
    fn note_refusal(&mut self, verdicts: &[(Verdict, Issue)]) {
        if self.refusal.is_none() {
            self.refusal = verdicts.iter().find_map(|one| match &one.0 {
                Verdict::Refused(why) => Some(why.clone()),
                _ => None,
            });
        }
    }

    /// Times of all of `drafts`, whatever the incumbent; none is accepted.
    pub fn price(&mut self, drafts: &[Draft]) -> Vec<Verdict> {
        let priced = self.priced(drafts, TimePs::MAX, None);
        self.tried += priced.len() as u64;
        self.note_refusal(&priced);
        priced.into_iter().map(|one| one.0).collect()
    }

    /// Time to beat.
    pub fn bar(&self) -> TimePs {
        self.winner
            .as_ref()
            .map_or(TimePs::MAX, |winner| winner.time)
    }

    fn priced(
        &self,
        drafts: &[Draft],
        stop_at: TimePs,
        patience: Option<Duration>,
    ) -> Vec<(Verdict, Issue)> {
        let one = |draft: &Draft, pricer: &mut Pricer| {
            if !self.time_left() {
                return (Verdict::Late, Issue::default());
            }
            let patient = patience.and_then(|time| Instant::now().checked_add(time));
            let until = self.until.into_iter().chain(patient).min();
            self.price_one(draft, pricer, stop_at, until)
        };
        // Threads take one draft after another, so that none has several left when the others are done.
        let next = AtomicUsize::new(0);
        let verdicts: Vec<OnceLock<_>> = drafts.iter().map(|_| OnceLock::new()).collect();
        self.pool.broadcast(|thread| {
            let mut pricer = self.pricers[thread.index()]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            while let Some(place) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&place| place < drafts.len())
            {
                let _ = verdicts[place].set(one(&drafts[place], &mut pricer));
            }
        });
        let verdict = |one: OnceLock<_>| one.into_inner().expect("each draft is taken once");
        verdicts.into_iter().map(verdict).collect()
    }

    /// The verdict on one draft, and the policy with which it takes least. What is made or simulated at `until`, or
    /// when the search is to end, is abandoned; without `until` nothing is.
    fn price_one(
        &self,
        draft: &Draft,
        pricer: &mut Pricer,
        stop_at: TimePs,
        until: Option<Instant>,
    ) -> (Verdict, Issue) {
        let mut best = (Verdict::Slower, Issue::default());
        let refused = |why: SimError| match why {
            SimError::Schedule(ScheduleError::Unwanted) => (Verdict::Late, Issue::default()),
            why => (Verdict::Refused(why.to_string()), Issue::default()),
        };
        if draft.operations > MOST_OPERATIONS {
            let problem = format!(
                "about {} operations; at most {MOST_OPERATIONS} are made, use fewer ranks or slices",
                draft.operations
            );
            return (Verdict::Refused(problem), Issue::default());
        }
        let (made, path) = (
            self.within(until, || self.made(draft)),
            draft.path.as_deref(),
        );
        let schedule = match &made {
            Ok(made) => self.within(until, || self.lower(made, path)),
            Err(why) => return refused(why.clone()),
        };
        let schedule = match schedule {
            Ok(schedule) => schedule,
            Err(why) => return refused(why),
        };
        for &issue in &draft.issues {
            let (answered, stop_at) = (best.0.time().is_some(), best.0.time().unwrap_or(stop_at));
            let until = self.until.filter(|_| answered).or(until);
            match pricer.time(
                &schedule,
                &self.problem.options(issue, path),
                stop_at,
                until,
            ) {
                Ok(time) if time < stop_at => best = (Verdict::Time(time), issue),
                Ok(_) | Err(SimError::Stopped { .. }) => {}
                Err(why) => return refused(why),
            }
        }
        match (best.0 == Verdict::Slower, until) {
            (true, Some(until)) if Instant::now() >= until => (Verdict::Late, best.1),
            _ => best,
        }
    }

    fn within<T>(&self, until: Option<Instant>, make: impl FnOnce() -> T) -> T {
        let stop = self.stop.clone();
        let goes_on = move |until| Instant::now() < until && !stop.load(Ordering::Relaxed);
        while_wanted(move || until.is_none_or(&goes_on), make)
    }

    fn made(&self, draft: &Draft) -> Result<Arc<Schedule>> {
        (draft.make)()
    }

    fn lower<'a>(&self, made: &'a Schedule, path: Option<&str>) -> Result<Cow<'a, Schedule>> {
        let path = path.or(self.problem.path.as_deref());
        let lowered = lowered(made, &self.problem.machine, path)?;
        Ok(lowered.map_or(Cow::Borrowed(made), Cow::Owned))
    }

    /// The draft as a winner, if it is right.
    fn proved(&self, draft: &Draft, issue: Issue) -> Result<Winner> {
        let schedule = self.made(draft)?;
        let lowered = self.lower(&schedule, draft.path.as_deref())?;
        verify(&lowered)?;
        let options = self.problem.options(issue, draft.path.as_deref());
        let time = run(&lowered, &self.problem.machine, &options)?
            .simulation
            .makespan;
        drop(lowered);
        Ok(Winner {
            candidate: Candidate {
                method: draft.method,
                recipe: draft.recipe.clone(),
                schedule,
                issue,
                path: draft.path.clone(),
            },
            time,
            tried: self.tried,
            elapsed: self.begun.elapsed(),
        })
    }

    /// `candidate` simulated with its critical path, the load of every link and the times of every operation.
    pub fn explain(&self, candidate: &Candidate) -> Result<Modelled> {
        let schedule = self.lower(&candidate.schedule, candidate.path.as_deref())?;
        let options = self
            .problem
            .options(candidate.issue, candidate.path.as_deref());
        let options = Options {
            record_operations: true,
            ..options
        };
        run(&schedule, &self.problem.machine, &options)
    }

    fn accept(&mut self, winner: Winner) {
        (self.report)(&winner);
        self.winner = Some(winner);
    }
}
