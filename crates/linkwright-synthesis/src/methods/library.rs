//! Every known algorithm of the collective, as it is.
//!
//! What the others must beat. The smallest schedules come first, so that even a search without time ends with an answer.

use crate::candidate::{Draft, Recipe};
use crate::judge::Judge;
use crate::method::Method;
use crate::problem::Problem;
use crate::Result;
use linkwright_schedule::collectives::{self, Algorithm};
use std::fmt;
use std::sync::Arc;

/// The method.
pub static METHOD: Method = Method {
    key: "library",
    summary: "every known algorithm with several issue policies",
    description: "Prices every algorithm of the collective that suits the ranks, with the issue policy of the machine, \
                  without a bound, and with windows of 2 and 8 transfers. What other methods find is compared with the \
                  best of these.",
    source: "linkwright",
    propose,
};

/// Schedules between two looks at the clock.
const BATCH: usize = 8;

/// The algorithm of this key.
struct Words(String);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    let mut drafts = drafts(problem);
    drafts.sort_by_key(|draft| draft.operations);
    for batch in drafts.chunks(BATCH) {
        judge.consider_drafts(batch);
        if !judge.time_left() {
            break;
        }
    }
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
        operations: operations(problem),
        make: Arc::new(move || Ok(Arc::new((algorithm.build)(&shape)?))),
    }
}

/// Operations of the larger algorithms: rings of an allreduce pass p blocks round twice, an all-to-all has a message for
/// each pair.
fn operations(problem: &Problem) -> u64 {
    let ranks = u64::from(problem.shape.ranks);
    2 * ranks * ranks
}
