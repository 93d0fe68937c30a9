//! Counts of a schedule that its author can derive by hand; for tests.

use crate::ir::{Op, OpKind, Schedule};
use std::collections::BTreeSet;

/// Steps in which data travel.
pub fn rounds(schedule: &Schedule) -> usize {
    let steps: BTreeSet<u32> = transfers(schedule).map(|op| op.step).collect();
    steps.len()
}

/// Bytes that leave `rank`, least and most over all ranks.
pub fn bytes_sent(schedule: &Schedule) -> (u64, u64) {
    let mut sent = vec![0; (schedule.ranks + schedule.memories) as usize];
    for op in transfers(schedule) {
        sent[op.from as usize] += schedule.op_bytes(op);
    }
    let sent = &sent[..schedule.ranks as usize];
    (*sent.iter().min().unwrap(), *sent.iter().max().unwrap())
}

/// Messages with data or tokens.
pub fn messages(schedule: &Schedule) -> usize {
    transfers(schedule).count()
}

/// Messages without data that the hazards demand.
pub fn notices(schedule: &Schedule) -> usize {
    let ops = schedule.ops().iter();
    ops.filter(|op| op.kind == OpKind::Notice).count()
}

fn transfers(schedule: &Schedule) -> impl Iterator<Item = &Op> {
    let moves = |op: &&Op| op.is_message() && op.kind != OpKind::Notice;
    schedule.ops().iter().filter(moves)
}
