//! One search: the methods one after another, each with its share of the time.

use crate::judge::{Control, Judge, Report, Winner};
use crate::method::Method;
use crate::methods::chosen;
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

/// The best schedule that the methods find, and how many candidates were priced. `report` sees each improvement.
///
/// A method may use what its predecessors left of the time, divided by the number of methods still to come.
pub fn synthesize(problem: Problem, choices: Choices, report: Report) -> Result<(Winner, u64)> {
    let methods = chosen(&choices.methods)?;
    let end = Instant::now().checked_add(choices.control.budget);
    let problem = Arc::new(problem);
    let mut judge = Judge::new(problem.clone(), choices.control, report);
    for (place, method) in methods.iter().enumerate() {
        judge.end_at(end.map(|end| share(end, methods.len() - place)));
        propose(method, &problem, &mut judge)?;
    }
    match judge.incumbent() {
        Some(winner) => Ok((winner.clone(), judge.tried())),
        None => Err(nothing(&judge)),
    }
}

/// When the next of `left` methods is to end.
fn share(end: Instant, left: usize) -> Instant {
    let now = Instant::now();
    now + end.saturating_duration_since(now) / left as u32
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
