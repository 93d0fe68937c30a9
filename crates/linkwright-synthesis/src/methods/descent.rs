//! Steps of a local search among compositions: it prices what is one change away, and goes on from what is faster
//! ([`super::refinement`]).

use crate::candidate::{Draft, Recipe};
use crate::compose::explored::{in_slots, key, Explored, Scale, Timed};
use crate::compose::neighbours::neighbours;
use crate::compose::{compose, Composition};
use crate::judge::{Judge, Verdict};
use crate::problem::Problem;
use linkwright_core::{Issue, TimePs};
use std::sync::Arc;

/// Number of issue policies with which a first round is priced.
pub(super) const FIRST: usize = 2;

/// Schedules between two looks at the clock.
pub(super) const BATCH: usize = 8;

/// A change is not simulated if the estimate puts it beyond this many times the composition that it changes.
const FAR: f64 = 2.0;

/// What is to be simulated.
pub(super) struct Trial {
    pub(super) recipe: Composition,
    /// Policies to try.
    pub(super) issues: Vec<Issue>,
    /// Messages of one slice, about.
    pub(super) messages: u64,
    pub(super) scale: Arc<Scale>,
}

impl Trial {
    /// The same through slots, unless it uses slots already.
    fn in_slots(&self, problem: &Problem) -> Option<Trial> {
        let plain = self.recipe.slots.is_none();
        let (recipe, messages) = plain.then(|| self.scale.in_slots(&self.recipe, problem))??;
        Some(Trial {
            recipe,
            messages,
            issues: self.issues.clone(),
            scale: self.scale.clone(),
        })
    }

    fn draft(&self, method: &'static str, problem: &Problem) -> Draft {
        let (recipe, shape) = (self.recipe.clone(), problem.shape.clone());
        Draft {
            method,
            recipe: Recipe::new(recipe.clone()),
            issues: self.issues.clone(),
            path: None,
            // A message, its addition and a notice. Its slots may have held two messages, and then it waits for two
            // notices.
            operations: (3 + u64::from(recipe.slots.is_some()))
                * self.messages
                * u64::from(recipe.slices),
            make: Arc::new(move || Ok(Arc::new(compose(&recipe, &shape)?))),
        }
    }
}

/// The times of those `trials` that take less than the incumbent or than `limit`; the best may become the incumbent. A
/// trial without room for scratch of its own goes through slots.
pub(super) fn price(
    method: &'static str,
    judge: &mut Judge,
    trials: &[Trial],
    limit: TimePs,
) -> Vec<Option<Timed>> {
    let verdicts = considered(method, judge, trials, limit);
    let mut all: Vec<Option<Timed>> = trials.iter().zip(&verdicts).map(timed).collect();
    let refused = (0..trials.len()).filter(|&k| matches!(verdicts[k].0, Verdict::Refused(_)));
    let staged = refused.filter_map(|k| Some((k, trials[k].in_slots(judge.problem())?)));
    let (places, staged): (Vec<usize>, Vec<Trial>) = staged.unzip();
    let verdicts = considered(method, judge, &staged, limit);
    for ((place, trial), verdict) in places.into_iter().zip(&staged).zip(&verdicts) {
        all[place] = timed((trial, verdict));
    }
    all
}

fn considered(
    method: &'static str,
    judge: &mut Judge,
    trials: &[Trial],
    limit: TimePs,
) -> Vec<(Verdict, Issue)> {
    let draft = |one: &Trial| one.draft(method, judge.problem());
    let drafts: Vec<Draft> = trials.iter().map(draft).collect();
    judge.consider_within(&drafts, limit)
}

fn timed((one, (verdict, issue)): (&Trial, &(Verdict, Issue))) -> Option<Timed> {
    Some(Timed {
        time: verdict.time()?,
        recipe: one.recipe.clone(),
        issue: *issue,
        scale: one.scale.clone(),
    })
}

/// Change what was found step by step, the fastest first, until about `most` more candidates have been priced.
pub(super) fn refine(method: &'static str, problem: &Problem, judge: &mut Judge, most: u64) {
    let mut starts = judge.explored.found.clone();
    starts.sort_by_key(|one| one.time);
    let end = judge.tried().saturating_add(most);
    let mut search = Search {
        method,
        problem,
        end,
        explored: std::mem::take(&mut judge.explored),
    };
    for start in starts {
        search.descend(judge, start);
    }
    judge.explored = search.explored;
}

struct Search<'a> {
    /// Key of the method that searches.
    method: &'static str,
    problem: &'a Problem,
    /// Number of candidates of the judge at which it is interrupted.
    end: u64,
    explored: Explored,
}

impl Search<'_> {
    /// Go on from `at` while something is faster.
    fn descend(&mut self, judge: &mut Judge, mut at: Timed) {
        if !judge.time_left() || judge.tried() >= self.end {
            return;
        }
        while let Some(faster) = self.step(judge, &at) {
            self.explored.found.push(faster.clone());
            at = faster;
        }
    }

    /// The fastest composition of the first batch that has something faster than `at`.
    fn step(&mut self, judge: &mut Judge, at: &Timed) -> Option<Timed> {
        let around = self.around(at);
        for batch in around.chunks(BATCH) {
            if !judge.time_left() || judge.tried() >= self.end {
                return None;
            }
            let keys = batch.iter().map(|one| key(&one.recipe, one.issues[0]));
            self.explored.tried.extend(keys);
            let timed = price(self.method, judge, batch, at.time);
            let timed = timed.into_iter().flatten();
            // Of equal times, the first is the most promising.
            let fastest = timed.min_by_key(|one| one.time);
            if let Some(faster) = fastest.filter(|one| one.time < at.time) {
                return Some(faster);
            }
        }
        None
    }

    /// What is one change away from `at` and was not tried, the most promising first.
    fn around(&self, at: &Timed) -> Vec<Trial> {
        let shape = &self.problem.shape;
        let Some((here, messages)) = at.scale.estimate(&at.recipe, shape) else {
            return Vec::new();
        };
        let trial = |recipe: Composition, issue, messages| Trial {
            recipe,
            issues: vec![issue],
            messages,
            scale: at.scale.clone(),
        };
        let others = self.problem.issues().into_iter();
        let mut all: Vec<(f64, Trial)> = others
            .map(|issue| (here, trial(at.recipe.clone(), issue, messages)))
            .collect();
        // With other parts, chunks have another size, and memory holds another number of slots.
        let fitting = |recipe: Composition| match recipe.slots {
            Some(_) => in_slots(&recipe, self.problem),
            None => Some(recipe),
        };
        let around = neighbours(&at.recipe).into_iter().filter_map(fitting);
        all.extend(around.filter_map(|recipe| {
            let (time, messages) = at.scale.estimate(&recipe, shape)?;
            Some((time, trial(recipe, at.issue, messages)))
        }));
        all.retain(|(time, one)| {
            *time <= FAR * here
                && !self
                    .explored
                    .tried
                    .contains(&key(&one.recipe, one.issues[0]))
        });
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.into_iter().map(|one| one.1).collect()
    }
}
