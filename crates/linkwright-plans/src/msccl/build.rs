//! From moves to a verified schedule.

use super::compose::{self, Move};
use super::limits::MAX_CELLS;
use super::links::Links;
use super::plan::{Cells, Plan, Steps};
use crate::error::{PlanError, Result};
use crate::skeleton::{Layout, Mover, Operation, Writer};
use linkwright_schedule::ir::Hint;
use linkwright_schedule::Schedule;

/// The schedule of a plan that can run in `order`, with one element for each chunk.
pub(super) fn schedule(
    plan: &Plan,
    links: &Links,
    cells: &Cells,
    order: &[u32],
) -> Result<Schedule> {
    let goal = &plan.head.goal;
    let moves = compose::moves(plan, links, cells, order);
    let layout = match plan.buffers.clone() {
        Some(buffers) => Layout::of(goal, buffers)?,
        None => Layout::plain(goal, plan.scratch())?,
    };
    if u64::from(moves.relay) * u64::from(goal.ranks) > MAX_CELLS {
        let problem = format!(
            "messages in flight would need {} chunks of {} GPUs, more than {MAX_CELLS}; receive them earlier",
            moves.relay, goal.ranks
        );
        return Err(PlanError::whole(problem));
    }
    let layout = layout.with_relay(goal, moves.relay);
    let mut writer = Writer::new(plan, goal, &layout);
    let list = &moves.list;
    // A file that keeps its operations has the waits that its data need, and no others.
    let foreign = plan.buffers.is_none();
    let mut awaited = vec![false; list.len()];
    for &earlier in list.iter().flat_map(|made| moves.waits(made)) {
        awaited[earlier as usize] = foreign;
    }
    let mut positions = vec![0; list.len()];
    let mut first = 0;
    while first < list.len() {
        let group = together(&list[first..]);
        let made = &group[0];
        let same = |other: &&Move| {
            (other.from, other.to, other.reduces) == (made.from, made.to, made.reduces)
        };
        if let Some(other) = group.iter().find(|other| !same(other)) {
            let problem = "op belongs to another transfer; delete <linkwright> and all op";
            return plan.error(other.step, problem);
        }
        let operation = Operation {
            step: made.step,
            mover: match made.own {
                _ if made.from == made.to => Mover::Local,
                Some(own) if own.get => Mover::Get,
                _ => Mover::Put,
            },
            from: made.from,
            to: made.to,
            reduces: made.reduces,
            lane: made.own.map_or(made.tb as u8, |own| own.lane),
            number: made.own.map(|own| own.step),
            hint: made.own.map_or(Hint::None, |own| own.hint),
            fenced: made.own.is_some_and(|own| own.fenced),
            awaited: awaited[first],
        };
        let runs = group.iter().map(|made| (made.src, made.dst, made.count));
        let waits = moves.waits(made).iter().filter(|_| foreign);
        let after = waits.map(|&earlier| positions[earlier as usize]);
        positions[first] = writer.write(&operation, runs, after)?;
        first += group.len();
    }
    writer.finish("the attribute root")
}

/// The first moves that are one operation of the schedule.
fn together(moves: &[Move]) -> &[Move] {
    let op = |made: &Move| made.own.map(|own| own.op);
    let same = |made: &&Move| op(made).is_some() && op(made) == op(&moves[0]);
    &moves[..1 + moves[1..].iter().take_while(same).count()]
}
