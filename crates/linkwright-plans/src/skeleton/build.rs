//! Write ordered moves as a verified schedule.

use super::{Goal, Layout, Place, Steps};
use crate::error::{PlanError, Result};
use linkwright_schedule::builder::Slot;
use linkwright_schedule::ir::Hint;
use linkwright_schedule::{verify, Builder, Schedule, Shape};

/// Bytes of an element until the schedule is resized.
const ELEMENT_BYTES: u32 = 4;

/// Which side moves the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mover {
    Put,
    Get,
    Local,
}

/// One operation of the schedule.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    /// The step of the plan that it comes from.
    pub step: u32,
    pub mover: Mover,
    pub from: u32,
    pub to: u32,
    pub reduces: bool,
    pub lane: u8,
    /// The author's step number, if the file keeps it.
    pub number: Option<u32>,
    pub hint: Hint,
    pub fenced: bool,
    /// Whether other operations wait for it.
    pub awaited: bool,
}

/// Writes the operations of a plan, with one element for each part of its vector.
pub(crate) struct Writer<'a, P> {
    plan: &'a P,
    goal: &'a Goal,
    layout: &'a Layout,
    slots: Vec<Slot>,
    builder: Builder,
}

impl<'a, P: Steps> Writer<'a, P> {
    pub fn new(plan: &'a P, goal: &'a Goal, layout: &'a Layout) -> Self {
        let shape = Shape {
            element_bytes: ELEMENT_BYTES,
            ..Shape::new(goal.ranks, u64::from(goal.vector)).with_root(goal.spec.root)
        };
        let mut builder = Builder::new(goal.spec.collective, &shape);
        if goal.spec.out_of_place {
            builder.out_of_place();
        }
        let buffers = layout.buffers.iter().cloned();
        Writer {
            plan,
            goal,
            layout,
            slots: buffers.map(|buffer| builder.buffer(buffer)).collect(),
            builder,
        }
    }

    /// Write an operation that waits for those at the positions `after`. Each of its runs is (source, destination,
    /// number of parts). Returns its own position if it is awaited, else 0.
    pub fn write(
        &mut self,
        op: &Operation,
        runs: impl Iterator<Item = (Place, Place, u32)>,
        after: impl Iterator<Item = u32>,
    ) -> Result<u32> {
        let (mut chunks, mut buffers) = (Vec::new(), None);
        for (src, dst, count) in runs {
            let (src, dst) = (self.layout.find(src, count), self.layout.find(dst, count));
            let (Some(src), Some(dst)) = (src, dst) else {
                let problem = "its chunks are not whole chunks of one buffer of `linkwright`; delete that everywhere";
                return self.plan.error(op.step, problem);
            };
            if src.2 != dst.2 || *buffers.get_or_insert((src.0, dst.0)) != (src.0, dst.0) {
                let problem = "moves between buffers that are cut otherwise, or belongs to another operation; delete \
                               `linkwright` everywhere";
                return self.plan.error(op.step, problem);
            }
            chunks.push((src.1, dst.1, src.2));
        }
        let (src, dst) = buffers.map_or((0, 0), |buffers| buffers);
        let (src, dst) = (self.slots[src], self.slots[dst]);
        let builder = &mut self.builder;
        builder.step();
        if let Some(number) = op.number {
            builder.number(number);
        }
        let mut written = match op.mover {
            Mover::Local => builder.local_runs(op.from, src, dst, &chunks),
            Mover::Put => builder.put_runs(op.from, src, op.to, dst, &chunks),
            Mover::Get => builder.get_runs(op.from, src, op.to, dst, &chunks),
        };
        written = written.lane(op.lane).hint(op.hint);
        if op.fenced {
            written = written.fenced();
        }
        if op.reduces {
            written = written.reduce();
        }
        for earlier in after {
            written = written.after(earlier);
        }
        Ok(match op.awaited {
            true => written.position(),
            false => 0,
        })
    }

    /// Verify that the schedule achieves the goal, and return it; `root` names the field of the file with the root.
    pub fn finish(self, root: &str) -> Result<Schedule> {
        let schedule = self.builder.finish();
        let schedule = schedule.map_err(|error| PlanError::whole(error.to_string()))?;
        let spec = &self.goal.spec;
        verify(&schedule).map_err(|error| {
            let place = if self.goal.in_place() {
                " in place"
            } else {
                ""
            };
            let root = match spec.collective.is_rooted() {
                true => format!(" with root {} ({root} names another)", spec.root),
                false => String::new(),
            };
            let name = spec.collective.name();
            PlanError::whole(format!(
                "this does not carry out {name}{place}{root}: {error}"
            ))
        })?;
        Ok(schedule)
    }
}
