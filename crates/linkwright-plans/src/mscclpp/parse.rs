//! From JSON to a plan: every name is resolved, every number is checked.

use super::json::{self, ChannelType, Chunks, File, Name, ReduceOp, Space};
use super::layout::{self, in_place, only, Layout, Sizes, MAX_UNITS};
use super::plan::{place, Action, Block, Data, End, Kind, Move, Op, Part, Place, Plan};
use crate::error::{PlanError, Result};
use linkwright_schedule::ir::MAX_RANKS;
use linkwright_schedule::{Collective, Spec};
use std::collections::BTreeMap;

/// Longest file that is read, in bytes.
const MAX_TEXT: usize = 1 << 26;
/// Most objects of a file: each takes up to 400 bytes.
const MAX_OBJECTS: usize = 1 << 20;
/// Most parts into which groups of thread blocks cut a chunk.
const MAX_FINE: u64 = 1 << 10;
/// Most units of all buffers of all GPUs.
const MAX_CELLS: u64 = 1 << 23;
/// Most channel ends of all GPUs, and most that all operations name, with semaphores.
const MAX_NAMES: usize = 1 << 21;
/// Most buffers of a schedule.
const MAX_BUFFERS: usize = 255;
/// Last step of a schedule.
const MAX_STEP: u32 = 1 << 30;
/// Most units that all operations move.
const MAX_MOVED: u64 = 1 << 23;

/// The file, as it stands there.
pub(super) fn file(text: &str) -> Result<File> {
    let objects = text.bytes().filter(|&byte| byte == b'{').count();
    if text.len() > MAX_TEXT || objects > MAX_OBJECTS {
        return Err(PlanError::whole(format!(
            "{} bytes and {objects} objects; at most {MAX_TEXT} and {MAX_OBJECTS} are read",
            text.len()
        )));
    }
    serde_json::from_str(text).map_err(|error| {
        let told = error.to_string();
        let what = told.split(" at line ").next().unwrap_or(&told).to_string();
        let old = ["inputChunks", "chunkGroups", "srcbuff"];
        let what = match old.iter().any(|key| what.contains(key)) {
            true => format!(
                "{what}: this is the format before MSCCL++ 0.8; write the plan with a newer one"
            ),
            false => what,
        };
        PlanError::at(
            format!("line {}", error.line()),
            format!("{what} (column {})", error.column()),
        )
    })
}

/// The plan of a file.
pub(super) fn plan(file: &File) -> Result<Plan> {
    let sizes = sizes(file)?;
    let layout = match &file.linkwright {
        Some(own) if own.buffers.len() > MAX_BUFFERS => {
            let problem = format!(
                "{} buffers; at most {MAX_BUFFERS} are read",
                own.buffers.len()
            );
            return Err(PlanError::at("linkwright", problem));
        }
        Some(own) => {
            let buffers: Vec<_> = own.buffers.iter().map(layout::own_buffer).collect();
            Layout::of(&buffers, &sizes)?
        }
        None => Layout::plain(&sizes)?,
    };
    let mut parser = Parser {
        file,
        fine: sizes.fine,
        plan: Plan {
            spec: sizes.spec,
            ranks: sizes.ranks,
            vector: sizes.vector,
            own: file.linkwright.is_some(),
            layout,
            blocks: Vec::new(),
            ops: Vec::new(),
            moves: Vec::new(),
            names: Vec::new(),
            ends: Vec::new(),
            semaphores: Vec::new(),
        },
        reduce_op: None,
        moved: 0,
        gpu: Here::default(),
        ends: Vec::new(),
    };
    parser.channels()?;
    for (gpu, ends) in (0..).zip(std::mem::take(&mut parser.ends)) {
        parser.gpu(gpu, ends)?;
    }
    Ok(parser.plan)
}

fn spec(file: &File) -> Result<Spec> {
    let (root, own) = file
        .linkwright
        .as_ref()
        .map_or((0, false), |own| (own.root, true));
    let collective = match file.collective.as_str() {
        "allreduce" => Collective::Allreduce,
        "allgather" => Collective::Allgather,
        "reducescatter" | "reduce_scatter" => Collective::ReduceScatter,
        "alltoall" => Collective::Alltoall,
        "broadcast" => Collective::Broadcast,
        "reduce" => Collective::Reduce,
        "gather" if own => Collective::Gather,
        "scatter" if own => Collective::Scatter,
        other => {
            return Err(PlanError::at(
                "collective",
                format!(
                    "`{}` has no result that can be proved; allreduce, allgather, reducescatter, alltoall, broadcast \
                     and reduce have",
                    other.escape_debug()
                ),
            ))
        }
    };
    if file.inplace && !collective.is_in_place() {
        let problem = format!(
            "{} in place would lose its input; set it to false",
            collective.name()
        );
        return Err(PlanError::at("inplace", problem));
    }
    let mut spec = Spec::new(collective, root);
    spec.out_of_place = !file.inplace && collective.is_in_place();
    Ok(spec)
}

fn sizes(file: &File) -> Result<Sizes> {
    let spec = spec(file)?;
    let ranks = file.gpus.len() as u32;
    if file.gpus.is_empty() || file.gpus.len() > MAX_RANKS as usize {
        return Err(PlanError::at(
            "gpus",
            format!("{} GPUs; at least 1 is needed", file.gpus.len()),
        ));
    }
    if spec.root >= ranks {
        let problem = format!("root {} does not exist; there are {ranks} GPUs", spec.root);
        return Err(PlanError::at("linkwright", problem));
    }
    if !matches!(file.protocol.as_str(), "Simple" | "LL") {
        let problem = format!(
            "`{}` is not known; Simple and LL are",
            file.protocol.escape_debug()
        );
        return Err(PlanError::at("protocol", problem));
    }
    let (input, output) = chunks(file, &spec, ranks)?;
    let fine = fine(file)?;
    let vector = u64::from(input.max(output)) * u64::from(fine);
    let scratch = file
        .gpus
        .iter()
        .map(|gpu| u64::from(gpu.scratch_chunks))
        .max();
    let scratch = scratch.unwrap_or(0) * u64::from(fine);
    let cells = u64::from(ranks) * (2 * vector + scratch);
    if vector > MAX_UNITS || scratch > MAX_UNITS || cells > MAX_CELLS {
        let problem = format!(
            "{ranks} GPUs with {vector} parts of the data and {scratch} of scratch; use fewer chunks, at most {MAX_UNITS} \
             of a buffer and {MAX_CELLS} of all together"
        );
        return Err(PlanError::at("gpus", problem));
    }
    Ok(Sizes {
        spec,
        ranks,
        fine,
        vector: vector as u32,
        scratch: scratch as u32,
    })
}

/// Chunks of input and output, which are the same for all GPUs and fit the collective.
fn chunks(file: &File, spec: &Spec, ranks: u32) -> Result<(u32, u32)> {
    let (input, output) = (file.gpus[0].input_chunks, file.gpus[0].output_chunks);
    for (rank, gpu) in file.gpus.iter().enumerate() {
        let at = |problem: String| Err(PlanError::at(format!("gpu {rank}"), problem));
        if gpu.id as usize != rank {
            return at(format!(
                "id {} stands in place {rank}; list the GPUs in order from 0",
                gpu.id
            ));
        }
        if (gpu.input_chunks, gpu.output_chunks) != (input, output) {
            return at(format!(
                "{} input and {} output chunks, but {input} and {output} at gpu 0; make them equal",
                gpu.input_chunks, gpu.output_chunks
            ));
        }
    }
    let (wide_in, wide_out) = (u64::from(input), u64::from(output));
    let times = |chunks: u64| chunks * u64::from(ranks);
    let (fits, rule) = match spec.collective {
        Collective::Allgather | Collective::Gather => (
            times(wide_in) == wide_out,
            "output_chunks must be input_chunks times the GPUs",
        ),
        Collective::ReduceScatter | Collective::Scatter => (
            times(wide_out) == wide_in,
            "input_chunks must be output_chunks times the GPUs",
        ),
        Collective::Alltoall => (
            input == output && input % ranks == 0,
            "input_chunks and output_chunks must be equal, and a multiple of the GPUs",
        ),
        _ => (
            input == output,
            "input_chunks and output_chunks must be equal",
        ),
    };
    match fits && input > 0 && output > 0 {
        true => Ok((input, output)),
        false => {
            let name = spec.collective.name();
            let problem =
                format!("{input} input and {output} output chunks of {name}; {rule}, at least 1");
            Err(PlanError::at("gpu 0", problem))
        }
    }
}

/// Parts into which groups of thread blocks cut every chunk: the least number that all groups divide.
fn fine(file: &File) -> Result<u32> {
    let mut fine: u64 = 1;
    for gpu in &file.gpus {
        for block in &gpu.threadblocks {
            for (index, op) in (0..).zip(&block.ops) {
                let Some(group) = op.tbg_info else { continue };
                let size = u64::from(group.tbg_size);
                let at =
                    |problem: String| Err(PlanError::at(place(gpu.id, block.id, index), problem));
                if group.tb_id >= group.tbg_size {
                    return at(format!(
                        "part {} of a group of {size} does not exist",
                        group.tb_id
                    ));
                }
                if size > MAX_FINE || fine / gcd(fine, size) * size > MAX_FINE {
                    return at(format!(
                        "groups cut a chunk into more than {MAX_FINE} parts; use smaller groups"
                    ));
                }
                fine = fine / gcd(fine, size) * size;
            }
        }
    }
    Ok(fine as u32)
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// What the operations of a GPU's thread block may name.
#[derive(Default)]
struct Here {
    gpu: u32,
    block: u32,
    op: u32,
    /// Ends of the GPU, and of the thread block, by type.
    ends: BTreeMap<ChannelType, Vec<u32>>,
    block_ends: BTreeMap<ChannelType, Vec<u32>>,
    block_buffers: BTreeMap<ChannelType, Vec<(u32, Space)>>,
    first_semaphore: u32,
}

struct Parser<'a> {
    file: &'a File,
    fine: u32,
    plan: Plan,
    reduce_op: Option<ReduceOp>,
    moved: u64,
    gpu: Here,
    ends: Vec<BTreeMap<ChannelType, Vec<u32>>>,
}

impl Parser<'_> {
    fn fail<T>(&self, problem: impl Into<String>) -> Result<T> {
        Err(PlanError::at(
            place(self.gpu.gpu, self.gpu.block, self.gpu.op),
            problem,
        ))
    }

    /// Number all channel ends; the k-th of a GPU to a peer meets the k-th of the peer to it.
    fn channels(&mut self) -> Result<()> {
        let mut numbered: BTreeMap<(ChannelType, u32, u32), Vec<u32>> = BTreeMap::new();
        let lists = self.file.gpus.iter().flat_map(|gpu| &gpu.channels);
        let count: usize = lists.map(|channel| channel.connected_to.len()).sum();
        if count > MAX_NAMES {
            let problem = format!("{count} channels; at most {MAX_NAMES} are read");
            return Err(PlanError::at("gpus", problem));
        }
        for gpu in &self.file.gpus {
            let mut ends: BTreeMap<ChannelType, Vec<u32>> = BTreeMap::new();
            for channel in &gpu.channels {
                let kind = channel.channel_type;
                for &peer in &channel.connected_to {
                    if peer >= self.plan.ranks || peer == gpu.id {
                        let problem =
                            format!("a channel leads to gpu {peer}; name another GPU of the plan");
                        return Err(PlanError::at(format!("gpu {}", gpu.id), problem));
                    }
                    let end = self.plan.ends.len() as u32;
                    self.plan.ends.push(End {
                        gpu: gpu.id,
                        peer,
                        other: None,
                    });
                    ends.entry(kind).or_default().push(end);
                    numbered.entry((kind, gpu.id, peer)).or_default().push(end);
                }
            }
            self.ends.push(ends);
        }
        for (&(kind, gpu, peer), ends) in &numbered {
            let others = numbered.get(&(kind, peer, gpu)).into_iter().flatten();
            for (&end, &other) in ends.iter().zip(others) {
                self.plan.ends[end as usize].other = Some(other);
            }
        }
        Ok(())
    }

    fn gpu(&mut self, rank: u32, ends: BTreeMap<ChannelType, Vec<u32>>) -> Result<()> {
        let gpu = &self.file.gpus[rank as usize];
        self.gpu = Here {
            gpu: rank,
            ends,
            first_semaphore: self.plan.semaphores.len() as u32,
            ..Here::default()
        };
        self.plan
            .semaphores
            .extend(gpu.semaphores.iter().map(|semaphore| semaphore.init_value));
        if gpu.threadblocks.len() > 255 {
            let problem = format!(
                "{} threadblocks; at most 255 are read",
                gpu.threadblocks.len()
            );
            return Err(PlanError::at(format!("gpu {rank}"), problem));
        }
        for (id, block) in (0..).zip(&gpu.threadblocks) {
            self.block(gpu, id, block)?;
        }
        Ok(())
    }

    fn block(&mut self, gpu: &json::Gpu, id: u32, block: &json::Block) -> Result<()> {
        let at = |problem: String| {
            Err(PlanError::at(
                format!("gpu {}, threadblock {id}", gpu.id),
                problem,
            ))
        };
        if block.id != id {
            return at(format!(
                "id {} stands in place {id}; list them in order from 0",
                block.id
            ));
        }
        (self.gpu.block, self.gpu.block_ends, self.gpu.block_buffers) =
            (id, BTreeMap::new(), BTreeMap::new());
        for channels in &block.channels {
            if channels.channel_type == ChannelType::Switch {
                continue;
            }
            let ends = self.gpu.ends.get(&channels.channel_type);
            for &channel in &channels.channel_ids {
                let Some(&end) = ends.and_then(|ends| ends.get(channel as usize)) else {
                    return at(format!(
                        "channel {channel} is not among those of the GPU; add it there"
                    ));
                };
                self.gpu
                    .block_ends
                    .entry(channels.channel_type)
                    .or_default()
                    .push(end);
            }
        }
        for refs in &block.remote_buffer_refs {
            let kind = refs.access_channel_type;
            for &buffer in &refs.remote_buffer_ids {
                let Some(remote) = gpu.remote_buffers.get(buffer as usize) else {
                    return at(format!(
                        "remote buffer {buffer} is not among those of the GPU; add it there"
                    ));
                };
                if remote.rank >= self.plan.ranks || remote.rank == gpu.id {
                    return at(format!(
                        "remote buffer {buffer} is at gpu {}; name another GPU of the plan",
                        remote.rank
                    ));
                }
                if !remote.access_channel_types.contains(&kind) {
                    return at(format!(
                        "remote buffer {buffer} is not reached through such a channel; add it to access_channel_types"
                    ));
                }
                let known = self.gpu.block_buffers.entry(kind).or_default();
                known.push((remote.rank, remote.space));
            }
        }
        let first = self.plan.ops.len() as u32;
        self.plan.blocks.push(Block {
            gpu: gpu.id,
            id,
            lane: block.lane.unwrap_or(id as u8),
            ops: first..first + block.ops.len() as u32,
        });
        for (index, op) in (0..).zip(&block.ops) {
            self.gpu.op = index;
            if op.own.is_some_and(|own| own.step > MAX_STEP) {
                return self.fail(format!(
                    "linkwright: step {} does not exist; at most {MAX_STEP}",
                    op.own.map_or(0, |own| own.step)
                ));
            }
            let action = self.action(op)?;
            self.plan.ops.push(Op {
                block: self.plan.blocks.len() as u32 - 1,
                action,
                own: op.own,
            });
        }
        Ok(())
    }

    fn action(&mut self, op: &json::Op) -> Result<Action> {
        if let Some(how) = op.reduce_op {
            if *self.reduce_op.get_or_insert(how) != how {
                return self.fail("another reduce_op than before; one run has one");
            }
        }
        Ok(match op.name {
            Name::Nop => Action::Nop,
            Name::Barrier => match (op.barrier_id, op.num_threadblocks) {
                (Some(id), Some(count)) => Action::Barrier(id, count),
                _ => return self.fail("a barrier needs barrier_id and num_threadblocks"),
            },
            Name::Signal => Action::Signal(self.ends_of(op)?, false),
            Name::RelaxedSignal => Action::Signal(self.ends_of(op)?, true),
            Name::Wait => Action::Wait(self.ends_of(op)?, false),
            Name::RelaxedWait => Action::Wait(self.ends_of(op)?, true),
            Name::Flush => Action::Flush(self.ends_of(op)?),
            Name::Acquire => Action::Acquire(self.semaphores(op)?),
            Name::Release => Action::Release(self.semaphores(op)?),
            Name::Pipeline => {
                return self.fail(
                    "a pipeline repeats its operations for each part of so many bytes, and a schedule knows no bytes; \
                     write the plan without",
                )
            }
            Name::SwitchReduce | Name::SwitchReduceStore | Name::SwitchStore | Name::SwitchStorePackets => {
                return self.fail(
                    "the switch combines or copies here, which no transfer between two GPUs expresses; \
                     use memory or port channels",
                )
            }
            _ => Action::Data(self.data(op)?),
        })
    }

    fn ends_of(&mut self, op: &json::Op) -> Result<Part> {
        if op.channel_ids.is_empty() {
            return self.fail("names no channel; list some in channel_ids");
        }
        self.room_for(op.channel_ids.len())?;
        let kind = op.channel_type.unwrap_or(ChannelType::None);
        let first = self.plan.names.len() as u32;
        for &channel in &op.channel_ids {
            let ends = self.gpu.block_ends.get(&kind);
            let Some(&end) = ends.and_then(|ends| ends.get(channel as usize)) else {
                return self.fail(format!(
                    "channel {channel} is not among those of the thread block; add it there"
                ));
            };
            self.plan.names.push(end);
        }
        Ok((first, self.plan.names.len() as u32))
    }

    fn room_for(&self, names: usize) -> Result<()> {
        match self.plan.names.len() + names > MAX_NAMES {
            true => self.fail(format!(
                "operations name more than {MAX_NAMES} channels and semaphores; use fewer"
            )),
            false => Ok(()),
        }
    }

    fn semaphores(&mut self, op: &json::Op) -> Result<Part> {
        self.room_for(op.semaphore_ids.len())?;
        let first = self.plan.names.len() as u32;
        let known = self.plan.semaphores.len() as u32 - self.gpu.first_semaphore;
        for &semaphore in &op.semaphore_ids {
            if semaphore >= known {
                return self.fail(format!(
                    "semaphore {semaphore} does not exist; the GPU has {known}"
                ));
            }
            self.plan.names.push(self.gpu.first_semaphore + semaphore);
        }
        match op.semaphore_ids.is_empty() {
            true => self.fail("names no semaphore; list some in semaphore_ids"),
            false => Ok((first, self.plan.names.len() as u32)),
        }
    }

    fn data(&mut self, op: &json::Op) -> Result<Data> {
        let port = op.channel_type == Some(ChannelType::Port);
        let puts = matches!(
            op.name,
            Name::Put | Name::PutSignal | Name::PutSignalFlush | Name::ReadPutPackets
        );
        if port && !puts {
            return self.fail("a port channel can only put; use a memory channel");
        }
        if matches!(op.name, Name::PutSignal | Name::PutSignalFlush) && !port {
            return self
                .fail("only a port channel can put and signal at once; use put, nop and signal");
        }
        let first = self.plan.moves.len() as u32;
        self.moves(op)?;
        let moves = (first, self.plan.moves.len() as u32);
        let ports = if port { self.ends_of(op)? } else { (0, 0) };
        let count = moves.1 - moves.0;
        if port && ports.1 - ports.0 != count {
            return self.fail(format!(
                "{count} puts through {} channels; make them equal",
                ports.1 - ports.0
            ));
        }
        for k in 0..if port { count } else { 0 } {
            let end = self.plan.names[(ports.0 + k) as usize];
            let (peer, to) = (
                self.plan.ends[end as usize].peer,
                self.plan.moves[(moves.0 + k) as usize].to,
            );
            if peer != to {
                return self.fail(format!(
                    "puts into a buffer of gpu {to} through a channel to gpu {peer}"
                ));
            }
        }
        Ok(Data {
            moves,
            ports,
            signals: matches!(op.name, Name::PutSignal | Name::PutSignalFlush),
            flushes: op.name == Name::PutSignalFlush,
        })
    }

    /// Write down what a data operation moves.
    fn moves(&mut self, op: &json::Op) -> Result<()> {
        let (sources, targets) = (op.src_buff.len(), op.dst_buff.len());
        let (least, most) = match op.name {
            Name::Put | Name::PutSignal | Name::PutSignalFlush | Name::Get | Name::PutPackets => {
                if sources != targets || sources == 0 {
                    return self.fail(format!(
                        "{sources} sources and {targets} destinations; make them equal"
                    ));
                }
                ((1, 1), (usize::MAX, usize::MAX))
            }
            Name::Copy | Name::CopyPackets | Name::UnpackPackets => ((1, 1), (1, 1)),
            Name::ReadPutPackets => ((1, 1), (1, usize::MAX)),
            Name::Reduce | Name::ReadReduce | Name::ReducePackets => ((2, 1), (usize::MAX, 1)),
            Name::ReduceCopyPackets => ((2, 2), (usize::MAX, 2)),
            Name::ReduceCopySendPackets => ((2, 3), (usize::MAX, usize::MAX)),
            _ => ((2, 2), (usize::MAX, usize::MAX)),
        };
        if sources < least.0 || sources > most.0 || targets < least.1 || targets > most.1 {
            return self.fail(format!(
                "{sources} sources and {targets} destinations do not fit this operation"
            ));
        }
        let packets = matches!(
            op.name,
            Name::PutPackets | Name::ReadPutPackets | Name::CopyPackets
        );
        let reads_packets = matches!(op.name, Name::ReadPutPackets | Name::UnpackPackets);
        match op.name {
            Name::Copy | Name::CopyPackets | Name::UnpackPackets => {
                let (src, dst) = (
                    self.local(op, op.src_buff[0])?,
                    self.local(op, op.dst_buff[0])?,
                );
                self.transfer(Kind::Local, src, dst, reads_packets, packets)
            }
            Name::Get => {
                for (&src, &dst) in op.src_buff.iter().zip(&op.dst_buff) {
                    let (src, dst) = (self.remote(op, src)?, self.local(op, dst)?);
                    self.transfer(Kind::Get, src, dst, false, false)?;
                }
                Ok(())
            }
            Name::Put
            | Name::PutSignal
            | Name::PutSignalFlush
            | Name::PutPackets
            | Name::ReadPutPackets => {
                for (index, &dst) in op.dst_buff.iter().enumerate() {
                    let src = op.src_buff[index.min(sources - 1)];
                    let (src, dst) = (self.local(op, src)?, self.remote(op, dst)?);
                    self.transfer(Kind::Put, src, dst, reads_packets, packets)?;
                }
                Ok(())
            }
            _ => self.reduction(op),
        }
    }

    /// Combine the sources at the first destination, and send the result to the others.
    fn reduction(&mut self, op: &json::Op) -> Result<()> {
        let reads = matches!(op.name, Name::ReadReduce | Name::ReadReduceSend);
        let packets = matches!(
            op.name,
            Name::ReducePackets
                | Name::ReduceSendPackets
                | Name::ReduceCopyPackets
                | Name::ReduceCopySendPackets
        );
        let copies = matches!(
            op.name,
            Name::ReduceCopyPackets | Name::ReduceCopySendPackets
        );
        let dst = self.local(op, op.dst_buff[0])?;
        let mut parts = vec![(Kind::Local, self.local(op, op.src_buff[0])?, false)];
        for &src in &op.src_buff[1..] {
            parts.push(match reads {
                true => (Kind::Get, self.remote(op, src)?, false),
                false => (Kind::Local, self.local(op, src)?, packets),
            });
        }
        // A source that is the destination is there already; else the first one is copied.
        let there = |part: &(Kind, Span, bool)| part.0 == Kind::Local && !part.2 && part.1 == dst;
        match parts.iter().position(there) {
            Some(index) => drop(parts.remove(index)),
            None => {
                let (kind, src, waits) = parts.remove(0);
                self.transfer(kind, src, dst, waits, false)?;
            }
        }
        for (kind, src, waits) in parts {
            if src == dst {
                return self.fail("combines its destination with itself; name another source");
            }
            self.transfer(kind, src, dst, waits, false)?;
            if let Some(made) = self.plan.moves.last_mut() {
                made.reduces = true;
            }
        }
        for (index, &target) in (1..).zip(&op.dst_buff[1..]) {
            match copies && index == 1 {
                true => {
                    let copy = self.local(op, target)?;
                    self.transfer(Kind::Local, dst, copy, false, true)?;
                }
                false => {
                    let target = self.remote(op, target)?;
                    self.transfer(Kind::Put, dst, target, false, packets)?;
                }
            }
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        kind: Kind,
        src: Span,
        dst: Span,
        reads_packets: bool,
        writes_packets: bool,
    ) -> Result<()> {
        if src.count != dst.count {
            return self.fail(format!(
                "{} parts of chunks go into {}; make the sizes equal",
                src.count, dst.count
            ));
        }
        for (packets, span) in [(reads_packets, src), (writes_packets, dst)] {
            if packets && span.place.space != Space::Scratch {
                return self.fail(
                    "packets lie outside scratch, where there is no room for their flags; use `s`",
                );
            }
        }
        let meets = src.gpu == dst.gpu && src.place.space == dst.place.space;
        let apart = src.place.at.abs_diff(dst.place.at);
        if meets && apart < src.count {
            if apart == 0 && src == dst && !reads_packets && !writes_packets {
                // Nothing moves; a copy onto itself is what aliases of input and output come to.
                return Ok(());
            }
            return self.fail("source and destination overlap; move them apart");
        }
        self.moved += u64::from(src.count);
        if self.moved > MAX_MOVED {
            return self.fail(format!(
                "more than {MAX_MOVED} parts of chunks are moved; use fewer chunks"
            ));
        }
        self.plan.moves.push(Move {
            from: src.gpu,
            src: src.place,
            to: dst.gpu,
            dst: dst.place,
            count: src.count,
            kind,
            reduces: false,
            reads_packets,
            writes_packets,
        });
        Ok(())
    }

    /// Keys of a switch mean nothing to other operations.
    fn of_switch(chunks: Chunks) -> bool {
        chunks.switch_channel_id.is_some() || chunks.rank.is_some()
    }

    fn local(&self, op: &json::Op, chunks: Chunks) -> Result<Span> {
        match (chunks.space, chunks.buffer_id, Self::of_switch(chunks)) {
            (Some(space), None, false) => self.span(op, self.gpu.gpu, space, chunks),
            _ => self.fail("names a remote buffer where one of its own (`type`) is needed"),
        }
    }

    fn remote(&self, op: &json::Op, chunks: Chunks) -> Result<Span> {
        let (None, Some(id), false) = (chunks.space, chunks.buffer_id, Self::of_switch(chunks))
        else {
            return self.fail("names an own buffer where a remote one (`buffer_id`) is needed");
        };
        let kind = op.channel_type.unwrap_or(ChannelType::None);
        let known = self.gpu.block_buffers.get(&kind);
        match known.and_then(|known| known.get(id as usize)) {
            Some(&(gpu, space)) => self.span(op, gpu, space, chunks),
            None => self.fail(format!(
                "buffer_id {id} is not in remote_buffer_refs of the thread block; add it"
            )),
        }
    }

    /// The part of `chunks` that the operation's place in its group gives it.
    fn span(&self, op: &json::Op, gpu: u32, space: Space, chunks: Chunks) -> Result<Span> {
        let owner = &self.file.gpus[gpu as usize];
        let there = match space {
            Space::Input => owner.input_chunks,
            Space::Output => owner.output_chunks,
            Space::Scratch => owner.scratch_chunks,
        };
        let (index, size) = (u64::from(chunks.index), u64::from(chunks.size));
        if size == 0 || index + size > u64::from(there) {
            return self.fail(format!(
                "chunks {index}..{} of `{}` at gpu {gpu} do not exist; there are {there}",
                index + size,
                letter(space)
            ));
        }
        let fine = u64::from(self.fine);
        let (part, parts) = op.tbg_info.map_or((0, 1), |group| {
            (u64::from(group.tb_id), u64::from(group.tbg_size))
        });
        let (first, end) = (size * fine * part / parts, size * fine * (part + 1) / parts);
        let at = (index * fine + first) as u32;
        Ok(Span {
            gpu,
            place: self.canonical(gpu, space, at),
            count: (end - first) as u32,
        })
    }

    /// In place, input and output are parts of one buffer.
    fn canonical(&self, gpu: u32, space: Space, at: u32) -> Place {
        let spec = &self.plan.spec;
        if !in_place(spec) || space == Space::Scratch || space == only(spec.collective) {
            return Place { space, at };
        }
        let gpus = &self.file.gpus;
        let offset = match spec.collective {
            Collective::Allgather => gpu * gpus[0].input_chunks * self.fine,
            Collective::ReduceScatter => gpu * gpus[0].output_chunks * self.fine,
            _ => 0,
        };
        Place {
            space: only(spec.collective),
            at: offset + at,
        }
    }
}

/// Units of one GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    gpu: u32,
    place: Place,
    count: u32,
}

/// The letter of a buffer in the file.
pub(super) fn letter(space: Space) -> char {
    match space {
        Space::Input => 'i',
        Space::Output => 'o',
        Space::Scratch => 's',
    }
}
