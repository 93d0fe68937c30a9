//! From JSON to a plan: every name is resolved, every number is checked.

mod actions;
mod blocks;
mod moves;
mod sizes;
mod spans;

pub(super) use sizes::MAX_UNITS;

use super::json::{ChannelType, File, OwnBuffer, ReduceOp, Space};
use super::plan::{place, End, Layout, Plan};
use crate::error::{PlanError, Result};
use std::collections::BTreeMap;

/// Longest file that is read, in bytes.
const MAX_TEXT: usize = 1 << 26;
/// Most objects of a file: each takes up to 400 bytes.
const MAX_OBJECTS: usize = 1 << 20;
/// Most channel ends of all GPUs, and most that all operations name, with semaphores.
const MAX_NAMES: usize = 1 << 21;
/// Most buffers of a schedule.
const MAX_BUFFERS: usize = 255;

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
    let (goal, scratch) = sizes::sizes(file)?;
    let layout = match &file.linkwright {
        Some(own) if own.buffers.len() > MAX_BUFFERS => {
            let problem = format!(
                "{} buffers; at most {MAX_BUFFERS} are read",
                own.buffers.len()
            );
            return Err(PlanError::at("linkwright", problem));
        }
        Some(own) => {
            let buffers = own.buffers.iter().map(OwnBuffer::buffer);
            Layout::of(&goal, buffers.collect())?
        }
        None => Layout::plain(&goal, scratch)?,
    };
    let mut parser = Parser {
        file,
        plan: Plan {
            goal,
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
                    if peer >= self.plan.goal.ranks || peer == gpu.id {
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
}
