//! What each put and compute waits for: other puts and computes, as its rank sees them.

use super::order::Order;
use super::parse::{Kind, Need, Plan};
use crate::error::{PlanError, Result};

/// Most waits that a plan may come to, those included that receives pass on.
const MAX_WAITS: usize = 1 << 22;

/// For each operation, the sends and calculations that it waits for, ascending.
///
/// A receive is no operation of a schedule. What requires it waits for the message, and for all that the
/// receive itself waits for.
pub(super) fn of(plan: &Plan, partners: &[u32], order: &Order) -> Result<Vec<Vec<u32>>> {
    let mut needs: Vec<Need> = plan.needs.clone();
    needs.sort_unstable_by_key(|need| need.waiter);
    let mut waits: Vec<Vec<u32>> = vec![Vec::new(); plan.steps.len()];
    let mut total = 0;
    for &index in &order.topological {
        let first = needs.partition_point(|need| need.waiter < index);
        let mine = needs[first..]
            .iter()
            .take_while(|need| need.waiter == index);
        let mut found = Vec::new();
        for need in mine {
            let (on, step) = (need.on as usize, &plan.steps[need.on as usize]);
            let receives = matches!(step.kind, Kind::Recv { .. });
            // A lane starts its operations one behind the other.
            let in_lane = !receives && step.lane == plan.steps[index as usize].lane;
            match (need.start, receives) {
                (true, _) if in_lane && !is_receive(plan, index) => {}
                (true, _) => found.extend_from_slice(&waits[on]),
                (false, true) => {
                    found.push(partners[on]);
                    found.extend_from_slice(&waits[on]);
                }
                (false, false) => found.push(need.on),
            }
            if total + found.len() > MAX_WAITS {
                return Err(too_many(plan, index));
            }
        }
        found.sort_unstable();
        found.dedup();
        total += found.len();
        waits[index as usize] = found;
    }
    Ok(waits)
}

fn is_receive(plan: &Plan, index: u32) -> bool {
    matches!(plan.steps[index as usize].kind, Kind::Recv { .. })
}

fn too_many(plan: &Plan, index: u32) -> PlanError {
    plan.steps[index as usize].error(format!(
        "more than {MAX_WAITS} waits so far, because receives pass on what they require; let a `calc 0` require \
         them, and the operations behind require that"
    ))
}
