//! Thread blocks: which one takes a step, and what the step waits for.

use super::{At, Writer, Written};
use crate::error::{PlanError, Result};
use crate::express::refuse;
use crate::msccl::limits::{
    BLOCKS_ON_CHANNEL, BLOCKS_WRITTEN, CHANNELS_WRITTEN, NODES_WRITTEN, STEPS_WRITTEN,
};
use crate::msccl::plan::{Block, Kind, Place, Plan, Space, Step};
use linkwright_schedule::ir::Op;

impl Writer<'_> {
    /// A channel that has room for a further connection between the ranks of `op`.
    pub(super) fn channel(&mut self, id: u32, op: &Op) -> Result<u32> {
        let next = self.taken.entry((op.from, op.to)).or_insert(0);
        for channel in *next..CHANNELS_WRITTEN {
            let sends = &mut self.on_channel[op.from as usize][channel as usize][0];
            if *sends >= BLOCKS_ON_CHANNEL {
                continue;
            }
            let before = *sends;
            let receives = &mut self.on_channel[op.to as usize][channel as usize][1];
            if *receives >= BLOCKS_ON_CHANNEL {
                continue;
            }
            *receives += 1;
            self.on_channel[op.from as usize][channel as usize][0] = before + 1;
            *next = channel + 1;
            self.plan.head.channels = self.plan.head.channels.max(channel + 1);
            return Ok(channel);
        }
        let problem = format!(
            "would need more than {CHANNELS_WRITTEN} channels, and the runtime has no more; use fewer steps"
        );
        refuse(id, op, &problem)
    }

    /// Begin a thread block of `gpu`.
    pub(super) fn open(
        &mut self,
        id: u32,
        op: &Op,
        gpu: u32,
        send: Option<u32>,
        recv: Option<u32>,
        channel: u32,
    ) -> Result<u32> {
        let blocks = &mut self.blocks[gpu as usize];
        let tb = blocks.len() as u32;
        if blocks.len() >= BLOCKS_WRITTEN {
            let problem = format!(
                "would be in thread block {tb} of gpu {gpu}, and the runtime has {BLOCKS_WRITTEN}; use fewer peers \
                 or steps"
            );
            return refuse(id, op, &problem);
        }
        blocks.push(Written {
            block: Block {
                gpu,
                tb,
                send,
                recv,
                channel,
                steps: 0..0,
            },
            steps: Vec::new(),
            known: Vec::new(),
        });
        Ok(tb)
    }

    /// Whether a step with these waits fits into a thread block.
    pub(super) fn has_room(&self, gpu: u32, tb: u32, waits: &[At]) -> bool {
        let steps = self.blocks[gpu as usize][tb as usize].steps.len();
        steps + waits.len().max(1) <= STEPS_WRITTEN as usize
    }

    /// The steps of other thread blocks that `step` in thread block `tb` must wait for: the last of each.
    pub(super) fn waits(&self, gpu: u32, tb: u32, step: &Step) -> Vec<At> {
        let known = &self.blocks[gpu as usize][tb as usize].known;
        let mut waits: Vec<At> = Vec::new();
        let mut need = |earlier: At| {
            let done = known.get(earlier.tb as usize).copied().unwrap_or(0);
            if earlier.tb == tb || earlier.step < done {
                return;
            }
            match waits.iter_mut().find(|wait| wait.tb == earlier.tb) {
                Some(wait) => wait.step = wait.step.max(earlier.step),
                None => waits.push(earlier),
            }
        };
        if !step.kind.receives() {
            self.fences[gpu as usize].iter().for_each(|&end| need(end));
        }
        for (cell, writes) in self.accesses(gpu, step) {
            self.writers[cell].iter().for_each(|&writer| need(writer));
            if writes {
                self.readers[cell].iter().for_each(|&reader| need(reader));
            }
        }
        waits
    }

    /// Cells that a step touches, and whether it writes them.
    fn accesses(&self, gpu: u32, step: &Step) -> impl Iterator<Item = (usize, bool)> + use<> {
        let range = |used: bool, place: Place| {
            let first = if used {
                self.cells
                    .of(gpu, self.plan.head.goal.canonical(gpu, place))
            } else {
                0
            };
            first as usize..(first + if used { step.count } else { 0 }) as usize
        };
        let read = range(step.kind.reads(), step.src).map(|cell| (cell, false));
        let written = range(step.kind.writes(), step.dst).map(|cell| (cell, true));
        read.chain(written)
    }

    /// Put a step at the end of a thread block, with a nop for each wait beyond the first.
    pub(super) fn append(&mut self, gpu: u32, tb: u32, step: Step) {
        let waits = self.waits(gpu, tb, &step);
        for wait in &waits {
            let blocks = &mut self.blocks[gpu as usize];
            blocks[wait.tb as usize].steps[wait.step as usize].announced = true;
            let known = &mut blocks[tb as usize].known;
            if known.len() <= wait.tb as usize {
                known.resize(wait.tb as usize + 1, 0);
            }
            known[wait.tb as usize] = wait.step + 1;
        }
        let steps = &mut self.blocks[gpu as usize][tb as usize].steps;
        let nowhere = Place {
            space: Space::Input,
            at: 0,
        };
        let (last, earlier) = match waits.split_last() {
            Some((last, earlier)) => (Some((last.tb, last.step)), earlier),
            None => (None, &[][..]),
        };
        steps.extend(earlier.iter().map(|wait| Step {
            kind: Kind::Nop,
            src: nowhere,
            dst: nowhere,
            count: 0,
            after: Some((wait.tb, wait.step)),
            announced: false,
            own: None,
        }));
        // The runtime joins reductions into one place, and counts chunks once for all; an announced one stands alone.
        if let Some(before) = steps
            .last_mut()
            .filter(|before| before.kind == Kind::Reduce)
        {
            before.announced |= before.count != step.count;
        }
        steps.push(Step {
            after: last,
            ..step
        });
        let at = At {
            tb,
            step: steps.len() as u32 - 1,
        };
        for (cell, writes) in self.accesses(gpu, &step) {
            match writes {
                false => self.readers[cell].push(at),
                true => {
                    self.readers[cell].clear();
                    self.writers[cell] = Some(at);
                }
            }
        }
    }

    /// The plan, once all operations are written.
    pub(super) fn finish(mut self) -> Result<Plan> {
        for (id, blocks) in self.blocks.into_iter().enumerate() {
            let first = self.plan.blocks.len() as u32;
            let nodes = 2 + blocks.len() + blocks.iter().map(|b| b.steps.len()).sum::<usize>();
            if nodes > NODES_WRITTEN {
                return Err(PlanError::whole(format!(
                    "gpu {id} would have {nodes} elements, and the runtime reads {NODES_WRITTEN}; use fewer steps"
                )));
            }
            for mut written in blocks {
                let start = self.plan.steps.len() as u32;
                self.plan.steps.append(&mut written.steps);
                written.block.steps = start..self.plan.steps.len() as u32;
                self.plan.blocks.push(written.block);
            }
            self.plan.gpus[id].blocks = first..self.plan.blocks.len() as u32;
        }
        Ok(self.plan)
    }
}
