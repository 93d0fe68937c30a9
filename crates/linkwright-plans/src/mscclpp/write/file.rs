//! The file around the thread blocks: its sizes, its buffers, what the executor asks for.

use super::check::cannot;
use super::Writer;
use crate::divisor::gcd;
use crate::error::Result;
use crate::mscclpp::json::{Block, BlockBuffers, BlockChannels, ChannelType, File, Own, OwnBuffer};
use crate::mscclpp::layout::{in_place, MAX_UNITS};
use linkwright_schedule::ir::{self, Owner};
use linkwright_schedule::{Collective, Schedule, Spec};

/// Threads of a thread block, the executor's own default.
const THREADS: u32 = 1024;
/// Bytes to which the executor aligns chunks, its own default.
const ALIGNMENT: u32 = 16;

impl Writer<'_> {
    pub(super) fn finished(mut self) -> File {
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
pub(super) fn vector(schedule: &Schedule) -> Result<u32> {
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
pub(super) fn chunks(spec: &Spec, vector: u32, ranks: u32) -> (u32, u32) {
    match spec.collective {
        Collective::Allgather | Collective::Gather => (vector / ranks, vector),
        Collective::ReduceScatter | Collective::Scatter => (vector, vector / ranks),
        _ => (vector, vector),
    }
}
