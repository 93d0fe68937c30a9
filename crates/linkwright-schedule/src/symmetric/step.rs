//! Closing the steps of a program: conflicts go through scratch, as in `builder/step.rs`.
//!
//! Who accesses a chunk in a step is seen from the rank that has it: operation k of rank 0 reads its
//! own chunks, and writes those of the rank at offset `to`, as that one sees them.

use super::program::Program;
use crate::builder::into_place;
use crate::error::{Result, ScheduleError};
use crate::ir::{add_scratch, BufferId, Combine, Op, OpKind};
use crate::marks::Mark;
use std::collections::HashMap;

/// Marks by buffer and chunk.
#[derive(Default)]
struct Marks(Vec<Vec<Mark>>);

struct Steps {
    program: Program,
    marks: Marks,
    /// Scratch made here: (buffer mirrored, layer) -> scratch.
    mirrors: HashMap<(BufferId, u32), BufferId>,
    closed: Vec<Op>,
}

/// The program with scratch where steps conflict and, unless `fused`, with combinations after the copy
/// (see `transforms::unfuse`).
pub(super) fn close_steps(mut program: Program, fused: bool) -> Result<Program> {
    let alone = |step: &[Op]| match step {
        [op] => {
            let fuses = op.combine == Combine::Reduce && op.is_message();
            program.is_one_chunk(op) && !program.meets_itself(op) && (fused || !fuses)
        }
        _ => false,
    };
    if program.ops.chunk_by(|a, b| a.step == b.step).all(alone) {
        return Ok(program);
    }
    let ops = std::mem::take(&mut program.ops);
    let mut steps = Steps {
        marks: Marks::default(),
        closed: Vec::with_capacity(ops.len()),
        mirrors: HashMap::new(),
        program,
    };
    for step in ops.chunk_by(|a, b| a.step == b.step) {
        steps.close(step)?;
    }
    if !fused {
        steps.unfuse()?;
    }
    Ok(Program {
        ops: steps.closed,
        ..steps.program
    })
}

impl Steps {
    fn close(&mut self, ops: &[Op]) -> Result<()> {
        if let [op] = ops {
            if self.program.is_one_chunk(op) && !self.program.meets_itself(op) {
                self.closed.push(*op);
                return Ok(());
            }
        }
        for (k, op) in (0u32..).zip(ops) {
            self.marks.enter(&self.program, op, k);
        }
        let mut locals = Vec::new();
        for (k, op) in (0u32..).zip(ops) {
            let (conflict, layer) = self.conflict(op, k)?;
            if !conflict {
                self.closed.push(*op);
                continue;
            }
            let scratch = self.mirror(op.dst_buffer, layer)?;
            locals.push(self.redirect(op, scratch));
        }
        self.closed.append(&mut locals);
        Ok(())
    }

    /// Whether `op` must go through scratch, and the first scratch layer free for it.
    fn conflict(&mut self, op: &Op, k: u32) -> Result<(bool, u32)> {
        let (mut conflict, mut layer) = (false, 0);
        let marks = &mut self.marks;
        let written = || {
            self.program
                .ranges_of(op)
                .flat_map(|(_, dst, n)| dst..dst + n)
        };
        for chunk in written() {
            let mark = *marks.at(op.dst_buffer, chunk, op.step);
            // What reads here is rank 0's; it is this very operation only if it stays there.
            let Ok(meets) = mark.conflicts(k, op.combine, op.to == 0) else {
                return Err(ScheduleError::DoubleWrite {
                    step: op.step,
                    participant: 0,
                    buffer: self.program.buffers[op.dst_buffer.0 as usize].name.clone(),
                    chunk,
                });
            };
            conflict |= meets;
            layer = layer.max(mark.layers);
        }
        for chunk in written().filter(|_| conflict) {
            marks.at(op.dst_buffer, chunk, op.step).layers = layer + 1;
        }
        Ok((conflict, layer))
    }

    /// Send `op` to `scratch`; gives the operation that brings it from there to its place.
    fn redirect(&mut self, op: &Op, scratch: BufferId) -> Op {
        self.closed.push(Op {
            dst_buffer: scratch,
            combine: Combine::Replace,
            ..*op
        });
        let local = Op {
            // The rank that waits for rank 0's message comes first.
            from: op.to,
            ..op.landing(scratch, 0)
        };
        into_place(&mut self.program.ranges, op, local)
    }

    /// Combinations of messages become copies into scratch, and local ones at the end of the step.
    fn unfuse(&mut self) -> Result<()> {
        let ops = std::mem::take(&mut self.closed);
        let mut scratch: Vec<Option<BufferId>> = vec![None; self.program.buffers.len()];
        for step in ops.chunk_by(|a, b| a.step == b.step) {
            let mut locals = Vec::new();
            for op in step {
                if op.combine != Combine::Reduce || op.kind == OpKind::Local {
                    self.closed.push(*op);
                    continue;
                }
                let slot = op.dst_buffer.0 as usize;
                let into = match scratch[slot] {
                    Some(known) => known,
                    None => *scratch[slot].insert(self.scratch(op.dst_buffer)?),
                };
                locals.push(self.redirect(op, into));
            }
            self.closed.append(&mut locals);
        }
        Ok(())
    }

    /// The scratch buffer cut like `buffer`, number `layer`.
    fn mirror(&mut self, buffer: BufferId, layer: u32) -> Result<BufferId> {
        if let Some(&known) = self.mirrors.get(&(buffer, layer)) {
            return Ok(known);
        }
        let made = self.scratch(buffer)?;
        self.mirrors.insert((buffer, layer), made);
        Ok(made)
    }

    /// One more scratch buffer, cut like `buffer`.
    fn scratch(&mut self, buffer: BufferId) -> Result<BufferId> {
        let program = &mut self.program;
        let made = add_scratch(&mut program.buffers, buffer)?;
        program.relative.push(program.relative[buffer.0 as usize]);
        Ok(made)
    }
}

impl Marks {
    /// Note who accesses what by operation `k` of the step.
    fn enter(&mut self, program: &Program, op: &Op, k: u32) {
        for (src, _, count) in program.ranges_of(op) {
            for chunk in src..src + count {
                self.at(op.src_buffer, chunk, op.step).read(k);
            }
        }
        for (_, dst, count) in program.ranges_of(op) {
            for chunk in dst..dst + count {
                self.at(op.dst_buffer, chunk, op.step).write(k, op.combine);
            }
        }
    }

    fn at(&mut self, buffer: BufferId, chunk: u32, step: u32) -> &mut Mark {
        if self.0.len() <= buffer.0 as usize {
            self.0.resize(buffer.0 as usize + 1, Vec::new());
        }
        Mark::of(&mut self.0[buffer.0 as usize], chunk as usize, step)
    }
}
