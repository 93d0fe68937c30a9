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

use super::json::{
    Block, BlockBuffers, BlockChannels, Channel, ChannelType, Chunks, File, Gpu, Hint, Name, Op,
    Own, OwnBuffer, OwnOp, ReduceOp, RemoteBuffer, Semaphore, Space,
};
use super::layout::{in_place, Layout, Sizes, MAX_UNITS};
use super::parse::gcd;
use super::read;
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::{self, Combine, OpKind, Owner};
use linkwright_schedule::{transforms, Collective, Schedule, Spec};
use std::collections::{BTreeMap, BTreeSet};

/// Threads of a thread block, the executor's own default.
const THREADS: u32 = 1024;
/// Bytes to which the executor aligns chunks, its own default.
const ALIGNMENT: u32 = 16;

/// Write a schedule, and read it again: what is returned says what the schedule says.
pub(super) fn write(schedule: &Schedule) -> Result<String> {
    expressible(schedule)?;
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
    let back = read(&text).map_err(|error| cannot(&error.to_string()))?;
    let back = transforms::resized(&back, schedule.elements, schedule.element_bytes);
    let back = back.map_err(|error| cannot(&error.to_string()))?;
    match difference(schedule, &back) {
        None => Ok(text),
        Some(what) => Err(cannot(&what)),
    }
}

fn cannot(what: &str) -> PlanError {
    PlanError::whole(format!("the format cannot express this schedule: {what}"))
}

/// Refuse what no operation of the format does.
fn expressible(schedule: &Schedule) -> Result<()> {
    let spec = &schedule.spec;
    if matches!(spec.collective, Collective::Barrier | Collective::Pattern) {
        return Err(cannot(&format!(
            "{} is none of its collectives",
            spec.collective.name()
        )));
    }
    if spec.repeats > 1 {
        return Err(cannot(&format!(
            "it runs {} times; write it once",
            spec.repeats
        )));
    }
    if schedule.memories > 0 {
        return Err(cannot("it has memories that are no GPUs"));
    }
    for (id, op) in schedule.ops().iter().enumerate() {
        let what = match op.kind {
            OpKind::Multicast => "is a multicast; the plan would need a switch",
            OpKind::Compute => "computes",
            OpKind::Barrier => "is a barrier of ranks",
            OpKind::Fence => "is a fence",
            _ => continue,
        };
        return Err(cannot(&format!("operation t{id} {what}")));
    }
    Ok(())
}

/// What the plan does not say of `schedule`, which became `back`.
fn difference(schedule: &Schedule, back: &Schedule) -> Option<String> {
    if (schedule.spec, &schedule.buffers) != (back.spec, &back.buffers) {
        return Some("its buffers or what it is to achieve would change".to_string());
    }
    let (ops, others) = (schedule.ops(), back.ops());
    for id in 0..ops.len().max(others.len()) {
        let (Some(op), Some(other)) = (ops.get(id), others.get(id)) else {
            return Some(format!(
                "{} operations would become {}",
                ops.len(),
                others.len()
            ));
        };
        let same = ir::Op {
            src: other.src,
            dst: other.dst,
            count: other.count,
            scattered: other.scattered,
            ..*op
        } == *other
            && schedule.chunk_ranges(op).eq(back.chunk_ranges(other))
            && schedule.after(id as u32) == back.after(id as u32);
        if !same {
            return Some(format!(
                "operation t{id} would change; it has waits that its data do not need, or needless ranges"
            ));
        }
    }
    None
}

/// The plan as it grows.
struct Writer<'a> {
    schedule: &'a Schedule,
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
        let vector = vector(schedule)?;
        let sizes = Sizes {
            spec: schedule.spec,
            ranks: schedule.ranks,
            fine: 1,
            vector,
            scratch: 0,
        };
        let layout = Layout::of(&schedule.buffers, &sizes)?;
        let (input, output) = chunks(&schedule.spec, vector, schedule.ranks);
        let gpu = |id| Gpu {
            id,
            input_chunks: input,
            output_chunks: output,
            scratch_chunks: layout.scratch(),
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

    /// What is fenced waits for the last operation of each lane of its rank, and the next one of each lane for it.
    fn find_fences(&mut self) {
        let (mut last, mut fence) = (BTreeMap::new(), BTreeMap::new());
        for (id, op) in (0..).zip(self.schedule.ops()) {
            let (rank, block) = (op.initiator(), self.block_of(id));
            if op.fenced {
                let lanes = last.range((rank, 0)..=(rank, u32::MAX));
                self.fenced
                    .insert(id, lanes.map(|(_, &earlier)| earlier).collect());
                fence.insert(rank, id);
            } else if let Some(&fenced) = fence.get(&rank) {
                if last
                    .get(&(rank, block))
                    .is_none_or(|&earlier| earlier < fenced)
                {
                    self.fenced.insert(id, vec![fenced]);
                }
            }
            last.insert((rank, block), id);
        }
    }

    /// All operations that operation `id` waits for.
    fn awaited(&self, id: u32) -> Vec<u32> {
        let edges = self.schedule.after(id).iter().map(|edge| edge.op());
        let fenced = self.fenced.get(&id).into_iter().flatten().copied();
        edges.chain(fenced).collect()
    }

    fn find_tokens(&mut self) {
        for id in 0..self.schedule.ops().len() as u32 {
            let block = self.block_of(id);
            for earlier in self.awaited(id) {
                let from = self.block_of(earlier);
                let targets = &mut self.targets[earlier as usize];
                if from != block && !targets.contains(&block) {
                    targets.push(block);
                    self.tokens.entry((from, block)).or_default().push(earlier);
                }
            }
        }
        self.tokens
            .values_mut()
            .for_each(|list| list.sort_unstable());
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

    /// Whoever accesses the buffers of a GPU waits until it has begun.
    fn begin(&mut self) {
        let mut accesses = BTreeSet::new();
        for (id, op) in (0..).zip(self.schedule.ops()) {
            let peer = if op.kind == OpKind::Get {
                op.from
            } else {
                op.to
            };
            if matches!(op.kind, OpKind::Put | OpKind::Get) && peer != op.initiator() {
                accesses.insert((self.block_of(id), peer));
            }
        }
        for &(block, peer) in &accesses {
            let op = self.channel_op(Name::RelaxedSignal, self.first[peer as usize], &[block]);
            self.push(self.first[peer as usize], op);
        }
        for &(block, peer) in &accesses {
            let op = self.channel_op(Name::RelaxedWait, block, &[self.first[peer as usize]]);
            self.push(block, op);
        }
    }

    /// Take the tokens that an operation needs, and let the threads meet if what it needs was done by them.
    fn wait_for(&mut self, id: u32) {
        let block = self.block_of(id);
        for earlier in self.awaited(id) {
            let from = self.block_of(earlier);
            if from == block {
                if self.blocks[block as usize]
                    .since
                    .is_some_and(|first| first <= earlier)
                {
                    self.meet(block);
                }
                continue;
            }
            let needed = self.tokens[&(from, block)].partition_point(|&op| op <= earlier) as u32;
            self.take(from, block, needed);
        }
        let last = self.blocks[block as usize].ops.last();
        if last.is_some_and(|op| is_wait(op.name)) {
            self.meet(block);
        }
    }

    fn take(&mut self, from: u32, block: u32, needed: u32) {
        while self.taken.get(&(from, block)).copied().unwrap_or(0) < needed {
            *self.taken.entry((from, block)).or_default() += 1;
            let op = match self.near(from, block) {
                true => self.semaphore_op(Name::Acquire, from, block),
                false => self.channel_op(Name::Wait, block, &[from]),
            };
            self.push(block, op);
        }
    }

    /// Send the tokens of an operation.
    fn tell(&mut self, id: u32) {
        let block = self.block_of(id);
        for target in std::mem::take(&mut self.targets[id as usize]) {
            self.send(block, target);
        }
    }

    fn send(&mut self, block: u32, target: u32) {
        if !self.blocks[block as usize]
            .ops
            .last()
            .is_some_and(|op| is_signal(op.name))
        {
            self.meet(block);
        }
        *self.sent.entry((block, target)).or_default() += 1;
        let op = match self.near(block, target) {
            true => self.semaphore_op(Name::Release, block, target),
            false => self.channel_op(Name::Signal, block, &[target]),
        };
        self.accessed
            .remove(&(block, self.blocks[target as usize].rank));
        self.push(block, op);
    }

    /// A GPU ends when it knows that all accesses to its buffers are done.
    fn end(&mut self) {
        for (block, rank) in std::mem::take(&mut self.accessed) {
            self.send(block, self.first[rank as usize]);
        }
        for ((from, block), sent) in std::mem::take(&mut self.sent) {
            self.take(from, block, sent);
        }
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

    fn meet(&mut self, block: u32) {
        let block = &mut self.blocks[block as usize];
        if block.open {
            block.ops.push(plain(Name::Nop));
            (block.open, block.since) = (false, None);
        }
    }

    /// A signal or wait of `block`, whose other sides are `others`.
    fn channel_op(&mut self, name: Name, block: u32, others: &[u32]) -> Op {
        let ids = others.iter().map(|&other| self.channel(block, other));
        Op {
            channel_ids: ids.collect(),
            channel_type: Some(ChannelType::Memory),
            ..plain(name)
        }
    }

    fn channel(&mut self, block: u32, other: u32) -> u32 {
        if let Some(&known) = self.blocks[block as usize].channels.get(&other) {
            return known;
        }
        for (one, two) in [(block, other), (other, block)] {
            let peer = self.blocks[two as usize].rank;
            let one = &mut self.blocks[one as usize];
            let connected = &mut self.gpus[one.rank as usize].channels[0].connected_to;
            one.channels.insert(two, one.channel_ids.len() as u32);
            one.channel_ids.push(connected.len() as u32);
            connected.push(peer);
        }
        self.blocks[block as usize].channels[&other]
    }

    fn semaphore_op(&mut self, name: Name, from: u32, to: u32) -> Op {
        let known = &mut self.gpus[self.blocks[from as usize].rank as usize].semaphores;
        let id = *self.semaphores.entry((from, to)).or_insert_with(|| {
            known.push(Semaphore { init_value: 0 });
            known.len() as u32 - 1
        });
        Op {
            semaphore_ids: vec![id],
            ..plain(name)
        }
    }

    /// Place of a buffer of `rank` in the list of `block`.
    fn remote(&mut self, block: u32, rank: u32, space: Space) -> u32 {
        let block = &mut self.blocks[block as usize];
        let known = &mut self.gpus[block.rank as usize].remote_buffers;
        let same = |buffer: &RemoteBuffer| (buffer.rank, buffer.space) == (rank, space);
        let id = known.iter().position(same).unwrap_or_else(|| {
            known.push(RemoteBuffer {
                rank,
                space,
                access_channel_types: vec![ChannelType::Memory],
            });
            known.len() - 1
        }) as u32;
        let ids = &mut block.buffer_ids;
        *block.buffers.entry(id).or_insert_with(|| {
            ids.push(id);
            ids.len() as u32 - 1
        })
    }

    /// One operation of the plan for each range.
    fn data(&mut self, id: u32, op: &ir::Op, number: u32) {
        let (schedule, block) = (self.schedule, self.block_of(id));
        let peer = if op.kind == OpKind::Get {
            op.from
        } else {
            op.to
        };
        for (src, dst, count) in schedule.chunk_ranges(op).filter(|range| range.2 > 0) {
            let src = self.layout.units(op.src_buffer.0 as usize, src, count);
            let dst = self.layout.units(op.dst_buffer.0 as usize, dst, count);
            let (near_src, near_dst) = (own(src), own(dst));
            let reduces = op.combine == Combine::Reduce;
            let (name, src_buff, dst_buff) = match op.kind {
                OpKind::Put => {
                    let buffer = self.remote(block, peer, dst.0);
                    (Name::Put, vec![near_src], vec![far(dst, buffer)])
                }
                OpKind::Get => {
                    let far = far(src, self.remote(block, peer, src.0));
                    match reduces {
                        true => (Name::ReadReduce, vec![near_dst, far], vec![near_dst]),
                        false => (Name::Get, vec![far], vec![near_dst]),
                    }
                }
                _ if reduces => (Name::Reduce, vec![near_dst, near_src], vec![near_dst]),
                _ => (Name::Copy, vec![near_src], vec![near_dst]),
            };
            let written = Op {
                src_buff,
                dst_buff,
                channel_type: (op.kind != OpKind::Local).then_some(ChannelType::Memory),
                reduce_op: reduces.then_some(ReduceOp::Sum),
                own: Some(OwnOp {
                    op: number,
                    step: op.step,
                    hint: hint(op.hint),
                    fenced: op.fenced,
                }),
                ..plain(name)
            };
            self.push(block, written);
        }
        self.blocks[block as usize].since.get_or_insert(id);
        if op.kind != OpKind::Local {
            self.accessed.insert((block, peer));
        }
    }

    fn finished(mut self) -> File {
        for block in self.blocks {
            let gpu = &mut self.gpus[block.rank as usize];
            let id = gpu.threadblocks.len() as u32;
            gpu.threadblocks.push(Block {
                id,
                ops: block.ops,
                channels: vec![BlockChannels {
                    channel_type: ChannelType::Memory,
                    _buff: None,
                    channel_ids: block.channel_ids,
                }],
                remote_buffer_refs: vec![BlockBuffers {
                    access_channel_type: ChannelType::Memory,
                    remote_buffer_ids: block.buffer_ids,
                }],
                lane: Some(block.lane),
            });
        }
        let spec = &self.schedule.spec;
        let name = match spec.collective {
            Collective::ReduceScatter => "reducescatter",
            other => other.name(),
        };
        File {
            name: format!(
                "linkwright_{}_{}",
                spec.collective.name(),
                self.schedule.ranks
            ),
            collective: name.to_string(),
            protocol: "Simple".to_string(),
            inplace: in_place(spec),
            reuse_resources: false,
            gpus: self.gpus,
            num_threads_per_block: Some(THREADS),
            use_double_scratch_buffer: false,
            buffer_alignment: Some(ALIGNMENT),
            min_message_size: Some(0),
            max_message_size: Some(u64::MAX),
            linkwright: Some(Own {
                root: spec.root,
                buffers: self.schedule.buffers.iter().map(own_buffer).collect(),
            }),
        }
    }
}

fn plain(name: Name) -> Op {
    Op {
        name,
        src_buff: Vec::new(),
        dst_buff: Vec::new(),
        channel_ids: Vec::new(),
        channel_type: None,
        reduce_op: None,
        semaphore_ids: Vec::new(),
        barrier_id: None,
        num_threadblocks: None,
        tbg_info: None,
        _iter_context: None,
        _ops: None,
        own: None,
    }
}

fn is_wait(name: Name) -> bool {
    matches!(name, Name::Wait | Name::RelaxedWait | Name::Acquire)
}

fn is_signal(name: Name) -> bool {
    matches!(name, Name::Signal | Name::Release)
}

fn own(units: (Space, u32, u32)) -> Chunks {
    Chunks {
        space: Some(units.0),
        buffer_id: None,
        switch_channel_id: None,
        rank: None,
        index: units.1,
        size: units.2,
    }
}

fn far(units: (Space, u32, u32), buffer: u32) -> Chunks {
    Chunks {
        space: None,
        buffer_id: Some(buffer),
        ..own(units)
    }
}

fn hint(hint: ir::Hint) -> Option<Hint> {
    match hint {
        ir::Hint::None => None,
        ir::Hint::PlusX => Some(Hint::PlusX),
        ir::Hint::MinusX => Some(Hint::MinusX),
        ir::Hint::PlusY => Some(Hint::PlusY),
        ir::Hint::MinusY => Some(Hint::MinusY),
    }
}

fn own_buffer(buffer: &ir::Buffer) -> OwnBuffer {
    OwnBuffer {
        name: buffer.name.clone(),
        only_at: match buffer.owner {
            Owner::Ranks => None,
            Owner::One(one) => Some(one.0),
        },
        mul: buffer.mul,
        div: buffer.div,
        blocks: buffer.blocks,
        slices: buffer.slices,
    }
}

/// Chunks of the plan's vector: as few as cut every buffer at the borders of its chunks.
fn vector(schedule: &Schedule) -> Result<u32> {
    let mut vector = 1;
    for buffer in &schedule.buffers {
        if buffer.mul == 0 {
            return Err(cannot(&format!("buffer `{}` has no elements", buffer.name)));
        }
        let parts = u64::from(buffer.blocks) * u64::from(buffer.slices) * u64::from(buffer.div);
        let parts = parts / gcd(parts, u64::from(buffer.mul));
        vector = vector / gcd(vector, parts) * parts;
        if vector > MAX_UNITS {
            return Err(cannot(&format!(
                "its buffers have no common cut of at most {MAX_UNITS} chunks"
            )));
        }
    }
    Ok(vector as u32)
}

/// Chunks of input and output.
fn chunks(spec: &Spec, vector: u32, ranks: u32) -> (u32, u32) {
    match spec.collective {
        Collective::Allgather | Collective::Gather => (vector / ranks, vector),
        Collective::ReduceScatter | Collective::Scatter => (vector, vector / ranks),
        _ => (vector, vector),
    }
}
