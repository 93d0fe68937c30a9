//! What comes before what in a plan.
//!
//! Two relations are built. A thread block starts its operations one after another, which decides whether a plan
//! ends. Its threads, though, meet only at `nop` and `barrier`: two operations between which none stands may run at
//! the same time, so for data only this counts:
//!
//! ```text
//!   nop, barrier          everything of the thread block before it, before everything behind it
//!   signal -> wait        the k-th of one end of a channel, the k-th of the other end; `rlx` says nothing of data
//!   release -> acquire    the same of a semaphore, whose start value is taken first
//!   packets               the writer, before the reader
//!   port channel          a put leaves later; the next signal of the channel arrives behind it, `flush` waits for it
//! ```

mod meetings;
mod packets;
mod walk;

use super::plan::{Action, Plan};
use crate::error::Result;
use crate::skeleton::{Skeleton, NONE};
use std::collections::BTreeMap;

/// The events of a plan.
pub(super) struct Events {
    pub order: Skeleton,
    /// When each move is done.
    pub done: Vec<u32>,
    /// Operations that signal, and that wait for it.
    pub signals: Vec<(u32, u32)>,
}

/// The events of `plan`, or why it does not end.
pub(super) fn events(plan: &Plan) -> Result<Events> {
    let mut maker = Maker::new(plan);
    for block in 0..plan.blocks.len() as u32 {
        maker.block(block)?;
    }
    maker.counts()?;
    maker.barriers()?;
    maker.packets()?;
    maker.finish()
}

/// The uses of a channel end or a semaphore in one direction, in order: events, and whether they say nothing of data.
type Uses = Vec<(u32, bool)>;

/// A round of a barrier: when its thread blocks go on, how many must come if they agree, and the operations with
/// which they came.
type Round = (u32, Option<u32>, Vec<u32>);

struct Maker<'a> {
    plan: &'a Plan,
    out: Events,
    /// By name, as operations have it.
    posts: Vec<Uses>,
    takes: Vec<Uses>,
    /// Of each barrier of a GPU, round by round.
    rounds: BTreeMap<(u32, u32), Vec<Round>>,
}

impl<'a> Maker<'a> {
    fn new(plan: &'a Plan) -> Self {
        let names = plan.ends.len() + plan.semaphores.len();
        Maker {
            plan,
            out: Events {
                order: Skeleton::of(plan.ops.iter().map(|op| op.block).collect()),
                done: vec![NONE; plan.moves.len()],
                signals: Vec::new(),
            },
            posts: vec![Uses::new(); names],
            takes: vec![Uses::new(); names],
            rounds: BTreeMap::new(),
        }
    }

    /// Find an order in which all can happen.
    fn finish(mut self) -> Result<Events> {
        let plan = self.plan;
        let key = |event: u32| match plan
            .ops
            .get(event as usize)
            .map(|op| (op.action, op.own, op.block))
        {
            Some((Action::Data(_), Some(own), _)) if plan.own => 1 + u64::from(own.op),
            Some((Action::Data(_), _, block)) => {
                1 + u64::from(event - plan.blocks[block as usize].ops.start)
            }
            _ => 0,
        };
        let cure = || "; move a signal before the wait that it answers".to_string();
        self.out.order.arrange(plan, key, cure)?;
        Ok(self.out)
    }
}
