//! Every known algorithm of the collective, as it is.
//!
//! What the others must beat. The smallest schedules come first, so that even a search without time ends with an answer.

use crate::candidate::{Draft, Recipe, KNOWN};
use crate::judge::{Judge, Verdict};
use crate::method::Method;
use crate::problem::Problem;
use crate::Result;
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

/// Schedules between two looks at the clock.
const BATCH: usize = 8;

/// Parts of the time of which a schedule gets one, round by round: those that take long to simulate wait until a faster
/// one says when they may stop.
const PATIENCE: [u32; 3] = [32, 8, 1];

/// The algorithm of this key.
struct Words(String);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    let mut waiting = drafts(problem);
    waiting.sort_by_key(|draft| draft.operations);
    for part in PATIENCE {
        let patience = judge.remaining().map(|left| left / part);
        let mut late = Vec::new();
        for batch in waiting.chunks(BATCH) {
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

/// Operations of the schedule, roughly: counted on 16 and 32 ranks, and on as they grow from there. Where it cannot have
/// so few ranks, those of the larger algorithms: rings pass p blocks round twice, an all-to-all has a message for each
/// pair.
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
