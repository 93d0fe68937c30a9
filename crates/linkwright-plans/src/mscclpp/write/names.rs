//! The channels, semaphores and remote buffers that operations name: each is made when it is first used.

use super::Writer;
use crate::mscclpp::json::{ChannelType, Name, Op, RemoteBuffer, Semaphore, Space};

impl Writer<'_> {
    /// A signal or wait of `block`, whose other sides are `others`.
    pub(super) fn channel_op(&mut self, name: Name, block: u32, others: &[u32]) -> Op {
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

    pub(super) fn semaphore_op(&mut self, name: Name, from: u32, to: u32) -> Op {
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
    pub(super) fn remote(&mut self, block: u32, rank: u32, space: Space) -> u32 {
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
}

/// An operation that names nothing.
pub(super) fn plain(name: Name) -> Op {
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
