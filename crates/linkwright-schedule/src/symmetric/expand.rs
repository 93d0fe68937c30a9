//! A program as all ranks write it: the ordinary schedule.

use super::program::{hint_at, Program};
use crate::builder::{Builder, Shape, Slot};
use crate::error::Result;
use crate::ir::{Combine, Op, OpKind, Schedule};

impl Program {
    /// The schedule over all ranks, operation by operation and in each of them rank by rank.
    pub fn expand(&self) -> Result<Schedule> {
        let shape = Shape {
            element_bytes: self.element_bytes,
            ..Shape::new(self.ranks(), self.elements).with_root(self.spec.root)
        };
        let mut b = Builder::new(self.spec.collective, &shape);
        for buffer in &self.buffers {
            b.buffer(buffer.clone());
        }
        let everyone: Vec<u32> = (0..self.ranks()).collect();
        let mut step = 0;
        for op in &self.ops {
            if op.kind == OpKind::Fence {
                // It stands in a step of its own, as fences do.
                (step..op.step - 1).for_each(|_| b.step());
                b.fences(&everyone);
                step = op.step + 1;
                continue;
            }
            (step..op.step).for_each(|_| b.step());
            step = op.step;
            everyone
                .iter()
                .for_each(|&rank| self.write_at(&mut b, op, rank));
        }
        b.finish()
    }

    /// Let `rank` write `op`.
    fn write_at(&self, b: &mut Builder, op: &Op, rank: u32) {
        let to = self.group.act(rank, op.to);
        let (src, dst) = (Slot(op.src_buffer), Slot(op.dst_buffer));
        let written = match (self.is_one_chunk(op), op.kind) {
            (false, OpKind::Local) => b.local_runs(rank, src, dst, &self.runs_at(op, rank)),
            (false, _) => b.put_runs(rank, src, to, dst, &self.runs_at(op, rank)),
            (true, kind) => {
                let read = src.at(self.chunk_at(op.src_buffer, op.src, rank));
                let written = dst.at(self.chunk_at(op.dst_buffer, op.dst, rank));
                match kind {
                    OpKind::Local => b.local(rank, read, written),
                    _ => b.put(rank, read, to, written),
                }
            }
        };
        let written = written.hint(hint_at(op.hint, rank, to));
        if op.combine == Combine::Reduce {
            written.reduce();
        }
    }
}
