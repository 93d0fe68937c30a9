//! What plans for GPUs can express of a schedule.

use crate::error::{PlanError, Result};
use linkwright_schedule::ir::{Op, OpKind};
use linkwright_schedule::{Collective, Schedule};

/// Refuse a schedule with more operations that move data than a reader would take, before the work of writing them,
/// and one with anything that no thread block does.
pub(crate) fn check(schedule: &Schedule, most: usize) -> Result<()> {
    let (spec, ops) = (&schedule.spec, schedule.ops());
    let (name, memories) = (spec.collective.name(), schedule.memories);
    let moves = ops.iter().filter(|op| op.moves_data()).count();
    let problem = match spec.collective {
        _ if moves > most => format!(
            "{moves} operations that move data, and at most {most} are read; use fewer ranks, or split the schedule"
        ),
        of if of.is_uneven() || matches!(of, Collective::Barrier | Collective::Pattern) => {
            format!("the format has no {name}; export it as lw")
        }
        _ if memories > 0 => format!(
            "the schedule has {memories} memories, and the format knows only GPUs; use an algorithm without"
        ),
        _ if spec.repeats != 1 => {
            format!("{name} runs {} times; export the schedule of one run", spec.repeats)
        }
        _ => return (0..).zip(ops).try_for_each(|(id, op)| operation(id, op)),
    };
    Err(PlanError::whole(problem))
}

fn operation(id: u32, op: &Op) -> Result<()> {
    let problem = match op.kind {
        OpKind::Multicast => {
            "is a multicast, and a thread block sends to one GPU; unfuse it into puts"
        }
        OpKind::Aggregate => {
            "is an aggregation, and a thread block receives from one GPU; combine on the GPUs"
        }
        OpKind::Compute => "computes, and the format has no arithmetic of its own; leave it out",
        OpKind::Barrier => "is a barrier, which the format lacks; let the data order the ranks",
        OpKind::Fence => "is a fence, which the format lacks; wait for single operations instead",
        OpKind::Put | OpKind::Get if op.from == op.to => "sends to itself; make it local",
        _ => return Ok(()),
    };
    refuse(id, op, problem)
}

/// Refuse operation `id`.
pub(crate) fn refuse<T>(id: u32, op: &Op, problem: &str) -> Result<T> {
    let place = format!(
        "operation t{id} of step {} at rank {}",
        op.step,
        op.initiator()
    );
    Err(PlanError::at(place, problem))
}

/// An error about the schedule as a whole.
pub(crate) fn cannot(what: impl ToString) -> PlanError {
    PlanError::whole(format!(
        "the format cannot express this schedule: {}",
        what.to_string()
    ))
}
