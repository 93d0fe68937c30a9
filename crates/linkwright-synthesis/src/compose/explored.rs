//! What a search knows of compositions: estimates, times, and which were tried.

use super::costs::Costs;
use super::estimate::{estimate, Estimate};
use super::recipe::Composition;
use super::staging::slots;
use crate::problem::Problem;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::Shape;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an estimate needs to know of ranks in a grid.
pub(crate) struct Scale {
    pub(crate) costs: Costs,
    /// Whether messages go from place to place.
    pub(crate) hops: bool,
}

impl Scale {
    /// The estimate of a recipe; `None` where it does not suit the ranks.
    pub(crate) fn found(&self, recipe: &Composition, shape: &Shape) -> Option<Estimate> {
        estimate(recipe, shape, &self.costs, self.hops).ok()
    }

    /// The estimated time of a recipe in ps, and its messages; `None` where it does not suit the ranks.
    pub(crate) fn estimate(&self, recipe: &Composition, shape: &Shape) -> Option<(f64, u64)> {
        let found = self.found(recipe, shape)?;
        let messages = match recipe.slots {
            Some(_) => found.pieces,
            None => found.messages,
        };
        let time = found.time + found.waits;
        time.is_finite().then_some((time, messages))
    }

    /// The recipe through the slots that memory leaves, and its messages; `None` where there are slots for all that
    /// comes to a rank.
    pub(crate) fn in_slots(
        &self,
        recipe: &Composition,
        problem: &Problem,
    ) -> Option<(Composition, u64)> {
        let recipe = in_slots(recipe, problem)?;
        let found = estimate(&recipe, &problem.shape, &self.costs, self.hops).ok()?;
        (found.arrivals > u64::from(recipe.slots?)).then_some((recipe, found.pieces))
    }
}

/// The recipe through the slots that the memory of the machine leaves; `None` where the machine does not say how much
/// there is.
pub(crate) fn in_slots(recipe: &Composition, problem: &Problem) -> Option<Composition> {
    let slots = slots(recipe, &problem.shape, problem.memory()?).ok()??;
    Some(Composition {
        slots: Some(slots),
        ..recipe.clone()
    })
}

/// A composition that was simulated, and the issue policy with which it takes least.
#[derive(Clone)]
pub(crate) struct Timed {
    pub(crate) time: TimePs,
    pub(crate) recipe: Composition,
    pub(crate) issue: Issue,
    pub(crate) scale: Arc<Scale>,
}

/// What a local search knows when it is interrupted, for the next one to go on from.
#[derive(Default)]
pub(crate) struct Explored {
    /// Keys of what was simulated.
    pub(crate) tried: BTreeSet<String>,
    /// Where to go on: what has a time.
    pub(crate) found: Vec<Timed>,
}

impl Explored {
    /// What a first round with the policies `issues` has found.
    pub(crate) fn new(issues: &[Issue], found: Vec<Timed>) -> Self {
        let keys = |one: &Timed| {
            issues
                .iter()
                .map(|&issue| key(&one.recipe, issue))
                .collect::<Vec<_>>()
        };
        Explored {
            tried: found.iter().flat_map(keys).collect(),
            found,
        }
    }
}

/// The same for recipes that make the same schedule, under the same policy.
pub(crate) fn key(recipe: &Composition, issue: Issue) -> String {
    format!("{} {issue:?}", recipe.tidy())
}
