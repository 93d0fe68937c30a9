//! Operations become steps.

use super::{At, Purpose, Writer};
use crate::error::Result;
use crate::express::refuse;
use crate::msccl::limits::COUNT_WRITTEN;
use crate::msccl::plan::{Kind, Own, Place, Step};
use linkwright_schedule::ir::{Combine, Op, OpKind};

impl Writer<'_> {
    /// Write operation `id`, or refuse it.
    pub(super) fn operation(&mut self, id: u32, op: &Op) -> Result<()> {
        if op.fenced {
            self.fence(op.initiator());
        }
        self.pieces(id, op)
    }

    /// What `gpu` sends or does from now on comes after what it has sent and done so far.
    fn fence(&mut self, gpu: u32) {
        let blocks = self.blocks[gpu as usize].iter();
        let ends = blocks
            .filter(|b| b.block.recv.is_none())
            .filter(|b| !b.steps.is_empty());
        self.fences[gpu as usize] = ends
            .map(|b| At {
                tb: b.block.tb,
                step: b.steps.len() as u32 - 1,
            })
            .collect();
    }

    /// Write an operation as one step, or pair of steps, for each run of chunks that the runtime can count.
    fn pieces(&mut self, id: u32, op: &Op) -> Result<()> {
        let ranges: Vec<_> = self.schedule.chunk_ranges(op).collect();
        for (src, dst, count) in ranges.into_iter().filter(|range| range.2 > 0) {
            let (src, units) = self.layout.place(op.src_buffer.0 as usize, src, count);
            let (dst, other) = self.layout.place(op.dst_buffer.0 as usize, dst, count);
            if units != other {
                return refuse(
                    id,
                    op,
                    "moves between chunks of two lengths; cut the buffers alike",
                );
            }
            let mut done = 0;
            while done < units {
                let count = (units - done).min(COUNT_WRITTEN - 1);
                let shift = |place: Place| Place {
                    at: place.at + done,
                    ..place
                };
                self.piece(id, op, shift(src), shift(dst), count)?;
                done += count;
            }
        }
        Ok(())
    }

    fn piece(&mut self, id: u32, op: &Op, src: Place, dst: Place, count: u32) -> Result<()> {
        let reduces = op.combine == Combine::Reduce;
        let own = Own {
            op: id,
            step: op.step,
            lane: op.lane,
            hint: op.hint,
            get: op.kind == OpKind::Get,
            fenced: op.fenced,
        };
        let step = |kind, src| Step {
            kind,
            src,
            dst,
            count,
            after: None,
            announced: false,
            own: Some(own),
        };
        if op.kind == OpKind::Local {
            let kind = if reduces { Kind::Reduce } else { Kind::Copy };
            return self.local(id, op, step(kind, src));
        }
        let (kind, from) = match reduces {
            true => (Kind::RecvReduceCopy, dst),
            false => (Kind::Recv, dst),
        };
        self.message(id, op, step(Kind::Send, src), step(kind, from))
    }

    fn local(&mut self, id: u32, op: &Op, step: Step) -> Result<()> {
        let purpose = (op.from, Purpose::Local(op.lane));
        let waits = match self.serving.get(&purpose) {
            Some(&tb) => self.waits(op.from, tb, &step),
            None => Vec::new(),
        };
        let tb = match self.serving.get(&purpose) {
            Some(&tb) if self.has_room(op.from, tb, &waits) => tb,
            _ => {
                let tb = self.open(id, op, op.from, None, None, 0)?;
                self.serving.insert(purpose, tb);
                tb
            }
        };
        self.append(op.from, tb, step);
        Ok(())
    }

    fn message(&mut self, id: u32, op: &Op, send: Step, recv: Step) -> Result<()> {
        let ends = [
            (op.from, Purpose::Send(op.to, op.lane), send),
            (op.to, Purpose::Recv(op.from, op.lane), recv),
        ];
        let serving = ends.map(|(gpu, purpose, _)| self.serving.get(&(gpu, purpose)).copied());
        let fits = ends.iter().zip(serving).all(|(&(gpu, _, step), tb)| {
            tb.is_some_and(|tb| self.has_room(gpu, tb, &self.waits(gpu, tb, &step)))
        });
        if !fits {
            let channel = self.channel(id, op)?;
            let sender = self.open(id, op, op.from, Some(op.to), None, channel)?;
            let receiver = self.open(id, op, op.to, None, Some(op.from), channel)?;
            self.serving.insert((op.from, ends[0].1), sender);
            self.serving.insert((op.to, ends[1].1), receiver);
        }
        for (gpu, purpose, step) in ends {
            let tb = self.serving[&(gpu, purpose)];
            self.append(gpu, tb, step);
        }
        Ok(())
    }
}
