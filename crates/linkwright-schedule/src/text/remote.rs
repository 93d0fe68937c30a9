//! Waits at the side that does not initiate a transfer become notices.
//!
//! "Rank 1 must have read t3 before the put into it may start" is a wait of the destination, which
//! the source cannot see; so the destination sends a notice when t3 is complete, and the source
//! waits for that.

use crate::error::Result;
use crate::ir::{Edge, Op, OpKind, Schedule};

/// Insert the notices that the `remote` waits need: (waiting operation, edges at its other side),
/// ascending. The edges lead to smaller ids and their waiters can see them.
pub(super) fn lower(schedule: &mut Schedule, remote: &[(u32, Vec<Edge>)]) -> Result<()> {
    if remote.is_empty() {
        return Ok(());
    }
    let ops = std::mem::take(&mut schedule.ops);
    let starts = std::mem::take(&mut schedule.edge_start);
    let edges = std::mem::take(&mut schedule.edges);
    schedule.edge_start.push(0);
    let mut renumbered: Vec<u32> = Vec::with_capacity(ops.len());
    let mut remote = remote.iter().peekable();
    for (id, op) in ops.into_iter().enumerate() {
        let moved = |edge: &Edge| edge.with_op(renumbered[edge.op() as usize]);
        let mut waits: Vec<Edge> = (edges[starts[id] as usize..starts[id + 1] as usize].iter())
            .map(moved)
            .collect();
        if let Some((_, far)) = remote.next_if(|(waiter, _)| *waiter as usize == id) {
            let far = far.iter().map(moved).collect();
            let notice = op.notice(other_side(&op), op.initiator());
            waits.push(Edge::on(push(schedule, notice, far)?));
        }
        renumbered.push(push(schedule, op, waits)?);
    }
    Ok(())
}

/// The participant of a put or get that does not initiate it.
pub(super) fn other_side(op: &Op) -> u32 {
    match op.kind {
        OpKind::Get => op.from,
        _ => op.to,
    }
}

fn push(schedule: &mut Schedule, op: Op, waits: Vec<Edge>) -> Result<u32> {
    let id = schedule.ops.len() as u32;
    schedule.ops.push(op);
    schedule.edges.extend(waits);
    schedule.end_edges()?;
    Ok(id)
}
