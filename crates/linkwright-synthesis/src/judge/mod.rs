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

mod price;

use crate::candidate::{Candidate, Draft, KNOWN};
use crate::compose::explored::Explored;
use crate::graph::Graph;
use crate::kept::{Kept, Shortlist};
use crate::problem::Problem;
pub use crate::verdict::{Control, Report, Verdict, Winner};
use crate::Result;
use linkwright_core::clock::Instant;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::{verify, Schedule};
use linkwright_sim::{ask, Pricer};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Most operations of a schedule that is made; about 200 bytes each while it is simulated.
pub const MOST_OPERATIONS: u64 = 1 << 22;

/// How much longer than the incumbent a candidate may take to be one of the shortlist.
const SHORTLISTED: f64 = 1.1;

/// A whole search: methods propose to a judge until its time is over.
pub type Search = fn(&mut Judge) -> Result<()>;

/// Prices candidates for one problem.
pub struct Judge {
    problem: Arc<Problem>,
    /// Absent where one thread does all: that of the caller, since a page in a browser has no other.
    pool: Option<Arc<ThreadPool>>,
    /// One for each thread.
    pricers: Vec<Mutex<Pricer>>,
    graph: OnceLock<Graph>,
    winner: Option<Winner>,
    /// The best of the known algorithms.
    known: Option<Winner>,
    shortlist: Shortlist,
    tried: u64,
    refusal: Option<String>,
    unseen: u64,
    /// The share of its time with serial starts that a candidate takes at least; see [`Judge::beside_serial`].
    serial_share: Option<f64>,
    /// All methods in turn, for one of them that searches on a judge beside.
    search: Option<Search>,
    /// Compositions found so far, from which later methods go on.
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
        let pool = (control.threads != 1).then(|| {
            let builder = ThreadPoolBuilder::new()
                .num_threads(control.threads)
                .thread_name(|number| format!("judge {number}"));
            Arc::new(builder.build().expect("the system gives threads"))
        });
        let begun = Instant::now();
        let until = begun.checked_add(control.budget);
        Judge::on(problem, pool, (control.stop, begun, until), report)
    }

    fn on(
        problem: Arc<Problem>,
        pool: Option<Arc<ThreadPool>>,
        (stop, begun, until): (Arc<AtomicBool>, Instant, Option<Instant>),
        report: Report,
    ) -> Self {
        let pricer = |_| Mutex::new(Pricer::new(problem.machine.clone()));
        let threads = pool.as_ref().map_or(1, |pool| pool.current_num_threads());
        Judge {
            pricers: (0..threads).map(pricer).collect(),
            problem,
            pool,
            graph: OnceLock::new(),
            winner: None,
            known: None,
            shortlist: Shortlist::default(),
            tried: 0,
            refusal: None,
            unseen: 0,
            serial_share: None,
            search: None,
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

    /// A judge of the same problem, for methods that plan for serial starts. It takes as the time of a candidate what it
    /// takes as described, or `share` of what it takes with serial starts, whichever is more: what must not take longer
    /// than a limit there is fast here.
    pub fn beside_serial(&self, share: f64) -> Judge {
        let problem = Problem {
            serial_starts: true,
            ..(*self.problem).clone()
        };
        Judge {
            serial_share: Some(share),
            ..self.beside(Arc::new(problem))
        }
    }

    /// How methods search on a second judge besides this one.
    pub(crate) fn search_by(&mut self, search: Search) {
        self.search = Some(search);
    }

    /// Search on `beside`, where it is known how.
    pub(crate) fn search_beside(&self, beside: &mut Judge) -> Result<()> {
        self.search.map_or(Ok(()), |search| search(beside))
    }

    /// What is to be found.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The same to keep while the judge works.
    pub(crate) fn shared(&self) -> Arc<Problem> {
        self.problem.clone()
    }

    /// The best so far.
    pub fn incumbent(&self) -> Option<&Winner> {
        self.winner.as_ref()
    }

    /// The best known algorithm so far.
    pub fn known(&self) -> Option<&Winner> {
        self.known.as_ref()
    }

    /// The fastest few of each method, the fastest first; the incumbent is one of them.
    pub fn shortlist(&self) -> &[Kept] {
        self.shortlist.all()
    }

    /// Candidates priced so far.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Why the first refused candidate was refused.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Number of known algorithms without a verdict, because the time ran out.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Count known algorithms that had no verdict when the time ran out.
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

    /// When the method that is at work is to end.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
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

    /// The same for schedules that are made only while they are priced.
    pub fn consider_drafts(&mut self, drafts: &[Draft]) -> Vec<Verdict> {
        let within = self.consider_within(drafts, TimePs::ZERO);
        within.into_iter().map(|one| one.0).collect()
    }

    /// The same with the issue policy under which each draft takes least. Drafts that take less than `limit` get a
    /// time, too, even if they are slower than the incumbent.
    pub fn consider_within(&mut self, drafts: &[Draft], limit: TimePs) -> Vec<(Verdict, Issue)> {
        let mut verdicts = self.priced(drafts, self.reach().max(limit), None);
        if self.winner.is_none() && !verdicts.iter().any(|one| one.0.time().is_some()) {
            self.answer(drafts, &mut verdicts);
        }
        self.considered(drafts, verdicts, limit)
    }

    /// The same, but a draft that takes more than `patience` to simulate is [`Verdict::Late`].
    pub fn consider_for(&mut self, drafts: &[Draft], patience: Option<Duration>) -> Vec<Verdict> {
        let verdicts = self.priced(drafts, self.reach(), patience);
        let considered = self.considered(drafts, verdicts, TimePs::ZERO);
        considered.into_iter().map(|one| one.0).collect()
    }

    /// Without any time so far, wait for the first late draft that gets one: even a search without time has an answer.
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

    /// Accept the best of what was priced, and keep what is nearly as fast. What takes no less than the incumbent from
    /// before and than `limit` is told as slower.
    fn considered(
        &mut self,
        drafts: &[Draft],
        mut verdicts: Vec<(Verdict, Issue)>,
        limit: TimePs,
    ) -> Vec<(Verdict, Issue)> {
        let told = self.bar().max(limit);
        let looked_at = verdicts.iter().filter(|one| one.0 != Verdict::Late);
        self.tried += looked_at.count() as u64;
        let timed = |(place, (verdict, issue)): (usize, &(Verdict, Issue))| {
            Some((verdict.time()?, place, *issue))
        };
        let priced = &verdicts;
        let mut order: Vec<_> = priced.iter().enumerate().filter_map(timed).collect();
        order.sort_unstable_by_key(|&(time, place, _)| (time, place));
        let mut refused = Vec::new();
        for &(time, place, issue) in &order {
            if time >= self.bar() {
                break;
            }
            match self.proved(&drafts[place], issue, time) {
                Ok(winner) => self.accept(winner),
                Err(why) => refused.push((place, why.to_string())),
            }
        }
        for (time, place, issue) in order {
            if refused.iter().all(|one| one.0 != place) {
                self.shortlist.offer(time, &drafts[place], issue);
            }
            if time >= told {
                verdicts[place].0 = Verdict::Slower;
            }
        }
        for (place, why) in refused {
            verdicts[place].0 = Verdict::Refused(why);
        }
        self.note_refusal(&verdicts);
        verdicts
    }

    /// Remember why the first refused draft was refused.
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

    /// Beyond this time, simulations are stopped.
    fn reach(&self) -> TimePs {
        let reach = |winner: &Winner| TimePs((winner.time.0 as f64 * SHORTLISTED) as u64);
        self.winner.as_ref().map_or(TimePs::MAX, reach)
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
        self.each(drafts.len(), |place, thread| {
            let mut pricer = self.pricers[thread]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            one(&drafts[place], &mut pricer)
        })
    }

    /// What `work` makes of 0, 1, ... below `count`, on all threads; it gets the number and that of its thread.
    pub(crate) fn each<T: Send + Sync>(
        &self,
        count: usize,
        work: impl Fn(usize, usize) -> T + Sync,
    ) -> Vec<T> {
        // Threads take one after another, so that none has several left when the others are done.
        let next = AtomicUsize::new(0);
        let done: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
        let thread = |number: usize| {
            while let Some(place) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&place| place < count)
            {
                let _ = done[place].set(work(place, number));
            }
        };
        match &self.pool {
            Some(pool) => drop(pool.broadcast(|one| thread(one.index()))),
            None => thread(0),
        }
        let value = |one: OnceLock<T>| one.into_inner().expect("each number is taken once");
        done.into_iter().map(value).collect()
    }

    /// What a draft makes, as the machine and its path need it.
    pub(crate) fn schedule(&self, draft: &Draft) -> Result<Schedule> {
        let made = self.made(draft)?;
        self.lower(&made, draft.path.as_deref())
            .map(Cow::into_owned)
    }

    /// The draft, which takes `time`, as a winner, if it is right.
    pub(crate) fn proved(&self, draft: &Draft, issue: Issue, time: TimePs) -> Result<Winner> {
        let schedule = self.made(draft)?;
        let lowered = self.lower(&schedule, draft.path.as_deref())?;
        verify(&lowered)?;
        let options = self.problem.options(issue, draft.path.as_deref());
        ask(&self.problem.machine, &lowered, &options)?;
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

    fn accept(&mut self, winner: Winner) {
        (self.report)(&winner);
        if winner.candidate.method == KNOWN {
            self.known = Some(winner.clone());
        }
        self.winner = Some(winner);
    }
}
