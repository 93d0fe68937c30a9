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

use super::cells::Cells;
use super::layout::Layout;
use super::limits::*;
use super::plan::{Block, Gpu, Head, Kind, Own, Place, Plan, Space, Step, COLLECTIVES};
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::{Buffer, Combine, Op, OpKind, MAX_CHUNKS};
use linkwright_schedule::{Collective, Schedule};
use std::collections::BTreeMap;

/// The plan of a verified schedule.
pub(super) fn plan(schedule: &Schedule) -> Result<Plan> {
    let head = head(schedule)?;
    let layout = Layout::of(&head, schedule.buffers.clone())?;
    let [input, output] = head.lengths().map(|length| length as u32);
    let gpu = Gpu {
        chunks: [input, output, layout.scratch],
        blocks: 0..0,
    };
    let plan = Plan {
        gpus: vec![gpu; head.ranks as usize],
        blocks: Vec::new(),
        steps: Vec::new(),
        buffers: Some(schedule.buffers.clone()),
        head,
    };
    let cells = Cells::of_plan(&plan);
    let mut writer = Writer::new(schedule, plan, layout, cells);
    for (id, op) in (0u32..).zip(schedule.ops()) {
        if op.kind != OpKind::Notice {
            writer.operation(id, op)?;
        }
    }
    writer.finish()
}

/// Refuse operation `id`.
fn refuse<T>(id: u32, op: &Op, problem: &str) -> Result<T> {
    let place = format!(
        "operation t{id} of step {} at rank {}",
        op.step,
        op.initiator()
    );
    Err(PlanError::at(place, problem))
}

/// The head of a plan: chunks so small that every chunk of every buffer is a whole number of them.
fn head(s: &Schedule) -> Result<Head> {
    let refuse = |problem: String| Err(PlanError::whole(problem));
    let name = s.spec.collective.name();
    if !COLLECTIVES.iter().any(|known| known.1 == s.spec.collective) {
        return refuse(format!("the format has no {name}; export it as lw"));
    }
    if s.memories > 0 {
        return refuse(format!(
            "the schedule has {} memories, and the format knows only GPUs; use an algorithm without",
            s.memories
        ));
    }
    if s.spec.repeats != 1 {
        return refuse(format!(
            "{name} runs {} times; export the schedule of one run",
            s.spec.repeats
        ));
    }
    let mut vector = 1;
    for buffer in &s.buffers {
        vector = lcm(vector, parts(buffer));
        if vector > u64::from(MAX_CHUNKS) {
            return refuse(format!(
                "buffer {} is cut so that a vector would have more than {MAX_CHUNKS} chunks; cut buffers alike",
                buffer.name
            ));
        }
    }
    let per_rank = match s.spec.collective {
        Collective::Gather | Collective::Scatter => u64::from(s.ranks),
        _ => 1,
    };
    Ok(Head {
        spec: s.spec,
        ranks: s.ranks,
        chunks: (lcm(vector, per_rank) / per_rank) as u32,
        channels: 1,
        slots: PROTOCOLS[0].slots,
        per_message: 1,
    })
}

/// Into how many parts a vector must be cut so that chunks of `buffer` are whole numbers of them.
fn parts(buffer: &Buffer) -> u64 {
    let parts = u64::from(buffer.div) * u64::from(buffer.blocks) * u64::from(buffer.slices);
    parts / gcd(parts, u64::from(buffer.mul))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn lcm(a: u64, b: u64) -> u64 {
    a / gcd(a, b) * b
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

    fn operation(&mut self, id: u32, op: &Op) -> Result<()> {
        let problem = match op.kind {
            OpKind::Multicast => {
                "is a multicast, and a thread block sends to one GPU; unfuse it into puts"
            }
            OpKind::Compute => {
                "computes, and the format has no arithmetic of its own; leave it out"
            }
            OpKind::Barrier => "is a barrier, which the format lacks; let the data order the ranks",
            OpKind::Fence => {
                "is a fence, which the format lacks; wait for single operations instead"
            }
            OpKind::Put | OpKind::Get if op.from == op.to => "sends to itself; make it local",
            _ => {
                if op.fenced {
                    self.fence(op.initiator());
                }
                return self.pieces(id, op);
            }
        };
        refuse(id, op, problem)
    }

    /// What `gpu` sends or does from now on comes after what it has sent and done so far.
    fn fence(&mut self, gpu: u32) {
        let blocks = self.blocks[gpu as usize].iter();
        let ends = blocks
            .filter(|b| b.block.recv.is_none())
            .filter(|b| !b.steps.is_empty());
        self.fences[gpu as usize] = ends
            .map(|b| At {
                tb: b.block.tb,
                step: b.steps.len() as u32 - 1,
            })
            .collect();
    }

    /// Write an operation as one step, or pair of steps, for each run of chunks that the runtime can count.
    fn pieces(&mut self, id: u32, op: &Op) -> Result<()> {
        let ranges: Vec<_> = self.schedule.chunk_ranges(op).collect();
        for (src, dst, count) in ranges.into_iter().filter(|range| range.2 > 0) {
            let (src, units) = self.layout.place(op.src_buffer.0 as usize, src, count);
            let (dst, other) = self.layout.place(op.dst_buffer.0 as usize, dst, count);
            if units != other {
                return refuse(
                    id,
                    op,
                    "moves between chunks of two lengths; cut the buffers alike",
                );
            }
            let mut done = 0;
            while done < units {
                let count = (units - done).min(COUNT_WRITTEN - 1);
                let shift = |place: Place| Place {
                    at: place.at + done,
                    ..place
                };
                self.piece(id, op, shift(src), shift(dst), count)?;
                done += count;
            }
        }
        Ok(())
    }

    fn piece(&mut self, id: u32, op: &Op, src: Place, dst: Place, count: u32) -> Result<()> {
        let reduces = op.combine == Combine::Reduce;
        let own = Own {
            op: id,
            step: op.step,
            lane: op.lane,
            hint: op.hint,
            get: op.kind == OpKind::Get,
            fenced: op.fenced,
        };
        let step = |kind, src| Step {
            kind,
            src,
            dst,
            count,
            after: None,
            announced: false,
            own: Some(own),
        };
        if op.kind == OpKind::Local {
            let kind = if reduces { Kind::Reduce } else { Kind::Copy };
            return self.local(id, op, step(kind, src));
        }
        let (kind, from) = match reduces {
            true => (Kind::RecvReduceCopy, dst),
            false => (Kind::Recv, dst),
        };
        self.message(id, op, step(Kind::Send, src), step(kind, from))
    }

    fn local(&mut self, id: u32, op: &Op, step: Step) -> Result<()> {
        let purpose = (op.from, Purpose::Local(op.lane));
        let waits = match self.serving.get(&purpose) {
            Some(&tb) => self.waits(op.from, tb, &step),
            None => Vec::new(),
        };
        let tb = match self.serving.get(&purpose) {
            Some(&tb) if self.has_room(op.from, tb, &waits) => tb,
            _ => {
                let tb = self.open(id, op, op.from, None, None, 0)?;
                self.serving.insert(purpose, tb);
                tb
            }
        };
        self.append(op.from, tb, step);
        Ok(())
    }

    fn message(&mut self, id: u32, op: &Op, send: Step, recv: Step) -> Result<()> {
        let ends = [
            (op.from, Purpose::Send(op.to, op.lane), send),
            (op.to, Purpose::Recv(op.from, op.lane), recv),
        ];
        let serving = ends.map(|(gpu, purpose, _)| self.serving.get(&(gpu, purpose)).copied());
        let fits = ends.iter().zip(serving).all(|(&(gpu, _, step), tb)| {
            tb.is_some_and(|tb| self.has_room(gpu, tb, &self.waits(gpu, tb, &step)))
        });
        if !fits {
            let channel = self.channel(id, op)?;
            let sender = self.open(id, op, op.from, Some(op.to), None, channel)?;
            let receiver = self.open(id, op, op.to, None, Some(op.from), channel)?;
            self.serving.insert((op.from, ends[0].1), sender);
            self.serving.insert((op.to, ends[1].1), receiver);
        }
        for (gpu, purpose, step) in ends {
            let tb = self.serving[&(gpu, purpose)];
            self.append(gpu, tb, step);
        }
        Ok(())
    }

    /// A channel that has room for a further connection between the ranks of `op`.
    fn channel(&mut self, id: u32, op: &Op) -> Result<u32> {
        let next = self.taken.entry((op.from, op.to)).or_insert(0);
        for channel in *next..CHANNELS_WRITTEN {
            let sends = &mut self.on_channel[op.from as usize][channel as usize][0];
            if *sends >= BLOCKS_ON_CHANNEL {
                continue;
            }
            let before = *sends;
            let receives = &mut self.on_channel[op.to as usize][channel as usize][1];
            if *receives >= BLOCKS_ON_CHANNEL {
                continue;
            }
            *receives += 1;
            self.on_channel[op.from as usize][channel as usize][0] = before + 1;
            *next = channel + 1;
            self.plan.head.channels = self.plan.head.channels.max(channel + 1);
            return Ok(channel);
        }
        let problem = format!(
            "would need more than {CHANNELS_WRITTEN} channels, and the runtime has no more; use fewer steps"
        );
        refuse(id, op, &problem)
    }

    fn open(
        &mut self,
        id: u32,
        op: &Op,
        gpu: u32,
        send: Option<u32>,
        recv: Option<u32>,
        channel: u32,
    ) -> Result<u32> {
        let blocks = &mut self.blocks[gpu as usize];
        let tb = blocks.len() as u32;
        if blocks.len() >= BLOCKS_WRITTEN {
            let problem = format!(
                "would be in thread block {tb} of gpu {gpu}, and the runtime has {BLOCKS_WRITTEN}; use fewer peers \
                 or steps"
            );
            return refuse(id, op, &problem);
        }
        blocks.push(Written {
            block: Block {
                gpu,
                tb,
                send,
                recv,
                channel,
                steps: 0..0,
            },
            steps: Vec::new(),
            known: Vec::new(),
        });
        Ok(tb)
    }

    fn has_room(&self, gpu: u32, tb: u32, waits: &[At]) -> bool {
        let steps = self.blocks[gpu as usize][tb as usize].steps.len();
        steps + waits.len().max(1) <= STEPS_WRITTEN as usize
    }

    /// The steps of other thread blocks that `step` in thread block `tb` must wait for: the last of each.
    fn waits(&self, gpu: u32, tb: u32, step: &Step) -> Vec<At> {
        let known = &self.blocks[gpu as usize][tb as usize].known;
        let mut waits: Vec<At> = Vec::new();
        let mut need = |earlier: At| {
            let done = known.get(earlier.tb as usize).copied().unwrap_or(0);
            if earlier.tb == tb || earlier.step < done {
                return;
            }
            match waits.iter_mut().find(|wait| wait.tb == earlier.tb) {
                Some(wait) => wait.step = wait.step.max(earlier.step),
                None => waits.push(earlier),
            }
        };
        if !step.kind.receives() {
            self.fences[gpu as usize].iter().for_each(|&end| need(end));
        }
        for (cell, writes) in self.accesses(gpu, step) {
            self.writers[cell].iter().for_each(|&writer| need(writer));
            if writes {
                self.readers[cell].iter().for_each(|&reader| need(reader));
            }
        }
        waits
    }

    /// Cells that a step touches, and whether it writes them.
    fn accesses(&self, gpu: u32, step: &Step) -> impl Iterator<Item = (usize, bool)> + use<> {
        let range = |used: bool, place: Place| {
            let first = if used {
                self.cells.of(&self.plan.head, gpu, place)
            } else {
                0
            };
            first as usize..(first + if used { step.count } else { 0 }) as usize
        };
        let read = range(step.kind.reads(), step.src).map(|cell| (cell, false));
        let written = range(step.kind.writes(), step.dst).map(|cell| (cell, true));
        read.chain(written)
    }

    /// Put a step at the end of a thread block, with a nop for each wait beyond the first.
    fn append(&mut self, gpu: u32, tb: u32, step: Step) {
        let waits = self.waits(gpu, tb, &step);
        for wait in &waits {
            let blocks = &mut self.blocks[gpu as usize];
            blocks[wait.tb as usize].steps[wait.step as usize].announced = true;
            let known = &mut blocks[tb as usize].known;
            if known.len() <= wait.tb as usize {
                known.resize(wait.tb as usize + 1, 0);
            }
            known[wait.tb as usize] = wait.step + 1;
        }
        let steps = &mut self.blocks[gpu as usize][tb as usize].steps;
        let nowhere = Place {
            space: Space::Input,
            at: 0,
        };
        let (last, earlier) = match waits.split_last() {
            Some((last, earlier)) => (Some((last.tb, last.step)), earlier),
            None => (None, &[][..]),
        };
        steps.extend(earlier.iter().map(|wait| Step {
            kind: Kind::Nop,
            src: nowhere,
            dst: nowhere,
            count: 0,
            after: Some((wait.tb, wait.step)),
            announced: false,
            own: None,
        }));
        // The runtime joins reductions into one place, and counts chunks once for all; an announced one stands alone.
        if let Some(before) = steps
            .last_mut()
            .filter(|before| before.kind == Kind::Reduce)
        {
            before.announced |= before.count != step.count;
        }
        steps.push(Step {
            after: last,
            ..step
        });
        let at = At {
            tb,
            step: steps.len() as u32 - 1,
        };
        for (cell, writes) in self.accesses(gpu, &step) {
            match writes {
                false => self.readers[cell].push(at),
                true => {
                    self.readers[cell].clear();
                    self.writers[cell] = Some(at);
                }
            }
        }
    }

    fn finish(mut self) -> Result<Plan> {
        for (id, blocks) in self.blocks.into_iter().enumerate() {
            let first = self.plan.blocks.len() as u32;
            let nodes = 2 + blocks.len() + blocks.iter().map(|b| b.steps.len()).sum::<usize>();
            if nodes > NODES_WRITTEN {
                return Err(PlanError::whole(format!(
                    "gpu {id} would have {nodes} elements, and the runtime reads {NODES_WRITTEN}; use fewer steps"
                )));
            }
            for mut written in blocks {
                let start = self.plan.steps.len() as u32;
                self.plan.steps.append(&mut written.steps);
                written.block.steps = start..self.plan.steps.len() as u32;
                self.plan.blocks.push(written.block);
            }
            self.plan.gpus[id].blocks = first..self.plan.blocks.len() as u32;
        }
        Ok(self.plan)
    }
}
