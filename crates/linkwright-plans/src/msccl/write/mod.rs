//! From a schedule to a plan.
//!
//! Each lane from one rank to another gets a connection: a thread block that only sends and one that only
//! receives, on a channel of its own. Local work gets a thread block for each lane. All thread blocks take the
//! operations in the order of the schedule, so every wait leads to an earlier operation and no circle can arise:
//! a full connection waits for an earlier receive, and a dependency for an earlier step. Where one thread block would
//! be too long for the runtime, the connection goes on on another channel.
//!
//! Dependencies come from the chunks alone, as the builder's do. Notices are left out: a receive puts data in place
//! only when its own thread block gets there, so a receiver waits for itself. A fence becomes dependencies on what
//! its rank has sent and done; that data have arrived elsewhere is something that no step can wait for.

mod blocks;
mod operations;

use super::limits::{CHANNELS_WRITTEN, PROTOCOLS};
use super::plan::{Block, Cells, Gpu, Head, Plan, Step};
use crate::divisor::lcm;
use crate::error::{PlanError, Result};
use crate::skeleton::{Goal, Layout};
use linkwright_schedule::ir::{OpKind, MAX_CHUNKS};
use linkwright_schedule::transforms::has_own_waits;
use linkwright_schedule::{Collective, Schedule};
use std::collections::BTreeMap;

/// The plan of a verified schedule.
pub(super) fn plan(schedule: &Schedule) -> Result<Plan> {
    // Dependencies are made from the chunks, so a wait that these do not need would be lost.
    if has_own_waits(schedule).unwrap_or(true) {
        return Err(PlanError::whole(
            "the schedule has waits besides those that its data need; leave them out to write it",
        ));
    }
    let head = head(schedule)?;
    let layout = Layout::of(&head.goal, schedule.buffers.clone())?;
    let [input, output] = head.goal.lengths();
    let gpu = Gpu {
        chunks: [input, output, layout.scratch],
        blocks: 0..0,
    };
    let plan = Plan {
        gpus: vec![gpu; head.goal.ranks as usize],
        blocks: Vec::new(),
        steps: Vec::new(),
        buffers: Some(schedule.buffers.clone()),
        head,
    };
    let cells = plan.cells();
    let mut writer = Writer::new(schedule, plan, layout, cells);
    for (id, op) in (0u32..).zip(schedule.ops()) {
        if op.kind != OpKind::Notice {
            writer.operation(id, op)?;
        }
    }
    writer.finish()
}

/// The head of a plan: chunks so small that every chunk of every buffer is a whole number of them.
fn head(s: &Schedule) -> Result<Head> {
    let mut goal = Goal::of(s, u64::from(MAX_CHUNKS))?;
    let per_rank = match s.spec.collective {
        Collective::Gather | Collective::Scatter => s.ranks,
        _ => 1,
    };
    goal.vector = lcm(u64::from(goal.vector), u64::from(per_rank)) as u32;
    Ok(Head {
        goal,
        chunks: goal.vector / per_rank,
        channels: 1,
        slots: PROTOCOLS[0].slots,
        per_message: 1,
    })
}

/// What a thread block is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    /// Sends to a rank in a lane.
    Send(u32, u8),
    /// Receives from a rank in a lane of that rank.
    Recv(u32, u8),
    /// Local work in a lane.
    Local(u8),
}

/// A thread block while it is written.
struct Written {
    block: Block,
    steps: Vec<Step>,
    /// For each thread block of the GPU, how many of its steps are known to be done.
    known: Vec<u32>,
}

/// A step, by its thread block on a GPU and its place there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct At {
    tb: u32,
    step: u32,
}

struct Writer<'a> {
    schedule: &'a Schedule,
    plan: Plan,
    layout: Layout,
    cells: Cells,
    /// Thread blocks by GPU.
    blocks: Vec<Vec<Written>>,
    /// The thread block that serves a purpose now, by GPU.
    serving: BTreeMap<(u32, Purpose), u32>,
    /// Channels taken from one rank to another.
    taken: BTreeMap<(u32, u32), u32>,
    /// Thread blocks that send, and that receive, on each channel of each GPU.
    on_channel: Vec<[[u32; 2]; CHANNELS_WRITTEN as usize]>,
    writers: Vec<Option<At>>,
    readers: Vec<Vec<At>>,
    /// What must be done before anything that a GPU sends or does now.
    fences: Vec<Vec<At>>,
}

impl<'a> Writer<'a> {
    fn new(schedule: &'a Schedule, plan: Plan, layout: Layout, cells: Cells) -> Self {
        let ranks = schedule.ranks as usize;
        Writer {
            schedule,
            plan,
            layout,
            blocks: (0..ranks).map(|_| Vec::new()).collect(),
            serving: BTreeMap::new(),
            taken: BTreeMap::new(),
            on_channel: vec![Default::default(); ranks],
            writers: vec![None; cells.count()],
            readers: vec![Vec::new(); cells.count()],
            fences: vec![Vec::new(); ranks],
            cells,
        }
    }
}
