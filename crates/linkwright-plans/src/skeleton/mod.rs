//! The order of steps in a plan of any format: a reader states which step waits for which, and the proofs are here.
//!
//! A plan has *steps*, which each thread block starts one after another. Its *events* are the starts of steps, and
//! whatever has no step of its own: the arrival of a message, the release of a barrier. Two relations order events:
//!
//! ```text
//!   seen    the second starts once the first is done, and sees its data
//!   later   the second does not happen before the first; data need not be visible
//! ```
//!
//! ```text
//!   format    steps and their waits                   -> Skeleton
//!   order     one order of all events, or a cycle: the plan deadlocks
//!   race      proves that `seen` orders any two accesses to a chunk if one of them writes
//!   layout    maps `i`, `o` and `s` to the buffers of a schedule
//!   build     writes the moves in this order          -> a schedule, verified
//! ```
//!
//! The absence of races must be proved before the schedule is built: the builder adds any order that data needs, and
//! would hide that the plan lacks it.

mod build;
mod cells;
mod layout;
mod order;
mod race;
mod run;

pub(crate) use build::{Mover, Operation, Writer};
pub(crate) use cells::{Cells, Place, Space};
pub(crate) use layout::{Goal, Layout, RELAY};
pub(crate) use order::Rows;
use order::{circle, sequence, steps_of};
pub(crate) use race::Access;

use crate::error::{PlanError, Result};
use run::Run;

/// No event, step, thread block or chunk.
pub(crate) const NONE: u32 = u32::MAX;

/// Maximum steps of a cycle that are printed.
const SHOWN: usize = 12;

/// A plan that can tell users where a step is.
pub(crate) trait Steps {
    /// Where a step is: `gpu 0, tb 1, step 2`.
    fn place(&self, step: u32) -> String;

    /// An error at a step.
    fn error<T>(&self, step: u32, problem: impl Into<String>) -> Result<T> {
        Err(PlanError::at(self.place(step), problem))
    }
}

/// The events of a plan. Event k is the start of step k; events without a step follow.
pub(crate) struct Skeleton {
    /// Thread block of each step.
    pub block: Vec<u32>,
    /// How often the threads of its block have synchronized before each step.
    pub epoch: Vec<u32>,
    /// Whether the threads of its block synchronize at a step: all of them have finished what is before it.
    pub meets: Vec<bool>,
    /// Step of each event.
    pub owner: Vec<u32>,
    /// Pairs of events: the second sees the data of the first.
    pub seen: Vec<(u32, u32)>,
    /// Further pairs of events: the second does not happen before the first.
    pub later: Vec<(u32, u32)>,
    /// All events, in an order in which they can happen.
    pub sequence: Vec<u32>,
}

impl Skeleton {
    /// Steps of these thread blocks, without any wait.
    pub fn of(block: Vec<u32>) -> Self {
        Skeleton {
            epoch: vec![0; block.len()],
            meets: vec![false; block.len()],
            owner: (0..block.len() as u32).collect(),
            block,
            seen: Vec::new(),
            later: Vec::new(),
            sequence: Vec::new(),
        }
    }

    /// A further event of `step`.
    pub fn event(&mut self, step: u32) -> u32 {
        self.owner.push(step);
        self.owner.len() as u32 - 1
    }

    /// Whether an event is the start of a step.
    pub fn is_step(&self, event: u32) -> bool {
        (event as usize) < self.block.len()
    }

    /// The steps in order.
    pub fn steps(&self) -> impl Iterator<Item = u32> + '_ {
        let events = self.sequence.iter().copied();
        events.filter(|&event| self.is_step(event))
    }

    /// All waits as edges: `seen` first, then `later`, each in the order in which they were added.
    fn edges(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        self.seen.iter().chain(&self.later).copied()
    }

    /// Order events by a key as far as their waits allow; rejects a plan that deadlocks.
    pub fn arrange(
        &mut self,
        plan: &impl Steps,
        key: impl Fn(u32) -> u64,
        cure: impl FnOnce() -> String,
    ) -> Result<()> {
        match sequence(self.owner.len(), self.edges(), key) {
            Ok(sequence) => self.sequence = sequence,
            Err(circle) => return self.refuse(plan, &circle, cure),
        }
        Ok(())
    }

    /// Order events by running each thread block until it waits, then those that waited for it; rejects a plan that
    /// deadlocks.
    pub fn run(&mut self, plan: &impl Steps, cure: impl FnOnce() -> String) -> Result<()> {
        let found = Run::of(self).all();
        match found.len() == self.owner.len() {
            true => self.sequence = found,
            false => {
                let mut stuck = vec![true; self.owner.len()];
                found
                    .iter()
                    .for_each(|&event| stuck[event as usize] = false);
                let stuck = |event: u32| stuck[event as usize];
                let circle = circle(self.owner.len(), self.edges(), stuck);
                return self.refuse(plan, &circle, cure);
            }
        }
        Ok(())
    }

    /// The error that shows a cycle of events.
    fn refuse(
        &self,
        plan: &impl Steps,
        circle: &[u32],
        cure: impl FnOnce() -> String,
    ) -> Result<()> {
        let steps = self.turns(&steps_of(circle, |event| self.owner[event as usize]));
        let shown = steps.iter().take(SHOWN).chain(&steps[..1]);
        let mut shown: Vec<String> = shown.map(|&step| plan.place(step)).collect();
        if steps.len() > SHOWN {
            shown[SHOWN] = "...".to_string();
        }
        let (circle, cure) = (shown.join(" -> "), cure());
        plan.error(
            steps[0],
            format!("waits for itself, so the plan never ends: {circle}{cure}"),
        )
    }

    /// A cycle without the steps that follow and precede their neighbours within one thread block.
    fn turns(&self, circle: &[u32]) -> Vec<u32> {
        let follows = |later: u32, earlier: u32| {
            let block = |step: u32| self.block[step as usize];
            later == earlier + 1 && block(later) == block(earlier)
        };
        let (last, first) = (circle.len() - 1, circle[0]);
        let inside = |at: usize| {
            let after = circle.get(at + 1).copied().unwrap_or(first);
            at > 0 && follows(circle[at - 1], circle[at]) && follows(circle[at], after)
        };
        let turns = (0..=last).filter(|&at| !inside(at));
        turns.map(|at| circle[at]).collect()
    }
}
