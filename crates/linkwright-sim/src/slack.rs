//! Slack: how much later an operation could surely end without a later end of the whole.
//!
//! From the last operation to the first:
//!
//! ```text
//!   slack(i) = min( end - done(i),
//!                   slack(j) + issued(j) - done(i)   for each j at another rank, or a target, that waits for its arrival
//!                   slack(k)                         for what its lane does next, and for other waits of its rank
//!                   end - finish(rank) )             if it is the last of its lane
//! ```
//!
//! so an operation is late together with all that its lane does afterwards, and contention is not seen.

use crate::error::SimError;
use crate::outcome::{Simulation, NEVER};
use linkwright_schedule::ir::{Completion, Edge, OpKind, Schedule};
use rustc_hash::FxHashMap;

/// Picoseconds by operation; `None` where barriers of the machine order operations without edges.
pub fn slack(schedule: &Schedule, simulation: &Simulation) -> Result<Option<Vec<u64>>, SimError> {
    let times = simulation.recorded()?;
    if schedule.has(OpKind::Barrier) {
        return Ok(None);
    }
    let done = |id: usize| match times.visible[id] {
        NEVER => times.delivered[id],
        visible => visible,
    };
    let ops = schedule.ops();
    let end = simulation.end_ps();
    let mut slack: Vec<u64> = (0..ops.len())
        .map(|id| end.saturating_sub(done(id)))
        .collect();
    let mut lanes: FxHashMap<(u32, u8), u64> = FxHashMap::default();
    for id in (0..ops.len()).rev() {
        let (rank, lane) = (ops[id].initiator(), ops[id].lane);
        let last = end - simulation.finish[rank as usize].min(end);
        let after = *lanes.get(&(rank, lane)).unwrap_or(&last);
        let mine = slack[id].min(after);
        lanes.insert((rank, lane), mine);
        slack[id] = mine;
        for edge in schedule.after(id as u32) {
            let earlier = edge.op() as usize;
            let room = match arrives(schedule, *edge, rank) {
                true => times.issued[id].saturating_sub(done(earlier)),
                false => 0,
            };
            slack[earlier] = slack[earlier].min(mine + room);
        }
    }
    Ok(Some(slack))
}

/// Whether `edge` waits for data or a notice of another rank.
fn arrives(schedule: &Schedule, edge: Edge, waiter: u32) -> bool {
    let mine = schedule.ops()[edge.op() as usize].initiator() == waiter;
    match schedule.completion(edge, waiter) {
        Some(Completion::SourceFree) | None => false,
        Some(Completion::Delivered) => !mine,
        Some(_) => true,
    }
}
