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
//!
//! Compositions take some hundred steps before the methods that search on links, which gain from a good incumbent;
//! this method goes on behind them with the time that is left.

use super::composition::{self, in_slots, price, Timed, Trial, BATCH, FIRST};
use super::rehearsal::is_rehearsed;
use crate::compose::neighbours::neighbours;
use crate::compose::Composition;
use crate::judge::Judge;
use crate::method::Method;
use crate::problem::Problem;
use crate::Result;
use linkwright_core::Issue;
use std::collections::BTreeSet;

/// The method.
pub static METHOD: Method = Method {
    key: "refinement",
    weight: 1,
    serves: |problem| (composition::METHOD.serves)(problem) && !is_rehearsed(problem),
    summary: "the fastest compositions, changed step by step while they get faster",
    description: "Changes one thing of a composition at a time: an exchange, a way round, the order of stages, digits, \
                  parts, slices or the issue policy, and goes on from what is faster. An estimate says what is tried \
                  first. Takes what time the other methods leave.",
    source: "Aarts and Lenstra, Local Search in Combinatorial Optimization, Wiley 1997 (first improvement with restarts)",
    propose,
};

/// Times of the composition that it is a change of, by the estimate, beyond which a change is not simulated.
const FAR: f64 = 2.0;

/// What a local search knows when it is interrupted.
#[derive(Default)]
pub(crate) struct Explored {
    /// What was simulated.
    tried: BTreeSet<String>,
    /// What has a time.
    pub(super) found: Vec<Timed>,
}

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    if judge.explored.found.is_empty() {
        // It runs alone.
        (composition::METHOD.propose)(problem, judge)?;
    }
    refine(METHOD.key, problem, judge, u64::MAX);
    Ok(())
}

impl Explored {
    /// What the first round has found.
    pub(super) fn new(problem: &Problem, found: Vec<Timed>) -> Self {
        let issues = problem.issues();
        let tried = found.iter().flat_map(|one| {
            let first = issues.iter().take(FIRST);
            first.map(|&issue| key(&one.recipe, issue))
        });
        Explored {
            tried: tried.collect(),
            found,
        }
    }
}

/// Change what was found step by step, the fastest first, until about `most` more candidates were priced.
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
    /// Key of the method that proposes what it finds.
    method: &'static str,
    problem: &'a Problem,
    /// Candidates after which it is interrupted.
    end: u64,
    explored: Explored,
}

/// By which the same schedule under the same policy is known again.
fn key(recipe: &Composition, issue: Issue) -> String {
    format!("{} {issue:?}", recipe.tidy())
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

    /// The fastest of the first batch that has something faster than `at`.
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
        // Where memory is short, other parts have other slots.
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

#[cfg(test)]
mod tests {
    use super::composition;
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
        super::refine(super::METHOD.key, &problem, &mut judge, 64);
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
