//! A whole search: all methods that are asked for, one after the other, and what is worth telling in the end.

use crate::candidate::Recipe;
use crate::error::Result;
use crate::judge::{Judge, Limits, Winner};
use crate::method::{self, Method, METHODS};
use crate::problem::Problem;
use linkwright_core::TimePs;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The fastest schedule.
    pub winner: Winner,
    /// The fastest registered algorithm as it is, where one runs.
    pub known: Option<(TimePs, Recipe)>,
    /// What no schedule beats, and its name, where something is known.
    pub bound: Option<(TimePs, &'static str)>,
    /// Candidates that were simulated or refused.
    pub tried: usize,
    /// Whether the time sufficed for all candidates.
    pub complete: bool,
}

/// Search with the methods of these keys, or with all where none is named; `better` hears of each new best.
pub fn search(
    problem: &Problem,
    methods: &[String],
    limits: &Limits,
    better: impl FnMut(&Winner, usize) + Send + 'static,
) -> Result<Found> {
    let named: Result<Vec<&Method>> = methods.iter().map(|key| method::find(key)).collect();
    let chosen = match &named?[..] {
        [] => METHODS.to_vec(),
        some => some.to_vec(),
    };
    let bound = problem.bound()?;
    let mut judge = Judge::new(problem.clone(), limits, better);
    for method in chosen {
        (method.propose)(problem, &mut judge)?;
    }
    let (known, tried, complete) = (judge.known().cloned(), judge.tried(), judge.is_complete());
    Ok(Found {
        winner: judge.finish()?,
        known,
        bound,
        tried,
        complete,
    })
}
