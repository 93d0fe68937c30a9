//! One search: the methods one after another, each with its share of the time.

use crate::judge::{Control, Judge, Report, Winner};
use crate::method::Method;
use crate::methods::{chosen, library};
use crate::problem::Problem;
use crate::Result;
use linkwright_schedule::ScheduleError;
use std::sync::Arc;
use std::time::Instant;

/// How to search.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// When to end, and with how many threads to work.
    pub control: Control,
    /// Keys of the methods; all where empty.
    pub methods: Vec<String>,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best schedule.
    pub winner: Winner,
    /// Candidates that were priced.
    pub tried: u64,
    /// Number of known algorithms without a verdict, because the time ran out; the best known may be among them.
    pub unseen: u64,
}

/// The best schedule that the methods find. `report` sees each improvement.
///
/// A method may use what its predecessors left of the time, divided by the weights of those still to come. Known
/// algorithms may use all of it: a gain over some of them would be none.
pub fn synthesize(problem: Problem, choices: Choices, report: Report) -> Result<Found> {
    let mut methods = chosen(&choices.methods)?;
    methods.retain(|method| (method.serves)(&problem));
    let end = Instant::now().checked_add(choices.control.budget);
    let problem = Arc::new(problem);
    let mut judge = Judge::new(problem.clone(), choices.control, report);
    for (place, method) in methods.iter().enumerate() {
        judge.end_at(end.map(|end| share(end, shares(&methods[place..]))));
        propose(method, &problem, &mut judge)?;
    }
    match judge.incumbent() {
        Some(winner) => Ok(Found {
            winner: winner.clone(),
            tried: judge.tried(),
            unseen: judge.unseen(),
        }),
        None => Err(nothing(&judge)),
    }
}

/// The share of the time left that the first of `methods` may use: weight and sum of weights.
fn shares(methods: &[&Method]) -> (u32, u32) {
    match methods[0].key == library::METHOD.key {
        true => (1, 1),
        false => (
            methods[0].weight,
            methods.iter().map(|method| method.weight).sum(),
        ),
    }
}

/// When the next method is to end, which has this share.
fn share(end: Instant, (weight, all): (u32, u32)) -> Instant {
    let now = Instant::now();
    now + end.saturating_duration_since(now) / all * weight
}

/// Without time, only what there is nothing to compare with is looked at.
fn propose(method: &Method, problem: &Problem, judge: &mut Judge) -> Result<()> {
    match judge.time_left() || judge.incumbent().is_none() {
        true => (method.propose)(problem, judge),
        false => Ok(()),
    }
}

fn nothing(judge: &Judge) -> linkwright_sim::SimError {
    let problem = judge.problem();
    let (what, machine) = (problem.collective.name(), problem.machine.name());
    let why = judge.refusal().unwrap_or("no method proposed a schedule");
    let ranks = problem.shape.ranks;
    ScheduleError::Shape(format!(
        "no schedule of {what} for {ranks} ranks runs on {machine}: {why}"
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::METHODS;

    #[test]
    fn known_algorithms_may_use_all_of_the_time() {
        assert_eq!(shares(METHODS), (1, 1));
        assert_eq!(shares(&METHODS[1..]), (1, 9));
        assert_eq!(shares(&METHODS[2..]), (3, 8));
        assert_eq!(shares(&METHODS[METHODS.len() - 1..]), (1, 1));
    }
}
