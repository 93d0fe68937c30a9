//! Whether a plan itself orders all accesses to the same data, and every GPU lives as long as it is accessed.

use super::events::Events;
use super::plan::{Action, Plan, Steps};
use crate::error::{PlanError, Result};
use crate::skeleton::{Access, Rows};

/// Most entries of the table of GPUs that learn of an event.
const MAX_KNOWN: usize = 1 << 25;

/// Refuse accesses in no order, and transfers that a GPU does not wait for before it ends.
pub(super) fn check(plan: &Plan, events: &Events) -> Result<()> {
    let cells = plan.cells();
    let accesses = |op: u32| {
        let moves = match plan.ops[op as usize].action {
            Action::Data(data) => data.moves.0..data.moves.1,
            _ => 0..0,
        };
        moves.flat_map(|index| {
            let made = plan.moves[index as usize];
            let access = |gpu, place, writes| {
                let first = cells.of(gpu, place);
                Access {
                    cells: first..first + made.count,
                    writes,
                    done: events.done[index as usize],
                }
            };
            [
                access(made.from, made.src, false),
                access(made.to, made.dst, true),
            ]
        })
    };
    let cure = "add a nop between them, or a signal and a wait with a nop before and behind";
    events.order.prove(plan, &cells, accesses, cure)?;
    ends(plan, events)
}

/// A GPU must not end while others write its data or read them: something of its own comes behind each such move.
fn ends(plan: &Plan, events: &Events) -> Result<()> {
    let order = &events.order;
    let (nodes, words) = (order.owner.len(), (plan.goal.ranks as usize).div_ceil(64));
    if nodes * words > MAX_KNOWN {
        return Err(PlanError::whole(format!(
            "{} operations of {} GPUs take too long to prove; use fewer",
            plan.ops.len(),
            plan.goal.ranks
        )));
    }
    let edges = order.seen.iter().chain(&order.later).copied();
    let after = Rows::of(nodes, edges);
    let mut known = vec![0u64; nodes * words];
    for &node in order.sequence.iter().rev() {
        let own = node as usize * words;
        let op = order.owner[node as usize];
        // An event of a channel or barrier belongs to no GPU until something follows it.
        if op == node {
            let gpu = plan.blocks[plan.ops[op as usize].block as usize].gpu as usize;
            known[own + gpu / 64] |= 1 << (gpu % 64);
        }
        for &next in after.at(node) {
            for word in 0..words {
                known[own + word] |= known[next as usize * words + word];
            }
        }
    }
    for (op, known_op) in (0..).zip(&plan.ops) {
        let Action::Data(data) = known_op.action else {
            continue;
        };
        let own = plan.blocks[known_op.block as usize].gpu;
        for index in data.moves.0..data.moves.1 {
            let made = plan.moves[index as usize];
            let done = events.done[index as usize] as usize;
            let learns = |gpu: u32| known[done * words + gpu as usize / 64] >> (gpu % 64) & 1 == 1;
            for gpu in [made.from, made.to] {
                if gpu != own && !learns(gpu) {
                    let problem = format!(
                        "gpu {gpu} may end before this is done; signal it behind this, and let it wait for that"
                    );
                    return plan.error(op, problem);
                }
            }
        }
    }
    Ok(())
}
