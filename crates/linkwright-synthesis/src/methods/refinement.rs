//! Refinement: a local search from the fastest compositions.
//!
//! ```text
//!   fastest composition --> all that is one change away, the likeliest first --batch by batch--> a faster one?
//!        ^                                                                        |yes            |no more
//!        +------------------------------------------------------------------------+               v
//!                                                                              the next fastest to start from
//! ```
//!
//! The first batch with something faster decides where it goes on; nothing is simulated twice. An estimate says which
//! changes are likely, and leaves out what it puts far behind. The order is fixed: the clock only ends it.

use super::composition::{price, Timed, Trial, BATCH, FIRST};
use crate::compose::neighbours::neighbours;
use crate::compose::Composition;
use crate::judge::Judge;
use crate::problem::Problem;
use linkwright_core::Issue;
use std::collections::BTreeSet;

/// Times of the composition that it is a change of, by the estimate, beyond which a change is not simulated.
const FAR: f64 = 2.0;

/// Starts in a row without a new incumbent after which the time is left to other methods.
const PATIENCE: usize = 6;

/// Change `starts`, the fastest first, step by step; what was found on the way, with the starts.
pub(super) fn refine(problem: &Problem, judge: &mut Judge, starts: Vec<Timed>) -> Vec<Timed> {
    let issues = problem.issues();
    let tried = starts.iter().flat_map(|one| {
        let first = issues.iter().take(FIRST);
        first.map(|&issue| key(&one.recipe, issue))
    });
    let mut search = Search {
        problem,
        tried: tried.collect(),
        found: starts.clone(),
    };
    let (mut best, mut vain) = (judge.bar(), 0);
    for start in starts {
        search.descend(judge, start);
        vain = if judge.bar() < best { 0 } else { vain + 1 };
        best = judge.bar();
        if vain == PATIENCE {
            break;
        }
    }
    search.found
}

struct Search<'a> {
    problem: &'a Problem,
    /// What was simulated.
    tried: BTreeSet<String>,
    found: Vec<Timed>,
}

/// By which the same schedule under the same policy is known again.
fn key(recipe: &Composition, issue: Issue) -> String {
    format!("{} {issue:?}", recipe.tidy())
}

impl Search<'_> {
    /// Go on from `at` while something is faster.
    fn descend(&mut self, judge: &mut Judge, mut at: Timed) {
        while let Some(faster) = self.step(judge, &at) {
            self.found.push(faster.clone());
            at = faster;
        }
    }

    /// The fastest of the first batch that has something faster than `at`.
    fn step(&mut self, judge: &mut Judge, at: &Timed) -> Option<Timed> {
        let around = self.around(at);
        for batch in around.chunks(BATCH) {
            if !judge.time_left() {
                return None;
            }
            let keys = batch.iter().map(|one| key(&one.recipe, one.issues[0]));
            self.tried.extend(keys);
            let timed = price(judge, batch, at.time);
            let timed = timed.into_iter().flatten();
            // Of equals the likelier.
            let fastest = timed.min_by_key(|one| one.time);
            if let Some(faster) = fastest.filter(|one| one.time < at.time) {
                return Some(faster);
            }
        }
        None
    }

    /// What is one change away from `at` and was not tried, the likeliest first.
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
        all.extend(neighbours(&at.recipe).into_iter().filter_map(|recipe| {
            let (time, messages) = at.scale.estimate(&recipe, shape)?;
            Some((time, trial(recipe, at.issue, messages)))
        }));
        all.retain(|(time, one)| {
            *time <= FAR * here && !self.tried.contains(&key(&one.recipe, one.issues[0]))
        });
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.into_iter().map(|one| one.1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::composition;
    use crate::judge::{Control, Judge};
    use crate::Problem;
    use linkwright_core::Machine;
    use linkwright_schedule::{Collective, Shape};
    use std::sync::{Arc, Mutex};

    /// Recipes and times of all winners, and how many candidates there were.
    fn winners(collective: Collective, threads: usize) -> (Vec<String>, u64) {
        let text = include_str!("../../../../python/linkwright/machines/torus-2d.toml");
        let machine = Machine::parse(text, "torus-2d.toml").unwrap();
        let shape = Shape::new(8, 1024).with_sides(&[4, 2]);
        let problem = Arc::new(Problem::new(&machine, collective, shape, None, 0).unwrap());
        let all = Arc::new(Mutex::new(Vec::new()));
        let heard = all.clone();
        let control = Control {
            threads,
            ..Control::default()
        };
        let mut judge = Judge::new(
            problem.clone(),
            control,
            Box::new(move |winner| {
                let words = format!("{} {:?}", winner.candidate.recipe, winner.time);
                heard.lock().unwrap().push(words);
            }),
        );
        (composition::METHOD.propose)(&problem, &mut judge).unwrap();
        let all = all.lock().unwrap().clone();
        (all, judge.tried())
    }

    #[test]
    fn the_same_steps_on_one_thread_and_on_three() {
        for collective in [Collective::Allreduce, Collective::Broadcast] {
            assert_eq!(winners(collective, 1), winners(collective, 3));
        }
    }
}
