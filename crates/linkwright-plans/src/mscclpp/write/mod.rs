//! From a schedule to a plan.
//!
//! Each lane of a rank is a thread block, and each wait of an operation a token between two thread blocks:
//!
//! ```text
//!   thread block of the earlier operation           thread block of the later one
//!     put ... nop signal          -- channel -->      wait nop put ...            of two GPUs
//!     put ... nop sem_release     -- semaphore -->    sem_acquire nop put ...     of one GPU
//! ```
//!
//! Tokens between two thread blocks are counted, so who needs the k-th waits until k have come. A notice of the
//! schedule is such a token by itself. Operations are written in the order of their ids, in which everything can
//! happen, so no circle arises. At the beginning, a GPU tells those that access its buffers that it has begun; at the
//! end, it waits until all have done so.

mod check;
mod data;
mod file;
mod names;
mod tokens;

use super::json::{Channel, ChannelType, File, Gpu, Op};
use super::parse::MAX_UNITS;
use super::plan::{Goal, Layout};
use super::read;
use crate::error::{PlanError, Result};
use crate::express::{self, cannot};
use check::difference;
use linkwright_schedule::ir::{self, Combine, OpKind};
use linkwright_schedule::{transforms, Schedule};
use std::collections::{BTreeMap, BTreeSet};

/// Most operations that are written: of more, reading them again would find more waits than it takes.
const MAX_WRITTEN: usize = 1 << 20;

/// Write a schedule, and read it again: what is returned says what the schedule says.
pub(super) fn write(schedule: &Schedule) -> Result<String> {
    express::check(schedule, MAX_WRITTEN)?;
    let put_reduces = |op: &ir::Op| op.kind == OpKind::Put && op.combine == Combine::Reduce;
    let unfused;
    let schedule = match schedule.ops().iter().any(put_reduces) {
        true => {
            let made = transforms::unfuse(schedule);
            unfused = made.map_err(|error| PlanError::whole(error.to_string()))?;
            &unfused
        }
        false => schedule,
    };
    let file = Writer::new(schedule)?.file()?;
    let mut text =
        serde_json::to_string(&file).map_err(|error| PlanError::whole(error.to_string()))?;
    text.push('\n');
    let back = read(&text).map_err(cannot)?;
    let back = transforms::resized(&back, schedule.elements, schedule.element_bytes);
    let back = back.map_err(cannot)?;
    match difference(schedule, &back) {
        None => Ok(text),
        Some(what) => Err(cannot(what)),
    }
}

/// The plan as it grows.
struct Writer<'a> {
    schedule: &'a Schedule,
    goal: Goal,
    layout: Layout,
    gpus: Vec<Gpu>,
    blocks: Vec<Growing>,
    /// Thread block of each rank and lane.
    numbers: BTreeMap<(u32, u8), u32>,
    /// First thread block of each rank.
    first: Vec<u32>,
    /// Operations that send a token from one thread block to another.
    tokens: BTreeMap<(u32, u32), Vec<u32>>,
    /// The same, by operation: who gets them.
    targets: Vec<Vec<u32>>,
    /// Operations that an operation waits for because of fences, besides its edges.
    fenced: BTreeMap<u32, Vec<u32>>,
    /// Tokens that were sent, and that were waited for.
    sent: BTreeMap<(u32, u32), u32>,
    taken: BTreeMap<(u32, u32), u32>,
    semaphores: BTreeMap<(u32, u32), u32>,
    /// Thread blocks and GPUs whose buffers they have accessed since they signalled them.
    accessed: BTreeSet<(u32, u32)>,
}

/// A thread block as it grows.
struct Growing {
    rank: u32,
    lane: u8,
    ops: Vec<Op>,
    /// Whether something was done since the threads met, and the first operation of the schedule that was.
    open: bool,
    since: Option<u32>,
    /// Channel to another thread block: its place in the list.
    channels: BTreeMap<u32, u32>,
    channel_ids: Vec<u32>,
    buffers: BTreeMap<u32, u32>,
    buffer_ids: Vec<u32>,
}

impl<'a> Writer<'a> {
    fn new(schedule: &'a Schedule) -> Result<Self> {
        let goal = Goal::of(schedule, MAX_UNITS)?;
        let layout = Layout::of(&goal, schedule.buffers.clone())?;
        let [input, output] = goal.lengths();
        let gpu = |id| Gpu {
            id,
            input_chunks: input,
            output_chunks: output,
            scratch_chunks: layout.scratch,
            threadblocks: Vec::new(),
            channels: vec![Channel {
                channel_type: ChannelType::Memory,
                connected_to: Vec::new(),
                _buffer_type: None,
                _rank_groups: None,
            }],
            remote_buffers: Vec::new(),
            semaphores: Vec::new(),
        };
        let mut writer = Writer {
            gpus: (0..schedule.ranks).map(gpu).collect(),
            schedule,
            goal,
            layout,
            blocks: Vec::new(),
            numbers: BTreeMap::new(),
            first: Vec::new(),
            tokens: BTreeMap::new(),
            targets: vec![Vec::new(); schedule.ops().len()],
            fenced: BTreeMap::new(),
            sent: BTreeMap::new(),
            taken: BTreeMap::new(),
            semaphores: BTreeMap::new(),
            accessed: BTreeSet::new(),
        };
        writer.number();
        writer.find_fences();
        writer.find_tokens();
        Ok(writer)
    }

    /// Each lane of a rank is a thread block; a rank without any gets one, to wait in.
    fn number(&mut self) {
        let used = self
            .schedule
            .ops()
            .iter()
            .map(|op| (op.initiator(), op.lane));
        let mut used: BTreeSet<(u32, u8)> = used.collect();
        for rank in 0..self.schedule.ranks {
            if used.range((rank, 0)..=(rank, u8::MAX)).next().is_none() {
                used.insert((rank, 0));
            }
        }
        for (rank, lane) in used {
            let number = self.blocks.len() as u32;
            if self.first.len() as u32 == rank {
                self.first.push(number);
            }
            self.numbers.insert((rank, lane), number);
            self.blocks.push(Growing {
                rank,
                lane,
                ops: Vec::new(),
                open: false,
                since: None,
                channels: BTreeMap::new(),
                channel_ids: Vec::new(),
                buffers: BTreeMap::new(),
                buffer_ids: Vec::new(),
            });
        }
    }

    fn block_of(&self, id: u32) -> u32 {
        let op = &self.schedule.ops()[id as usize];
        self.numbers[&(op.initiator(), op.lane)]
    }

    fn file(mut self) -> Result<File> {
        self.begin();
        let schedule = self.schedule;
        let mut number = 0;
        for (id, op) in (0..).zip(schedule.ops()) {
            self.wait_for(id);
            if op.kind != OpKind::Notice {
                self.data(id, op, number);
                number += 1;
            }
            self.tell(id);
        }
        self.end();
        Ok(self.finished())
    }

    /// Whether two thread blocks are of one GPU.
    fn near(&self, a: u32, b: u32) -> bool {
        self.blocks[a as usize].rank == self.blocks[b as usize].rank
    }

    fn push(&mut self, block: u32, op: Op) {
        let block = &mut self.blocks[block as usize];
        block.ops.push(op);
        block.open = true;
    }
}
