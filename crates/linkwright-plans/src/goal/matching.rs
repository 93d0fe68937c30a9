//! Which receive gets which message: same sender, receiver and tag, in the order of the text.

use super::plan::{Kind, Plan};
use crate::error::{PlanError, Result};
use std::cmp::Ordering;

/// Index of no operation.
pub(super) const NONE: u32 = u32::MAX;

/// Sender, receiver, tag, index of the operation.
type Half = (u32, u32, u32, u32);

/// The other half of each send and receive; [`NONE`] for calculations.
pub(super) fn partners(plan: &Plan) -> Result<Vec<u32>> {
    let (mut sends, mut receives): (Vec<Half>, Vec<Half>) = (Vec::new(), Vec::new());
    for (index, step) in (0u32..).zip(&plan.steps) {
        match step.kind {
            Kind::Send { to, tag, .. } => sends.push((step.rank, to, tag, index)),
            Kind::Recv { from, tag, .. } => receives.push((from, step.rank, tag, index)),
            Kind::Calc { .. } => {}
        }
    }
    sends.sort_unstable();
    receives.sort_unstable();
    let mut partners = vec![NONE; plan.steps.len()];
    let (mut sends, mut receives) = (
        sends.into_iter().peekable(),
        receives.into_iter().peekable(),
    );
    loop {
        let earlier = match (sends.peek(), receives.peek()) {
            (None, None) => return Ok(partners),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(send), Some(receive)) => {
                (send.0, send.1, send.2).cmp(&(receive.0, receive.1, receive.2))
            }
        };
        match (
            earlier,
            sends.next_if(|_| earlier.is_le()),
            receives.next_if(|_| earlier.is_ge()),
        ) {
            (Ordering::Equal, Some(send), Some(receive)) => {
                check_room(plan, send.3, receive.3)?;
                partners[send.3 as usize] = receive.3;
                partners[receive.3 as usize] = send.3;
            }
            (_, Some(lonely), _) | (_, _, Some(lonely)) => return Err(unmatched(plan, lonely)),
            _ => unreachable!("one side has a next half"),
        }
    }
}

/// Refuse a message that is larger than its receive.
fn check_room(plan: &Plan, send: u32, receive: u32) -> Result<()> {
    let (sender, receiver) = (&plan.steps[send as usize], &plan.steps[receive as usize]);
    match (sender.kind, receiver.kind) {
        (Kind::Send { bytes, .. }, Kind::Recv { bytes: room, .. }) if bytes > room => {
            Err(receiver.error(format!(
                "receives {room} B, but the message from rank {} (line {}) has {bytes} B; make the receive as large",
                sender.rank, sender.line
            )))
        }
        _ => Ok(()),
    }
}

fn unmatched(plan: &Plan, (from, to, tag, index): Half) -> PlanError {
    let step = &plan.steps[index as usize];
    let (what, bytes, cure, rank) = match step.kind {
        Kind::Recv { bytes, .. } => ("never comes", bytes, format!("send {{}}b to {to}"), from),
        Kind::Send { bytes, .. } => (
            "is never received",
            bytes,
            format!("recv {{}}b from {from}"),
            to,
        ),
        Kind::Calc { .. } => unreachable!("a calculation has no other half"),
    };
    let cure = cure.replace("{}", &bytes.to_string());
    step.error(format!(
        "the message of {bytes} B from rank {from} to rank {to} with tag {tag} {what}; add `{cure} tag {tag}` to rank {rank}"
    ))
}
