//! Every known algorithm of the collective, as it is.
//!
//! What the others must beat. The smallest schedules come first, so that even a search without time ends with an
//! answer.
//!
//! On large tori, one simulation may take minutes. There, algorithms are priced in the order of their times on a small
//! torus ([`super::rehearsal`]): the first ones stop the others.

use super::rehearsal::rehearsal;
use crate::candidate::{Draft, Recipe, KNOWN};
use crate::judge::{Judge, Verdict};
use crate::method::Method;
use crate::problem::Problem;
use crate::Result;
use linkwright_core::TimePs;
use linkwright_schedule::collectives::{self, Algorithm};
use std::fmt;
use std::sync::Arc;

/// The method.
pub static METHOD: Method = Method {
    key: KNOWN,
    weight: 1,
    serves: |_| true,
    summary: "every known algorithm with several issue policies",
    description: "Prices every algorithm of the collective that suits the ranks, with the issue policy of the machine, \
                  without a bound, and with windows of 2 and 8 transfers. What other methods find is compared with the \
                  best of these.",
    source: "linkwright",
    propose,
};

/// How a list of drafts is gone through.
struct Course {
    /// Schedules between two looks at the clock, all stopped by what was fastest before them.
    batch: usize,
    /// By round, the share of the remaining time that a simulation may take: 1 / so much. A schedule that takes longer
    /// to simulate waits for a later round, when the incumbent may stop it earlier.
    patience: &'static [u32],
}

/// Of schedules of which nothing is known.
const UNKNOWN: Course = Course {
    batch: 8,
    patience: &[32, 8, 1],
};

/// Of schedules that are rehearsed: the first is likely the fastest, and worth waiting for. Behind it, what takes as long
/// to be stopped leaves others no time.
const REHEARSED: Course = Course {
    batch: 2,
    patience: &[4],
};

/// The algorithm of this key.
struct Words(String);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    let (mut waiting, course) = match rehearsal(problem)? {
        Some(small) => (rehearsed(problem, small, judge), &REHEARSED),
        None => (by_size(problem), &UNKNOWN),
    };
    for part in course.patience {
        let patience = judge.remaining().map(|left| left / *part);
        let mut late = Vec::new();
        for batch in waiting.chunks(course.batch) {
            let verdicts = judge.consider_for(batch, patience);
            let unseen = verdicts.iter().zip(batch);
            let unseen = unseen.filter(|(verdict, _)| **verdict == Verdict::Late);
            late.extend(unseen.map(|(_, draft)| draft.clone()));
        }
        waiting = late;
    }
    if judge.incumbent().is_none() {
        let verdicts = judge.consider_drafts(&waiting);
        let mut late = verdicts.iter().map(|one| *one == Verdict::Late);
        waiting.retain(|_| late.next().unwrap_or(false));
    }
    judge.note_unseen(waiting.len());
    Ok(())
}

/// The smallest schedules first.
fn by_size(problem: &Problem) -> Vec<Draft> {
    let mut drafts = drafts(problem);
    drafts.sort_by_key(|draft| draft.operations);
    drafts
}

/// What is fastest on a small torus first, with the policy that was best there; so most of the others, which take minutes
/// to simulate to their ends, are stopped early. Those that do not run there come last, the smallest first.
fn rehearsed(problem: &Problem, small: Problem, judge: &Judge) -> Vec<Draft> {
    let mut beside = judge.beside(Arc::new(small));
    let rehearsals = drafts(beside.problem());
    let verdicts = beside.consider_within(&rehearsals, TimePs::MAX);
    let mut drafts: Vec<(Option<TimePs>, Draft)> = (drafts(problem).into_iter().zip(verdicts))
        .map(|(draft, (verdict, issue))| match verdict.time() {
            Some(time) => (
                Some(time),
                Draft {
                    issues: vec![issue],
                    ..draft
                },
            ),
            None => (None, draft),
        })
        .collect();
    drafts.sort_by_key(|(time, draft)| (time.is_none(), *time, draft.operations));
    drafts.into_iter().map(|one| one.1).collect()
}

/// Every algorithm of the collective.
pub fn drafts(problem: &Problem) -> Vec<Draft> {
    let all = collectives::of(problem.collective);
    all.map(|algorithm| draft(problem, algorithm)).collect()
}

fn draft(problem: &Problem, algorithm: &'static Algorithm) -> Draft {
    let shape = problem.shape.clone();
    Draft {
        method: METHOD.key,
        recipe: Recipe::new(Words(algorithm.key())),
        issues: problem.issues(),
        path: None,
        operations: operations(problem, algorithm),
        make: Arc::new(move || Ok(Arc::new((algorithm.build)(&shape)?))),
    }
}

/// Ranks up to which any schedule is small.
const FEW: u32 = 64;

/// Operations of the schedule, roughly: counted on 16 and 32 ranks, and on as they grow from there. Where it cannot
/// have so few ranks, those of the larger algorithms: rings pass p blocks round twice, an all-to-all has a message for
/// each pair.
fn operations(problem: &Problem, algorithm: &Algorithm) -> u64 {
    let ranks = problem.shape.ranks;
    let most = 2 * u64::from(ranks) * u64::from(ranks);
    if ranks <= FEW {
        return most;
    }
    let counted = |columns: u32| {
        let mut shape = problem.shape.clone();
        (shape.ranks, shape.root) = (4 * columns, 0);
        shape.grid = match shape.grid.len() {
            2 => vec![columns, 4],
            _ => Vec::new(),
        };
        (algorithm.build)(&shape).map(|schedule| schedule.ops().len().max(1) as f64)
    };
    match (counted(4), counted(8)) {
        (Ok(few), Ok(more)) => {
            let doublings = f64::from(ranks).log2() - 5.0;
            (more * (more / few).powf(doublings)) as u64
        }
        _ => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Control;
    use linkwright_core::Machine;
    use linkwright_schedule::{Collective, Shape};

    const TORUS: &str = include_str!("../../../../python/linkwright/machines/torus-2d.toml");

    fn problem(sides: &[u32], bytes: u64) -> Problem {
        let machine = Machine::parse(TORUS, "torus-2d.toml").unwrap();
        let shape = Shape::new(sides.iter().product(), bytes / 4).with_sides(sides);
        Problem::new(&machine, Collective::Allgather, shape, None, 0).unwrap()
    }

    /// The same algorithms, in the order of their times on 8 x 8, each with one policy; what does not run there is last.
    #[test]
    fn the_fastest_of_a_small_torus_goes_first() {
        let large = Arc::new(problem(&[32, 16], 1 << 20));
        let judge = Judge::new(large.clone(), Control::default(), Box::new(|_| ()));
        let small = rehearsal(&large).unwrap().unwrap();
        let order = rehearsed(&large, small, &judge);
        assert_eq!(order.len(), drafts(&large).len());
        let alone = Arc::new(problem(&[8, 8], 1 << 18));
        let mut beside = Judge::new(alone.clone(), Control::default(), Box::new(|_| ()));
        beside.consider_drafts(&drafts(&alone));
        let winner = &beside.incumbent().unwrap().candidate;
        assert_eq!(order[0].recipe.to_string(), winner.recipe.to_string());
        assert_eq!(order[0].issues, [winner.issue]);
        let tried = |draft: &Draft| draft.issues.len() == 1;
        assert!(order.iter().map(tried).is_sorted_by(|a, b| a >= b));
    }
}
