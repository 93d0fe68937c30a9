//! From moves to a verified schedule.

use super::compose::{self, Move, Moves, Spot};
use super::layout::Layout;
use super::limits::MAX_CELLS;
use super::links::Links;
use super::plan::{Cells, Plan, Steps};
use crate::error::{PlanError, Result};
use linkwright_schedule::builder::{Slot, Written};
use linkwright_schedule::{verify, Builder, Schedule, Shape};

/// Bytes of an element until the schedule is resized.
const ELEMENT_BYTES: u32 = 4;

/// The schedule of a plan that can run in `order`, with one element for each chunk.
pub(super) fn schedule(
    plan: &Plan,
    links: &Links,
    cells: &Cells,
    order: &[u32],
) -> Result<Schedule> {
    let moves = compose::moves(plan, links, cells, order);
    let layout = match plan.buffers.clone() {
        Some(buffers) => Layout::of(&plan.head, buffers)?,
        None => Layout::plain(&plan.head, plan.scratch())?,
    };
    if u64::from(moves.relay) * u64::from(plan.head.ranks) > MAX_CELLS {
        let problem = format!(
            "messages in flight would need {} chunks of {} GPUs, more than {MAX_CELLS}; receive them earlier",
            moves.relay, plan.head.ranks
        );
        return Err(PlanError::whole(problem));
    }
    let (relay, layout) = (
        layout.buffers.len(),
        layout.with_relay(&plan.head, moves.relay)?,
    );
    let (builder, slots) = builder(plan, &layout);
    let mut writer = Writer {
        plan,
        moves: &moves,
        layout: &layout,
        relay,
        slots,
        awaited: vec![false; moves.list.len()],
        positions: vec![0; moves.list.len()],
        builder,
    };
    writer.all()?;
    let schedule = writer.builder.finish();
    let schedule = schedule.map_err(|error| PlanError::whole(error.to_string()))?;
    verify(&schedule).map_err(|error| wrong(plan, &error.to_string()))?;
    Ok(schedule)
}

fn wrong(plan: &Plan, problem: &str) -> PlanError {
    let spec = plan.head.spec;
    let place = if plan.head.in_place() {
        " in place"
    } else {
        ""
    };
    let root = match spec.collective.is_rooted() {
        true => format!(
            " with root {} (the attribute root names another)",
            spec.root
        ),
        false => String::new(),
    };
    PlanError::whole(format!(
        "this does not carry out {}{place}{root}: {problem}",
        spec.collective.name()
    ))
}

fn builder(plan: &Plan, layout: &Layout) -> (Builder, Vec<Slot>) {
    let shape = Shape {
        element_bytes: ELEMENT_BYTES,
        ..Shape::new(plan.head.ranks, plan.head.vector()).with_root(plan.head.spec.root)
    };
    let mut builder = Builder::new(plan.head.spec.collective, &shape);
    if plan.head.spec.out_of_place {
        builder.out_of_place();
    }
    let buffers = layout.buffers.iter().cloned();
    let slots = buffers.map(|buffer| builder.buffer(buffer)).collect();
    (builder, slots)
}

/// Writes the operations.
struct Writer<'a> {
    plan: &'a Plan,
    moves: &'a Moves,
    layout: &'a Layout,
    /// Index of the relay buffer.
    relay: usize,
    slots: Vec<Slot>,
    /// Whether a later move waits for this one.
    awaited: Vec<bool>,
    /// Position of the operation of a move.
    positions: Vec<u32>,
    builder: Builder,
}

impl Writer<'_> {
    fn all(&mut self) -> Result<()> {
        let list = &self.moves.list;
        // A file that keeps its operations has the waits that its data need, and no others.
        let foreign = self.plan.buffers.is_none();
        if foreign {
            for awaited in list.iter().flat_map(|made| self.moves.waits(made)) {
                self.awaited[*awaited as usize] = true;
            }
        }
        let mut first = 0;
        while first < list.len() {
            let op = list[first].own.map(|own| own.op);
            let same = |made: &&Move| op.is_some() && made.own.map(|own| own.op) == op;
            let count = 1 + list[first + 1..].iter().take_while(same).count();
            self.operation(first, count, foreign)?;
            first += count;
        }
        Ok(())
    }

    /// The operation of the moves from `first` on.
    fn operation(&mut self, first: usize, count: usize, foreign: bool) -> Result<()> {
        let group = &self.moves.list[first..first + count];
        let made = &group[0];
        let (mut runs, mut buffers) = (Vec::with_capacity(count), None);
        for part in group {
            let (src, dst) = (self.find(part, part.src)?, self.find(part, part.dst)?);
            let same = (part.from, part.to, part.reduces) == (made.from, made.to, made.reduces);
            if src.2 != dst.2 || !same || *buffers.get_or_insert((src.0, dst.0)) != (src.0, dst.0) {
                let problem = "op belongs to another transfer; delete <linkwright> and all op";
                return self.plan.error(part.step, problem);
            }
            runs.push((src.1, dst.1, src.2));
        }
        let (src, dst) = buffers.map_or((0, 0), |buffers| buffers);
        let (src, dst) = (self.slots[src], self.slots[dst]);
        let builder = &mut self.builder;
        builder.step();
        if let Some(own) = made.own {
            builder.number(own.step);
        }
        let get = made.own.is_some_and(|own| own.get);
        let mut written = match (made.from == made.to, get) {
            (true, _) => builder.local_runs(made.from, src, dst, &runs),
            (false, false) => builder.put_runs(made.from, src, made.to, dst, &runs),
            (false, true) => builder.get_runs(made.from, src, made.to, dst, &runs),
        };
        written = match made.own {
            Some(own) if own.fenced => written.lane(own.lane).hint(own.hint).fenced(),
            Some(own) => written.lane(own.lane).hint(own.hint),
            None => written.lane(made.tb as u8),
        };
        if made.reduces {
            written = written.reduce();
        }
        self.positions[first] = waits(
            written,
            self.moves,
            made,
            &self.positions,
            foreign,
            self.awaited[first],
        );
        Ok(())
    }

    fn find(&self, made: &Move, spot: Spot) -> Result<(usize, u32, u32)> {
        let found = match spot {
            Spot::Relay(at) => Some((self.relay, at, made.count)),
            Spot::Plan(place) => self.layout.find(place, made.count),
        };
        match found {
            Some(found) => Ok(found),
            None => {
                let problem = "its chunks are in no buffer of <linkwright>; delete that element";
                self.plan.error(made.step, problem)
            }
        }
    }
}

/// Add the waits of a move; gives its position if it is awaited.
fn waits(
    mut written: Written<'_>,
    moves: &Moves,
    made: &Move,
    positions: &[u32],
    foreign: bool,
    awaited: bool,
) -> u32 {
    let waits = moves.waits(made).iter().filter(|_| foreign);
    for &earlier in waits {
        written = written.after(positions[earlier as usize]);
    }
    match awaited {
        true => written.position(),
        false => 0,
    }
}
