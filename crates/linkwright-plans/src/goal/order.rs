//! An order of the operations in which each comes behind what it waits for, or the circle that forbids it.
//!
//! Each operation has two moments, its start and its end:
//!
//! ```text
//!   start(x) -> end(x)                 end(y) -> start(x)     where x requires y
//!   start(send) -> end(receive)        start(y) -> start(x)   where x irequires y
//! ```

use super::matching::NONE;
use super::parse::{Kind, Plan};
use crate::error::{PlanError, Result};

/// Most operations of a circle that an error lists.
const MOST_SHOWN: usize = 8;

/// The order of a plan.
pub(super) struct Order {
    /// Calculation in ns, and number of moments, on the longest way to the start of each operation.
    pub before: Vec<(u64, u32)>,
}

/// From one moment to those that wait for it; an operation `i` starts at moment `2 i` and ends at `2 i + 1`.
struct Moments {
    first: Vec<u32>,
    next: Vec<u32>,
}

impl Moments {
    fn new(plan: &Plan, partners: &[u32]) -> Self {
        let mut arcs = Vec::with_capacity(2 * plan.steps.len() + plan.needs.len());
        for (index, step) in (0u32..).zip(&plan.steps) {
            arcs.push((2 * index, 2 * index + 1));
            let partner = partners[index as usize];
            if matches!(step.kind, Kind::Send { .. }) && partner != NONE {
                arcs.push((2 * index, 2 * partner + 1));
            }
        }
        let ends =
            |need: &super::parse::Need| (2 * need.on + u32::from(!need.start), 2 * need.waiter);
        arcs.extend(plan.needs.iter().map(ends));
        arcs.sort_unstable();
        let mut first = vec![0; 2 * plan.steps.len() + 1];
        for &(from, _) in &arcs {
            first[from as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        Moments {
            first,
            next: arcs.into_iter().map(|arc| arc.1).collect(),
        }
    }

    fn after(&self, moment: u32) -> &[u32] {
        &self.next[self.first[moment as usize] as usize..self.first[moment as usize + 1] as usize]
    }
}

/// Order the operations of `plan`.
pub(super) fn of(plan: &Plan, partners: &[u32]) -> Result<Order> {
    let moments = Moments::new(plan, partners);
    let count = 2 * plan.steps.len();
    let mut open = vec![0u32; count];
    moments.next.iter().for_each(|&m| open[m as usize] += 1);
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
        for &next in moments.after(moment) {
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
        false => Err(circle(plan, &moments, &open)),
    }
}

/// The error that shows one circle among the moments that are still `open`.
fn circle(plan: &Plan, moments: &Moments, open: &[u32]) -> PlanError {
    let is_open = |moment: u32| open[moment as usize] > 0;
    // Every open moment has an open one before it, so going back from one to the next ends in a circle.
    let mut back = vec![NONE; open.len()];
    for moment in (0..open.len() as u32).filter(|&m| is_open(m)) {
        for &next in moments.after(moment) {
            back[next as usize] = moment;
        }
    }
    let start = (0..open.len() as u32).find(|&m| is_open(m));
    let mut moment = start.expect("some moment is open");
    for _ in 0..open.len() {
        moment = back[moment as usize];
    }
    let mut steps = vec![moment / 2];
    let mut at = back[moment as usize];
    while at != moment {
        steps.push(at / 2);
        at = back[at as usize];
    }
    steps.dedup();
    if steps.len() > 1 && steps.first() == steps.last() {
        steps.pop();
    }
    let first = (0..steps.len()).min_by_key(|&i| plan.steps[steps[i] as usize].line);
    steps.rotate_left(first.unwrap_or(0));
    shown(plan, &steps)
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
