//! A timed plan as a schedule.
//!
//! Operations are written in the order of their times, so each lane issues in this order. Every receiver of a sender
//! has a lane: what goes to one waits for nothing that goes to another. With fewer lanes than receivers, receivers
//! share them in turn.
//!
//! Of several contributions to a chunk at one rank, the first is combined where it lands. Others land in scratch of
//! their own and are combined from there, so that no sender waits until another one's contribution is in.
//!
//! To relay over a memory, one rank writes there and others read. Only data that spread, or have one receiver, go
//! there.

use super::order::Timed;
use super::plan::Plan;
use super::wires::Wires;
use crate::Result;
use linkwright_schedule::builder::{Builder, Slot};
use linkwright_schedule::ir::{Buffer, Schedule};
use linkwright_schedule::{Collective, Shape};
use std::collections::btree_map::{BTreeMap, Entry};

/// Most scratch buffers for contributions of any size, and of small vectors; more contributions at once are combined
/// where they land, one after another.
const LAYERS: (usize, usize) = (8, 64);
/// Bytes of scratch beyond which a rank has no more than the first number of buffers.
const SCRATCH_BYTES: u64 = 256 << 20;

/// What is done at a moment: a transfer, or the combination of what one has left in scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Combine(u32),
    Send(u32),
}

/// The schedule of `plan` for `collective`, with at most `lanes` lanes a rank.
pub fn schedule(
    (collective, shape): (Collective, &Shape),
    wires: &Wires,
    (plan, timed): (&Plan, &Timed),
    lanes: u32,
) -> Result<Schedule> {
    let bytes = shape.elements * u64::from(shape.element_bytes);
    let room = (SCRATCH_BYTES / bytes.max(1)) as usize;
    let layer = layers(wires, (plan, timed), room.clamp(LAYERS.0, LAYERS.1));
    let mut acts: Vec<(u64, Act)> = Vec::with_capacity(plan.tasks.len());
    for id in 0..plan.tasks.len() as u32 {
        acts.push((timed.start_ps[id as usize], Act::Send(id)));
        if layer[id as usize] > 0 {
            acts.push((timed.arrival_ps[id as usize], Act::Combine(id)));
        }
    }
    acts.sort_unstable();
    let mut writer = Writer::new(collective, shape, wires, plan, lanes);
    writer.scratch(layer.iter().copied().max().unwrap_or(0));
    for (_, act) in acts {
        match act {
            Act::Send(id) => writer.send(plan, id, layer[id as usize]),
            Act::Combine(id) => writer.combine(plan, id, layer[id as usize]),
        }
    }
    Ok(writer.b.finish()?)
}

/// By task, the layer of scratch in which it lands, counted from 1; 0: in place. A layer serves the next contribution
/// once the one before has been combined.
fn layers(wires: &Wires, (plan, timed): (&Plan, &Timed), most: usize) -> Vec<u32> {
    let mut by_start: Vec<u32> = (0..plan.tasks.len() as u32).collect();
    by_start.sort_by_key(|&id| (timed.start_ps[id as usize], id));
    // By rank and chunk: when each layer is free again.
    let mut taken: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    let mut layer = vec![0; plan.tasks.len()];
    for id in by_start {
        let task = plan.tasks[id as usize];
        if !task.reduce {
            continue;
        }
        let (start, arrival) = (timed.start_ps[id as usize], timed.arrival_ps[id as usize]);
        let rank = wires.pair(task.pair).to;
        let free_at = match taken.entry((rank, task.chunk)) {
            Entry::Vacant(first) => {
                first.insert(Vec::new());
                continue;
            }
            Entry::Occupied(others) => others.into_mut(),
        };
        match free_at.iter().position(|&at| at < start) {
            Some(free) => {
                free_at[free] = arrival;
                layer[id as usize] = free as u32 + 1;
            }
            None if free_at.len() < most => {
                free_at.push(arrival);
                layer[id as usize] = free_at.len() as u32;
            }
            None => {}
        }
    }
    layer
}

struct Writer<'a> {
    b: Builder,
    wires: &'a Wires,
    shape: &'a Shape,
    collective: Collective,
    slices: u32,
    input: Option<Slot>,
    output: Slot,
    scratch: Vec<Slot>,
    relay: Option<Slot>,
    /// By memory, where it keeps what it relays.
    memories: Vec<Slot>,
    /// Slot of each relayed block by endpoint and block.
    relayed: BTreeMap<(u32, u32), u32>,
    /// Lane of each pair.
    lane: Vec<u8>,
    cut: Buffer,
}

impl<'a> Writer<'a> {
    fn new(
        collective: Collective,
        shape: &'a Shape,
        wires: &'a Wires,
        plan: &Plan,
        lanes: u32,
    ) -> Self {
        let mut b = Builder::new(collective, shape);
        let p = shape.ranks;
        let sliced = |buffer: Buffer| Buffer {
            slices: plan.slices,
            ..buffer
        };
        let (vector, block) = (
            |name: &str| sliced(Buffer::vector(name, p)),
            |name: &str| sliced(Buffer::block(name, p)),
        );
        let (input, cut) = match collective {
            Collective::Alltoall => (Some(vector("input")), vector("output")),
            Collective::Scatter => (Some(vector("input").only_at(shape.root)), block("output")),
            Collective::Gather => (Some(block("input")), vector("output").only_at(shape.root)),
            _ => (None, sliced(Buffer::vector("output", plan.blocks))),
        };
        let input = input.map(|input| b.buffer(input));
        let output = b.buffer(cut.clone());
        let mut writer = Writer {
            b,
            wires,
            shape,
            collective,
            slices: plan.slices,
            input,
            output,
            scratch: Vec::new(),
            relay: None,
            memories: Vec::new(),
            relayed: BTreeMap::new(),
            lane: plan.lanes(wires, lanes),
            cut,
        };
        match input.is_some() {
            true => {
                writer.make_relay(plan);
                writer.own();
            }
            false => writer.make_copies(plan),
        }
        writer
    }

    fn scratch(&mut self, layers: u32) {
        for layer in 0..layers {
            let name = match layer {
                0 => "scratch".to_string(),
                n => format!("scratch{n}"),
            };
            let like = Buffer {
                name,
                ..self.cut.clone()
            };
            self.scratch.push(self.b.buffer(like));
        }
    }

    /// Room for the blocks that endpoints relay, as many as the busiest one has.
    fn make_relay(&mut self, plan: &Plan) {
        let p = self.shape.ranks;
        let mut used = vec![0; self.wires.endpoints() as usize];
        for task in &plan.tasks {
            let (at, block) = (self.wires.pair(task.pair).to, task.chunk / plan.slices);
            if at != block % p && !self.relayed.contains_key(&(at, block)) {
                self.relayed.insert((at, block), used[at as usize]);
                used[at as usize] += 1;
            }
        }
        let of = |name: &str, blocks: u32| Buffer {
            mul: blocks,
            div: p,
            blocks,
            slices: plan.slices,
            ..Buffer::block(name, p)
        };
        let (ranks, memories) = used.split_at(p as usize);
        let most = ranks.iter().copied().max().unwrap_or(0);
        if most > 0 {
            self.relay = Some(self.b.buffer(of("relay", most)));
        }
        let last = memories.iter().rposition(|&blocks| blocks > 0);
        for (memory, &blocks) in memories[..last.map_or(0, |last| last + 1)]
            .iter()
            .enumerate()
        {
            let at = self.b.memory();
            let buffer = of(&format!("memory{memory}"), blocks.max(1)).only_at(at);
            self.memories.push(self.b.buffer(buffer));
        }
    }

    /// A copy of the vector in each memory that a plan uses.
    fn make_copies(&mut self, plan: &Plan) {
        let p = self.shape.ranks;
        let receivers = plan.tasks.iter().map(|task| self.wires.pair(task.pair).to);
        for memory in 0..receivers
            .max()
            .map_or(0, |last| (last + 1).saturating_sub(p))
        {
            let at = self.b.memory();
            let name = format!("memory{memory}");
            let copy = Buffer {
                name,
                ..self.cut.clone()
            };
            self.memories.push(self.b.buffer(copy.only_at(at)));
        }
    }

    /// The buffer of `endpoint`, if it is a memory.
    fn memory(&self, endpoint: u32) -> Option<Slot> {
        let memory = endpoint.checked_sub(self.shape.ranks)?;
        Some(self.memories[memory as usize])
    }

    /// What a rank has for itself.
    fn own(&mut self) {
        let all = 0..self.shape.ranks;
        let ranks = match self.collective {
            Collective::Alltoall => all,
            _ => self.shape.root..self.shape.root + 1,
        };
        self.b.step();
        for rank in ranks {
            let block = rank * self.shape.ranks + rank;
            let (input, output) = (self.source(rank, block), self.target(rank, block));
            let count = self.slices;
            self.b.local(
                rank,
                input.0.chunks(input.1 * count, count),
                output.0.chunks(output.1 * count, count),
            );
        }
    }

    /// Buffer and block from which `rank` sends a block (sender * ranks + receiver).
    fn source(&self, rank: u32, block: u32) -> (Slot, u32) {
        let (from, to) = (block / self.shape.ranks, block % self.shape.ranks);
        if let Some(memory) = self.memory(rank) {
            let place = self.relayed.get(&(rank, block));
            return (memory, place.copied().unwrap_or(block));
        }
        match (self.input, rank == from) {
            (None, _) => (self.output, block),
            (Some(input), true) if self.collective == Collective::Gather => (input, 0),
            (Some(input), true) => (input, to),
            (Some(_), false) => (
                self.relay.expect("somebody relays"),
                self.relayed[&(rank, block)],
            ),
        }
    }

    /// Buffer and block in which `rank` receives a block.
    fn target(&self, rank: u32, block: u32) -> (Slot, u32) {
        let (from, to) = (block / self.shape.ranks, block % self.shape.ranks);
        if self.memory(rank).is_some() {
            return self.source(rank, block);
        }
        match self.input {
            None => (self.output, block),
            Some(_) if rank != to => (
                self.relay.expect("somebody relays"),
                self.relayed[&(rank, block)],
            ),
            Some(_) if self.collective == Collective::Scatter => (self.output, 0),
            Some(_) => (self.output, from),
        }
    }

    fn send(&mut self, plan: &Plan, id: u32, layer: u32) {
        let task = plan.tasks[id as usize];
        let pair = self.wires.pair(task.pair);
        let (block, slice) = (task.chunk / self.slices, task.chunk % self.slices);
        let (source, target) = (self.source(pair.from, block), self.target(pair.to, block));
        let src = source.0.at(source.1 * self.slices + slice);
        let dst = target.1 * self.slices + slice;
        let lane = self.lane[task.pair as usize];
        self.b.step();
        if layer > 0 {
            let scratch = self.scratch[layer as usize - 1].at(dst);
            self.b.put(pair.from, src, pair.to, scratch).lane(lane);
            return;
        }
        if pair.from >= self.shape.ranks {
            let get = self.b.get(pair.from, src, pair.to, target.0.at(dst));
            get.lane(lane);
            return;
        }
        let put = self.b.put(pair.from, src, pair.to, target.0.at(dst));
        let put = put.lane(lane);
        if task.reduce {
            put.reduce();
        }
    }

    fn combine(&mut self, plan: &Plan, id: u32, layer: u32) {
        let task = plan.tasks[id as usize];
        let rank = self.wires.pair(task.pair).to;
        let scratch = self.scratch[layer as usize - 1].at(task.chunk);
        self.b.step();
        self.b
            .local(rank, scratch, self.output.at(task.chunk))
            .reduce();
    }
}
