//! One search: the methods one after another, each with its share of the time, and the answer.

use crate::candidate::KNOWN;
use crate::judge::{Control, Judge, Report};
use crate::lasting::{answer, Answer};
use crate::method::Method;
use crate::methods::{chosen, METHODS};
use crate::problem::Problem;
use crate::Result;
use linkwright_core::clock::Instant;
use linkwright_schedule::ScheduleError;
use std::sync::Arc;

/// How to search.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// When to end, and with how many threads to work.
    pub control: Control,
    /// Keys of the methods; all where empty.
    pub methods: Vec<String>,
    /// Whether the fastest is the answer even where its gain does not last.
    pub fastest: bool,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The schedule that is worth its gain.
    pub answer: Answer,
    /// The fastest on the machine as it is described, where that is another one.
    pub fastest: Option<Answer>,
    /// Candidates that were priced.
    pub tried: u64,
    /// Number of known algorithms without a verdict, because the time ran out; the best known may be among them.
    pub unseen: u64,
}

/// One part of this many of the time is for the choice among finalists.
const CHOICE: u32 = 6;

/// The best schedule that the methods find, and whose gain lasts ([`crate::lasting`]). `report` sees each improvement.
///
/// A method may use what its predecessors left of the time, divided by the weights of those still to come. Known
/// algorithms may use all of it: a gain over some of them would be none.
pub fn synthesize(problem: Problem, choices: Choices, report: Report) -> Result<Found> {
    let mut methods = chosen(&choices.methods)?;
    methods.retain(|method| (method.serves)(&problem));
    let (begun, budget) = (Instant::now(), choices.control.budget);
    let end = begun.checked_add(budget - budget / CHOICE);
    let problem = Arc::new(problem);
    let mut judge = Judge::new(problem, choices.control, report);
    judge.search_by(all_in_turn);
    take_turns(&methods, &mut judge, end)?;
    judge.end_at(begun.checked_add(budget));
    match answer(&judge, choices.fastest) {
        Some((answer, fastest)) => Ok(Found {
            answer,
            fastest,
            tried: judge.tried(),
            unseen: judge.unseen(),
        }),
        None => Err(nothing(&judge)),
    }
}

/// Let all methods that serve propose until the time of a judge beside is over.
fn all_in_turn(judge: &mut Judge) -> Result<()> {
    let all = METHODS.iter().copied();
    let serving: Vec<&Method> = all.filter(|one| (one.serves)(judge.problem())).collect();
    let end = judge.until();
    take_turns(&serving, judge, end)
}

/// Let each of `methods` propose until its share of the time is over, the last one until `end`.
fn take_turns(methods: &[&Method], judge: &mut Judge, end: Option<Instant>) -> Result<()> {
    for (place, method) in methods.iter().enumerate() {
        judge.end_at(end.map(|end| share(end, shares(&methods[place..]))));
        // Without time, only what there is nothing to compare with is looked at.
        if judge.time_left() || judge.incumbent().is_none() {
            (method.propose)(&judge.shared(), judge)?;
        }
    }
    Ok(())
}

/// The share of the time left that the first of `methods` may use: weight and sum of weights.
fn shares(methods: &[&Method]) -> (u32, u32) {
    match methods[0].key == KNOWN {
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

    #[test]
    fn known_algorithms_may_use_all_of_the_time() {
        assert_eq!(shares(METHODS), (1, 1));
        assert_eq!(shares(&METHODS[1..]), (1, 13));
        assert_eq!(shares(&METHODS[2..]), (3, 12));
        assert_eq!(shares(&METHODS[METHODS.len() - 1..]), (1, 1));
    }
}
