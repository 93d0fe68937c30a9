//! From a plan that is in order to a verified schedule.

use super::events::Events;
use super::json::Hint;
use super::layout::in_place;
use super::plan::{Action, Kind, Move, Plan, Steps};
use crate::error::{PlanError, Result};
use linkwright_schedule::builder::Slot;
use linkwright_schedule::{ir, verify, Builder, Schedule, Shape};

/// Bytes of an element until the schedule is resized.
const ELEMENT_BYTES: u32 = 4;
/// Most waits besides those that data need.
const MAX_WAITS: usize = 1 << 21;

/// The schedule of a plan, with one element for each unit.
pub(super) fn schedule(plan: &Plan, events: &Events) -> Result<Schedule> {
    let shape = Shape {
        element_bytes: ELEMENT_BYTES,
        ..Shape::new(plan.ranks, u64::from(plan.vector)).with_root(plan.spec.root)
    };
    let mut builder = Builder::new(plan.spec.collective, &shape);
    if plan.spec.out_of_place {
        builder.out_of_place();
    }
    let slots = plan
        .layout
        .buffers
        .iter()
        .map(|buffer| builder.buffer(buffer.clone()));
    let slots = slots.collect();
    let waits = waits(plan, events)?;
    let mut writer = Writer {
        plan,
        waits,
        positions: vec![None; plan.ops.len()],
        slots,
        builder,
    };
    writer.all(events)?;
    let schedule = writer.builder.finish();
    let schedule = schedule.map_err(|error| PlanError::whole(error.to_string()))?;
    match verify(&schedule) {
        Ok(_) => Ok(schedule),
        Err(error) => Err(wrong(plan, &error.to_string())),
    }
}

fn wrong(plan: &Plan, problem: &str) -> PlanError {
    let place = if in_place(&plan.spec) {
        " in place"
    } else {
        ""
    };
    let name = plan.spec.collective.name();
    PlanError::whole(format!(
        "the plan does not carry out {name}{place}: {problem}"
    ))
}

/// (operation, the one it waits for) of data operations, in order: the first behind a wait waits for the last before
/// the signal. A plan of ours has the waits that its data need, and no others.
fn waits(plan: &Plan, events: &Events) -> Result<Vec<(u32, u32)>> {
    let mut waits = Vec::new();
    if plan.own {
        return Ok(waits);
    }
    let moves = |op: u32| matches!(plan.ops[op as usize].action, Action::Data(data) if data.moves.0 < data.moves.1);
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

struct Writer<'a> {
    plan: &'a Plan,
    waits: Vec<(u32, u32)>,
    /// Position of the last transfer of an operation.
    positions: Vec<Option<u32>>,
    slots: Vec<Slot>,
    builder: Builder,
}

impl Writer<'_> {
    fn all(&mut self, events: &Events) -> Result<()> {
        let is_data = |node: &u32| {
            let op = self.plan.ops.get(*node as usize);
            op.is_some_and(|op| matches!(op.action, Action::Data(_)))
        };
        let ops: Vec<u32> = events
            .order
            .sequence
            .iter()
            .copied()
            .filter(is_data)
            .collect();
        let mut first = 0;
        while first < ops.len() {
            let count = self.together(&ops[first..]);
            self.operations(&ops[first..first + count])?;
            first += count;
        }
        Ok(())
    }

    /// Number of operations of the plan that are one of the schedule.
    fn together(&self, ops: &[u32]) -> usize {
        let (plan, first) = (self.plan, &self.plan.ops[ops[0] as usize]);
        let same = |op: &&u32| {
            let op = &plan.ops[**op as usize];
            plan.own && op.own.is_some() && (op.own, op.block) == (first.own, first.block)
        };
        ops[1..].iter().take_while(same).count() + 1
    }

    fn operations(&mut self, ops: &[u32]) -> Result<()> {
        let mut moves = Vec::new();
        for &op in ops {
            if let Action::Data(data) = self.plan.ops[op as usize].action {
                moves.extend_from_slice(self.plan.moves(data.moves));
            }
        }
        let mut first = 0;
        while first < moves.len() {
            let same = |made: &&Move| alike(&moves[first], made);
            let mut count = moves[first..].iter().take_while(same).count();
            if !apart(&moves[first..first + count]) {
                count = 1;
            }
            let last = first + count == moves.len();
            self.transfer(ops[0], &moves[first..first + count], first == 0, last)?;
            first += count;
        }
        Ok(())
    }

    /// One operation of the schedule, which moves several ranges.
    fn transfer(&mut self, op: u32, moves: &[Move], is_first: bool, is_last: bool) -> Result<()> {
        let (mut runs, mut buffers) = (Vec::with_capacity(moves.len()), (0, 0));
        for made in moves {
            let layout = &self.plan.layout;
            let src = layout.find(made.src.space, made.src.at, made.count);
            let dst = layout.find(made.dst.space, made.dst.at, made.count);
            let (Some(src), Some(dst)) = (src, dst) else {
                return self.plan.error(
                    op,
                    "does not move whole chunks of one buffer; delete every `linkwright`",
                );
            };
            if src.2 != dst.2 || (!runs.is_empty() && buffers != (src.0, dst.0)) {
                return self.plan.error(
                    op,
                    "moves between buffers that are cut otherwise; delete every `linkwright`",
                );
            }
            buffers = (src.0, dst.0);
            runs.push((src.1, dst.1, src.2));
        }
        let (made, known) = (&moves[0], &self.plan.ops[op as usize]);
        let (src, dst) = (self.slots[buffers.0], self.slots[buffers.1]);
        self.builder.step();
        if let Some(own) = known.own.filter(|_| self.plan.own) {
            self.builder.number(own.step);
        }
        let written = match made.kind {
            Kind::Local => self.builder.local_runs(made.from, src, dst, &runs),
            Kind::Put => self.builder.put_runs(made.from, src, made.to, dst, &runs),
            Kind::Get => self.builder.get_runs(made.from, src, made.to, dst, &runs),
        };
        let mut written = written
            .lane(self.plan.blocks[known.block as usize].lane)
            .hint(known.own.map_or(ir::Hint::None, |own| hint(own.hint)));
        if made.reduces {
            written = written.reduce();
        }
        if self.plan.own && is_first && known.own.is_some_and(|own| own.fenced) {
            written = written.fenced();
        }
        let waits = self.waits.partition_point(|wait| wait.0 < op);
        let waits = self.waits[waits..].iter().take_while(|wait| wait.0 == op);
        for &(_, earlier) in waits.filter(|_| is_first) {
            if let Some(position) = self.positions[earlier as usize] {
                written = written.after(position);
            }
        }
        if is_last && !self.plan.own {
            self.positions[op as usize] = Some(written.position());
        }
        Ok(())
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

fn hint(own: Option<Hint>) -> ir::Hint {
    match own {
        None => ir::Hint::None,
        Some(Hint::PlusX) => ir::Hint::PlusX,
        Some(Hint::MinusX) => ir::Hint::MinusX,
        Some(Hint::PlusY) => ir::Hint::PlusY,
        Some(Hint::MinusY) => ir::Hint::MinusY,
    }
}
