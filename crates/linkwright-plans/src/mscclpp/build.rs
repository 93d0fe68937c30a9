//! From a plan that is in order to a verified schedule.

use super::events::Events;
use super::plan::{Move, Plan};
use crate::error::{PlanError, Result};
use crate::skeleton::{Operation, Writer};
use linkwright_schedule::ir::Hint;
use linkwright_schedule::Schedule;

/// Most waits besides those that data need.
const MAX_WAITS: usize = 1 << 21;

/// The schedule of a plan, with one element for each unit.
pub(super) fn schedule(plan: &Plan, events: &Events) -> Result<Schedule> {
    let waits = waits(plan, events)?;
    let mut writer = Writer::new(plan, &plan.goal, &plan.layout);
    // Position of the last transfer of an operation.
    let mut positions = vec![None; plan.ops.len()];
    let ops: Vec<u32> = events
        .order
        .steps()
        .filter(|&op| !plan.data(op).is_empty())
        .collect();
    for group in ops.chunk_by(|&a, &b| together(plan, a, b)) {
        let (op, known) = (group[0], &plan.ops[group[0] as usize]);
        let own = known.own.filter(|_| plan.own);
        let first = waits.partition_point(|wait| wait.0 < op);
        let waits = waits[first..].iter().take_while(|wait| wait.0 == op);
        let mut after: Vec<u32> = waits
            .filter_map(|wait| positions[wait.1 as usize])
            .collect();
        let moves: Vec<Move> = group
            .iter()
            .flat_map(|&op| plan.data(op))
            .copied()
            .collect();
        let mut rest = &moves[..];
        while let Some(made) = rest.first() {
            let is_first = rest.len() == moves.len();
            let (parts, others) = rest.split_at(transfer(rest));
            rest = others;
            let operation = Operation {
                step: op,
                mover: made.kind,
                from: made.from,
                to: made.to,
                reduces: made.reduces,
                lane: plan.blocks[known.block as usize].lane,
                number: own.map(|own| own.step),
                hint: known.own.map_or(Hint::None, |own| own.hint),
                fenced: is_first && own.is_some_and(|own| own.fenced),
                awaited: rest.is_empty() && !plan.own,
            };
            let runs = parts.iter().map(|made| (made.src, made.dst, made.count));
            let position = writer.write(&operation, runs, after.drain(..))?;
            positions[op as usize] = operation.awaited.then_some(position);
        }
    }
    writer.finish("`root` of `linkwright`")
}

/// Whether two operations of the plan, one behind the other, are one of the schedule.
fn together(plan: &Plan, a: u32, b: u32) -> bool {
    let (a, b) = (&plan.ops[a as usize], &plan.ops[b as usize]);
    plan.own && b.own.is_some() && (a.own, a.block) == (b.own, b.block)
}

/// How many of the first moves one operation of the schedule makes.
fn transfer(moves: &[Move]) -> usize {
    let count = moves
        .iter()
        .take_while(|made| alike(&moves[0], made))
        .count();
    if apart(&moves[..count]) {
        count
    } else {
        1
    }
}

/// (operation, the one it waits for) of data operations, in order: the first behind a wait waits for the last before
/// the signal. A plan of ours has the waits that its data need, and no others.
fn waits(plan: &Plan, events: &Events) -> Result<Vec<(u32, u32)>> {
    let mut waits = Vec::new();
    if plan.own {
        return Ok(waits);
    }
    let moves = |op: u32| !plan.data(op).is_empty();
    let (mut before, mut behind) = (vec![None; plan.ops.len()], vec![None; plan.ops.len()]);
    for block in &plan.blocks {
        let mut last = None;
        for op in block.ops.clone() {
            last = if moves(op) { Some(op) } else { last };
            before[op as usize] = last;
        }
        let mut next = None;
        for op in block.ops.clone().rev() {
            next = if moves(op) { Some(op) } else { next };
            behind[op as usize] = next;
        }
    }
    for &(signal, wait) in &events.signals {
        if let (Some(earlier), Some(later)) = (before[signal as usize], behind[wait as usize]) {
            waits.push((later, earlier));
        }
    }
    waits.sort_unstable();
    waits.dedup();
    match waits.len() > MAX_WAITS {
        true => Err(PlanError::whole(format!(
            "{} waits; at most {MAX_WAITS} are read",
            waits.len()
        ))),
        false => Ok(waits),
    }
}

/// Whether two ranges can be moved by one operation.
fn alike(a: &Move, b: &Move) -> bool {
    (a.from, a.to, a.kind, a.reduces) == (b.from, b.to, b.kind, b.reduces)
        && (a.src.space, a.dst.space) == (b.src.space, b.dst.space)
}

/// Whether no two ranges are written to the same place.
fn apart(moves: &[Move]) -> bool {
    let mut spans: Vec<_> = moves.iter().map(|made| (made.dst.at, made.count)).collect();
    spans.sort_unstable();
    spans
        .windows(2)
        .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
}
