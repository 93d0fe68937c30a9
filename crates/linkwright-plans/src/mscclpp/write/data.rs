//! The data that an operation of the schedule moves.

use super::names::plain;
use super::Writer;
use crate::mscclpp::json::{ChannelType, Chunks, Name, Op, OwnOp, ReduceOp};
use crate::mscclpp::plan::Place;
use linkwright_schedule::ir::{self, Combine, OpKind};

impl Writer<'_> {
    /// One operation of the plan for each range.
    pub(super) fn data(&mut self, id: u32, op: &ir::Op, number: u32) {
        let (schedule, block) = (self.schedule, self.block_of(id));
        let peer = if op.kind == OpKind::Get {
            op.from
        } else {
            op.to
        };
        for (src, dst, count) in schedule.chunk_ranges(op).filter(|range| range.2 > 0) {
            let src = self.layout.place(op.src_buffer.0 as usize, src, count);
            let dst = self.layout.place(op.dst_buffer.0 as usize, dst, count);
            let (near_src, near_dst) = (own(src), own(dst));
            let reduces = op.combine == Combine::Reduce;
            let (name, src_buff, dst_buff) = match op.kind {
                OpKind::Put => {
                    let buffer = self.remote(block, peer, dst.0.space);
                    (Name::Put, vec![near_src], vec![far(dst, buffer)])
                }
                OpKind::Get => {
                    let far = far(src, self.remote(block, peer, src.0.space));
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
                    hint: op.hint,
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
}

fn own((place, size): (Place, u32)) -> Chunks {
    Chunks {
        space: Some(place.space),
        buffer_id: None,
        switch_channel_id: None,
        rank: None,
        index: place.at,
        size,
    }
}

fn far(units: (Place, u32), buffer: u32) -> Chunks {
    Chunks {
        space: None,
        buffer_id: Some(buffer),
        ..own(units)
    }
}
