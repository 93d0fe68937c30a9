//! The latency of a schedule: its longest chain of messages without data.

use crate::fabric::Fabric;
use crate::prepared::Prepared;
use linkwright_core::machine::Path;
use linkwright_core::TimePs;
use linkwright_schedule::ir::{Op, OpKind};

/// The longest chain of messages, each without its data and alone on the machine.
pub(crate) fn longest_chain<F: Fabric + ?Sized>(prepared: &Prepared<'_>, fabric: &F) -> TimePs {
    let (messages, costs) = (&prepared.messages, &prepared.costs);
    let (schedule, path) = (messages.schedule, &prepared.setup.path);
    let carriage = |id: u32, op: &Op| {
        let empty = messages.without_data(id, op);
        costs.sending(op, messages) + fabric.quiet(&empty).0
    };
    // Of a message its earliest delivery, of anything else its earliest issue.
    let mut earliest: Vec<u64> = Vec::with_capacity(schedule.ops().len());
    let mut longest = 0;
    for (id, op, edges) in schedule.ops_with_edges() {
        let waiter = op.initiator();
        let mut at = 0;
        for edge in edges {
            let earlier = &schedule.ops()[edge.op() as usize];
            let reached = earliest[edge.op() as usize];
            let known = match (earlier.is_message(), edge.is_acknowledged()) {
                (false, _) | (true, true) => reached,
                (true, false) if schedule.targets(earlier).contains(&waiter) => {
                    reached + after_delivery(earlier, waiter, schedule.ranks, path)
                }
                // To wait for a free source is not to wait for the message.
                (true, false) => reached - carriage(edge.op(), earlier),
            };
            at = known.max(at);
        }
        if op.is_message() {
            at += carriage(id, op);
            let last = *schedule.targets(op).last().unwrap_or(&op.to);
            longest = longest.max(at + after_delivery(op, last, schedule.ranks, path));
        }
        earliest.push(at);
    }
    TimePs(longest)
}

/// Least software time at `target` between the delivery of `op` and its effect.
#[inline]
fn after_delivery(op: &Op, target: u32, ranks: u32, path: &Path) -> u64 {
    match op.kind {
        // A memory handles nothing.
        _ if target >= ranks => 0,
        OpKind::Put | OpKind::Multicast if path.signal => {
            path.barrier.0 + path.notice_start.0 + path.receive.0
        }
        // Of data that ranks move themselves not all need handling.
        _ if path.memory.is_some() => 0,
        _ => path.receive.0,
    }
}
