//! What the format can express, and whether what was written says the same as the schedule.

use crate::error::{PlanError, Result};
use linkwright_schedule::ir::{self, OpKind};
use linkwright_schedule::{Collective, Schedule};

pub(super) fn cannot(what: &str) -> PlanError {
    PlanError::whole(format!("the format cannot express this schedule: {what}"))
}

/// Refuse what no operation of the format does.
pub(super) fn expressible(schedule: &Schedule) -> Result<()> {
    let spec = &schedule.spec;
    if matches!(spec.collective, Collective::Barrier | Collective::Pattern) {
        return Err(cannot(&format!(
            "{} is none of its collectives",
            spec.collective.name()
        )));
    }
    if spec.repeats > 1 {
        return Err(cannot(&format!(
            "it runs {} times; write it once",
            spec.repeats
        )));
    }
    if schedule.memories > 0 {
        return Err(cannot("it has memories that are not GPUs"));
    }
    for (id, op) in schedule.ops().iter().enumerate() {
        let what = match op.kind {
            OpKind::Multicast => "is a multicast; the plan would need a switch",
            OpKind::Aggregate => "is an aggregation; the plan would need a switch",
            OpKind::Compute => "computes",
            OpKind::Barrier => "is a barrier of ranks",
            OpKind::Fence => "is a fence",
            _ => continue,
        };
        return Err(cannot(&format!("operation t{id} {what}")));
    }
    Ok(())
}

/// What the plan does not say of `schedule`, which became `back`.
pub(super) fn difference(schedule: &Schedule, back: &Schedule) -> Option<String> {
    if (schedule.spec, &schedule.buffers) != (back.spec, &back.buffers) {
        return Some("its buffers or what it is to achieve would change".to_string());
    }
    let (ops, others) = (schedule.ops(), back.ops());
    for id in 0..ops.len().max(others.len()) {
        let (Some(op), Some(other)) = (ops.get(id), others.get(id)) else {
            return Some(format!(
                "{} operations would become {}",
                ops.len(),
                others.len()
            ));
        };
        let same = ir::Op {
            src: other.src,
            dst: other.dst,
            count: other.count,
            scattered: other.scattered,
            ..*op
        } == *other
            && schedule.chunk_ranges(op).eq(back.chunk_ranges(other))
            && schedule.after(id as u32) == back.after(id as u32);
        if !same {
            return Some(format!(
                "operation t{id} would change; it has waits that its data do not need, or needless ranges"
            ));
        }
    }
    None
}
