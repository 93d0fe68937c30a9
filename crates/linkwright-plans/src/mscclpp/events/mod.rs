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

pub(super) use packets::scratch_units;

use super::plan::{Action, Plan};
use crate::error::{PlanError, Result};
use crate::order::sequence;
use std::collections::BTreeMap;

/// No node, no operation.
pub(super) const NONE: u32 = u32::MAX;

/// Most operations of a circle that are printed.
const SHOWN: usize = 12;

/// The events of a plan, in an order in which they can happen. Node k is the start of operation k.
pub(super) struct Events {
    /// All nodes.
    pub sequence: Vec<u32>,
    /// "The data of the first are seen by the second."
    pub seen: Vec<(u32, u32)>,
    /// "The second does not happen before the first", besides.
    pub later: Vec<(u32, u32)>,
    /// The operation of a node.
    pub owner: Vec<u32>,
    /// When each move is done.
    pub done: Vec<u32>,
    /// How often the threads of its block met before an operation.
    pub epoch: Vec<u32>,
    /// Operations that signal, and that wait for it.
    pub signals: Vec<(u32, u32)>,
}

/// The events of `plan`, or why it does not end.
pub(super) fn events(plan: &Plan) -> Result<Events> {
    let mut maker = Maker::new(plan);
    for block in 0..plan.blocks.len() as u32 {
        maker.block(block)?;
    }
    maker.channels()?;
    maker.semaphores()?;
    maker.barriers()?;
    maker.packets()?;
    maker.finish()
}

/// The use of a channel end or a semaphore, in order, by one thread block.
#[derive(Default, Clone)]
struct Uses {
    /// Nodes, and whether they say nothing of data.
    list: Vec<(u32, bool)>,
    block: Option<u32>,
}

/// A round of a barrier: when its thread blocks go on, how many must come, and the operations with which they came.
type Round = (u32, u32, Vec<u32>);

struct Maker<'a> {
    plan: &'a Plan,
    out: Events,
    signals: Vec<Uses>,
    waits: Vec<Uses>,
    releases: Vec<Uses>,
    acquires: Vec<Uses>,
    /// Of each barrier of a GPU, round by round.
    rounds: BTreeMap<(u32, u32), Vec<Round>>,
}

impl<'a> Maker<'a> {
    fn new(plan: &'a Plan) -> Self {
        let ops = plan.ops.len() as u32;
        Maker {
            plan,
            out: Events {
                sequence: Vec::new(),
                seen: Vec::new(),
                later: Vec::new(),
                owner: (0..ops).collect(),
                done: vec![NONE; plan.moves.len()],
                epoch: vec![0; plan.ops.len()],
                signals: Vec::new(),
            },
            signals: vec![Uses::default(); plan.ends.len()],
            waits: vec![Uses::default(); plan.ends.len()],
            releases: vec![Uses::default(); plan.semaphores.len()],
            acquires: vec![Uses::default(); plan.semaphores.len()],
            rounds: BTreeMap::new(),
        }
    }

    fn node(&mut self, op: u32) -> u32 {
        self.out.owner.push(op);
        self.out.owner.len() as u32 - 1
    }

    /// Find an order in which all can happen.
    fn finish(mut self) -> Result<Events> {
        let (plan, nodes) = (self.plan, self.out.owner.len());
        let mut edges = std::mem::take(&mut self.out.later);
        let later = edges.len();
        edges.append(&mut self.out.seen);
        let key = |node: u32| match plan
            .ops
            .get(node as usize)
            .map(|op| (op.action, op.own, op.block))
        {
            Some((Action::Data(_), Some(own), _)) if plan.own => 1 + u64::from(own.op),
            Some((Action::Data(_), _, block)) => {
                1 + u64::from(node - plan.blocks[block as usize].ops.start)
            }
            _ => 0,
        };
        let found = sequence(nodes, &edges, key);
        self.out.seen = edges.split_off(later);
        self.out.later = edges;
        match found {
            Ok(sequence) => self.out.sequence = sequence,
            Err(circle) => return refuse(plan, &self.out.owner, &circle),
        }
        Ok(self.out)
    }
}

fn refuse<T>(plan: &Plan, owner: &[u32], circle: &[u32]) -> Result<T> {
    let mut ops: Vec<u32> = circle.iter().map(|&node| owner[node as usize]).collect();
    ops.dedup();
    let first = (0..ops.len()).min_by_key(|&index| ops[index]).unwrap_or(0);
    ops.rotate_left(first);
    ops.truncate(SHOWN);
    let more = if ops.len() == SHOWN { " -> ..." } else { "" };
    let shown: Vec<String> = ops
        .iter()
        .chain(&ops[..1])
        .map(|&op| plan.place(op))
        .collect();
    Err(PlanError::at(
        plan.place(ops[0]),
        format!(
            "waits for itself, so the plan never ends: {}{more}; move a signal before the wait that it answers",
            shown.join(" -> ")
        ),
    ))
}
