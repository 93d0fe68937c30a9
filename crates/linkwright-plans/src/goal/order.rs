//! An order of the operations in which each comes behind what it waits for, or the circle that forbids it.
//!
//! Each operation has two moments, its start and its end:
//!
//! ```text
//!   start(x) -> end(x)                 end(y) -> start(x)     where x requires y
//!   start(send) -> end(receive)        start(y) -> start(x)   where x irequires y
//! ```

use super::matching::NONE;
use super::plan::{Kind, Need, Plan};
use crate::error::{PlanError, Result};
use crate::skeleton::{circle, steps_of, Rows};

/// Most operations of a circle that an error lists.
const MOST_SHOWN: usize = 8;

/// The order of a plan.
pub(super) struct Order {
    /// Calculation in ns, and number of moments, on the longest way to the start of each operation.
    pub before: Vec<(u64, u32)>,
}

/// What comes before what; an operation `i` starts at moment `2 i` and ends at `2 i + 1`.
fn arcs(plan: &Plan, partners: &[u32]) -> Vec<(u32, u32)> {
    let mut arcs = Vec::with_capacity(2 * plan.steps.len() + plan.needs.len());
    for (index, step) in (0u32..).zip(&plan.steps) {
        arcs.push((2 * index, 2 * index + 1));
        let partner = partners[index as usize];
        if matches!(step.kind, Kind::Send { .. }) && partner != NONE {
            arcs.push((2 * index, 2 * partner + 1));
        }
    }
    let ends = |need: &Need| (2 * need.on + u32::from(!need.start), 2 * need.waiter);
    arcs.extend(plan.needs.iter().map(ends));
    arcs
}

/// Order the operations of `plan`.
pub(super) fn of(plan: &Plan, partners: &[u32]) -> Result<Order> {
    let arcs = arcs(plan, partners);
    let count = 2 * plan.steps.len();
    let after = Rows::of(count, arcs.iter().copied());
    let mut open = vec![0u32; count];
    arcs.iter().for_each(|arc| open[arc.1 as usize] += 1);
    let mut ready: Vec<u32> = (0..count as u32)
        .filter(|&m| open[m as usize] == 0)
        .collect();
    let mut before = vec![(0u64, 0u32); count];
    let mut done = 0;
    while let Some(moment) = ready.pop() {
        done += 1;
        let (mut work, steps) = before[moment as usize];
        if moment % 2 == 0 {
            if let Kind::Calc { ns } = plan.steps[moment as usize / 2].kind {
                work = work.saturating_add(ns);
            }
        }
        for &next in after.at(moment) {
            // What only follows the start of a calculation does not follow its work.
            let reached = match next == moment + 1 {
                true => work,
                false => before[moment as usize].0,
            };
            let known = &mut before[next as usize];
            *known = (known.0.max(reached), known.1.max(steps + 1));
            open[next as usize] -= 1;
            if open[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    match done == count {
        true => Ok(Order {
            before: before.into_iter().step_by(2).collect(),
        }),
        false => Err(refuse(
            plan,
            &circle(count, arcs.iter().copied(), |m| open[m as usize] > 0),
        )),
    }
}

/// The error that shows a circle of moments.
fn refuse(plan: &Plan, circle: &[u32]) -> PlanError {
    shown(plan, &steps_of(circle, |moment| moment / 2))
}

/// `rank 2: l3 -> l2 -> rank 1: l4 -> rank 2: l3`
fn shown(plan: &Plan, steps: &[u32]) -> PlanError {
    let mut words = Vec::new();
    let mut rank = NONE;
    for &index in steps.iter().take(MOST_SHOWN).chain(steps.first()) {
        let step = &plan.steps[index as usize];
        if words.len() == MOST_SHOWN && steps.len() > MOST_SHOWN {
            words.push(format!("({} more)", steps.len() - MOST_SHOWN));
        }
        let place = match std::mem::replace(&mut rank, step.rank) == step.rank {
            true => String::new(),
            false => format!("rank {}: ", step.rank),
        };
        words.push(format!("{place}{}", step.name()));
    }
    plan.steps[steps[0] as usize].error(format!(
        "each of these waits for the next, so none can start: {}; remove one of the waits",
        words.join(" -> ")
    ))
}
