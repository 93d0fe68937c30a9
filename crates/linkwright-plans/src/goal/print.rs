//! The canonical text of the schedule that a GOAL plan comes to, with all its waits.

use super::cut::{Cut, Message};
use super::plan::{Kind, Plan};
use crate::error::Result;
use linkwright_schedule::text::VERSION_LINE;
use std::fmt::Write as _;

/// Print the puts and computes of `plan`; `before` has what precedes each, and `waits` what it waits for.
pub(super) fn print(plan: &Plan, before: &[(u64, u32)], waits: &[Vec<u32>]) -> Result<String> {
    let issued = issued(plan, before);
    let mut ids = vec![0u32; plan.steps.len()];
    for (id, &index) in (0u32..).zip(&issued) {
        ids[index as usize] = id;
    }
    let messages = issued.iter().filter_map(|&index| message(plan, index));
    let mut cut = Cut::new(messages, plan.ranks);
    let mut lines = String::with_capacity(80 * issued.len());
    let (mut step, mut first) = (0, 0);
    for (id, &index) in (0u32..).zip(&issued) {
        let mut on: Vec<u32> = (waits[index as usize].iter())
            .map(|&other| ids[other as usize])
            .collect();
        on.sort_unstable();
        // A step ends where an operation waits for one of it.
        if id == 0 || on.last().is_some_and(|&last| last >= first) {
            (step, first) = (step + 1, id);
            let _ = writeln!(lines, "step {step}");
        }
        operation(&mut lines, plan, &mut cut, index, id);
        list(&mut lines, &on);
        lines.push_str(match message(plan, index) {
            Some(_) => " dst_after=-\n",
            None => "\n",
        });
    }
    let head = format!(
        "{VERSION_LINE}\nranks {}\n{}edges given\n",
        plan.ranks,
        cut.declarations()?
    );
    lines.push_str("end\n");
    lines.insert_str(0, &head);
    Ok(lines)
}

/// All sends and calculations, in the order of their ids.
fn issued(plan: &Plan, before: &[(u64, u32)]) -> Vec<u32> {
    let steps = (0u32..).zip(&plan.steps);
    let mut issued: Vec<u32> = steps
        .filter(|(_, step)| !matches!(step.kind, Kind::Recv { .. }))
        .map(|(index, _)| index)
        .collect();
    issued.sort_by_key(|&i| (before[i as usize], plan.steps[i as usize].rank, i));
    issued
}

/// The message of a send.
fn message(plan: &Plan, index: u32) -> Option<Message> {
    let step = &plan.steps[index as usize];
    match step.kind {
        Kind::Send { to, bytes, .. } => Some(Message {
            from: step.rank,
            to,
            bytes,
        }),
        _ => None,
    }
}

/// One operation up to its waits.
fn operation(text: &mut String, plan: &Plan, cut: &mut Cut, index: u32, id: u32) {
    let step = &plan.steps[index as usize];
    let lane = step.lane;
    match (step.kind, message(plan, index)) {
        (_, Some(message)) => {
            let _ = write!(text, "t{id} put");
            cut.place(text, message);
            let _ = write!(text, " replace lane={lane} src_after=");
        }
        (Kind::Calc { ns }, None) => {
            let _ = write!(
                text,
                "t{id} compute {} work={ns} lane={lane} after=",
                step.rank
            );
        }
        _ => unreachable!("receives are not issued"),
    }
}

/// `t1,t2`, or `-` for none.
fn list(text: &mut String, ids: &[u32]) {
    if ids.is_empty() {
        text.push('-');
    }
    for (place, id) in ids.iter().enumerate() {
        let _ = write!(text, "{}t{id}", if place == 0 { "" } else { "," });
    }
}
