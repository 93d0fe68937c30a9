//! The file around the thread blocks: its sizes, its buffers, what the executor asks for.

use super::Writer;
use crate::mscclpp::json::{Block, BlockBuffers, BlockChannels, ChannelType, File, Own, OwnBuffer};
use linkwright_schedule::Collective;

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
            inplace: self.goal.in_place(),
            reuse_resources: false,
            gpus: self.gpus,
            num_threads_per_block: Some(THREADS),
            use_double_scratch_buffer: false,
            buffer_alignment: Some(ALIGNMENT),
            min_message_size: Some(0),
            max_message_size: Some(u64::MAX),
            linkwright: Some(Own {
                root: spec.root,
                buffers: self.schedule.buffers.iter().map(OwnBuffer::of).collect(),
            }),
        }
    }
}
