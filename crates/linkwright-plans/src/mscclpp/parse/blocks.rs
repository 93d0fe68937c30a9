//! A thread block: the channels and remote buffers that its operations may name, then the operations.

use super::Parser;
use crate::error::{PlanError, Result};
use crate::mscclpp::json::{self, ChannelType};
use crate::mscclpp::plan::{Block, Op};
use std::collections::BTreeMap;

/// Last step of a schedule.
const MAX_STEP: u32 = 1 << 30;

impl Parser<'_> {
    pub(super) fn block(&mut self, gpu: &json::Gpu, id: u32, block: &json::Block) -> Result<()> {
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
                if remote.rank >= self.plan.goal.ranks || remote.rank == gpu.id {
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
}
