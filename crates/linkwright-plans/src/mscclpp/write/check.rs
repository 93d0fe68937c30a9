//! Whether what was written says the same as the schedule.

use linkwright_schedule::ir;
use linkwright_schedule::Schedule;

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
