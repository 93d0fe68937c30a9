//! Which units of which GPU the chunks of an operation are.

use super::Parser;
use crate::error::Result;
use crate::mscclpp::json::{self, ChannelType, Chunks, Space};
use crate::mscclpp::plan::Place;

/// Units of one GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub gpu: u32,
    pub place: Place,
    pub count: u32,
}

impl Parser<'_> {
    /// Keys of a switch mean nothing to other operations.
    fn of_switch(chunks: Chunks) -> bool {
        chunks.switch_channel_id.is_some() || chunks.rank.is_some()
    }

    pub(super) fn local(&self, op: &json::Op, chunks: Chunks) -> Result<Span> {
        match (chunks.space, chunks.buffer_id, Self::of_switch(chunks)) {
            (Some(space), None, false) => self.span(op, self.gpu.gpu, space, chunks),
            _ => self.fail("names a remote buffer where one of its own (`type`) is needed"),
        }
    }

    pub(super) fn remote(&self, op: &json::Op, chunks: Chunks) -> Result<Span> {
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
                space.word()
            ));
        }
        let fine = u64::from(self.plan.goal.fine);
        let (part, parts) = op.tbg_info.map_or((0, 1), |group| {
            (u64::from(group.tb_id), u64::from(group.tbg_size))
        });
        let (first, end) = (size * fine * part / parts, size * fine * (part + 1) / parts);
        let at = (index * fine + first) as u32;
        Ok(Span {
            gpu,
            place: self.plan.goal.canonical(gpu, Place { space, at }),
            count: (end - first) as u32,
        })
    }
}
