//! A walk through a thread block: where its threads meet, and what is in order between such places.

use super::{Maker, Uses};
use crate::error::Result;
use crate::mscclpp::plan::{Action, Data, Part, Plan, Steps};
use crate::skeleton::NONE;
use std::collections::BTreeMap;

/// What has happened in a thread block so far.
#[derive(Default)]
struct Walk {
    last: Option<u32>,
    /// Where the threads last met, and what they have done since.
    met: Option<u32>,
    since: Vec<u32>,
    epoch: u32,
    /// Last signal, wait, ... of the first thread since then.
    single: Option<u32>,
    rounds: BTreeMap<u32, usize>,
    /// Puts that a port channel has carried since its last signal, and since its last flush.
    carried: BTreeMap<u32, Vec<u32>>,
    put: BTreeMap<u32, Vec<u32>>,
    /// When the last signal of a port channel that carried data arrived.
    arrived: BTreeMap<u32, u32>,
}

impl Maker<'_> {
    pub(super) fn block(&mut self, block: u32) -> Result<()> {
        let mut walk = Walk::default();
        for op in self.plan.blocks[block as usize].ops.clone() {
            self.out.order.epoch[op as usize] = walk.epoch;
            self.out
                .order
                .later
                .extend(walk.last.map(|last| (last, op)));
            self.out.order.seen.extend(walk.met.map(|met| (met, op)));
            let end = match self.plan.ops[op as usize].action {
                Action::Nop => self.meet(&mut walk, op, op),
                Action::Barrier(id, count) => {
                    let round = self.arrive(block, op, id, count, &mut walk);
                    self.meet(&mut walk, op, round)
                }
                Action::Data(data) => self.data(&mut walk, block, op, data)?,
                Action::Signal(ends, relaxed) => {
                    self.control(&mut walk, op, ends);
                    for &end in self.plan.names(ends) {
                        self.signal(&mut walk, block, op, end, relaxed)?;
                    }
                    op
                }
                Action::Wait(ends, relaxed) => {
                    self.control(&mut walk, op, ends);
                    for &end in self.plan.names(ends) {
                        use_of(
                            self.plan,
                            &mut self.waits[end as usize],
                            block,
                            op,
                            op,
                            relaxed,
                        )?;
                    }
                    op
                }
                Action::Flush(ends) => {
                    self.control(&mut walk, op, ends);
                    for end in self.plan.names(ends) {
                        let left = walk.put.remove(end).into_iter().flatten();
                        self.out.order.seen.extend(left.map(|done| (done, op)));
                    }
                    op
                }
                Action::Release(semaphores) => {
                    self.control(&mut walk, op, semaphores);
                    for &semaphore in self.plan.names(semaphores) {
                        use_of(
                            self.plan,
                            &mut self.releases[semaphore as usize],
                            block,
                            op,
                            op,
                            false,
                        )?;
                    }
                    op
                }
                Action::Acquire(semaphores) => {
                    self.control(&mut walk, op, semaphores);
                    for &semaphore in self.plan.names(semaphores) {
                        use_of(
                            self.plan,
                            &mut self.acquires[semaphore as usize],
                            block,
                            op,
                            op,
                            false,
                        )?;
                    }
                    op
                }
            };
            walk.last = Some(end);
            walk.since.push(end);
        }
        Ok(())
    }

    /// The threads of the block meet in `op` and go on from `node`.
    fn meet(&mut self, walk: &mut Walk, op: u32, node: u32) -> u32 {
        self.out
            .order
            .seen
            .extend(walk.since.drain(..).map(|earlier| (earlier, op)));
        self.out.order.meets[op as usize] = true;
        (walk.met, walk.single, walk.epoch) = (Some(node), None, walk.epoch + 1);
        node
    }

    /// Entry k of such an operation is done by thread k, so two with one entry each are in order.
    fn control(&mut self, walk: &mut Walk, op: u32, part: Part) {
        if part.1 - part.0 == 1 {
            self.out
                .order
                .seen
                .extend(walk.single.map(|earlier| (earlier, op)));
            walk.single = Some(op);
        }
    }

    fn arrive(&mut self, block: u32, op: u32, id: u32, count: u32, walk: &mut Walk) -> u32 {
        let gpu = self.plan.blocks[block as usize].gpu;
        let round = walk.rounds.entry(id).or_insert(0);
        let at = *round;
        *round += 1;
        if self
            .rounds
            .get(&(gpu, id))
            .is_none_or(|rounds| rounds.len() <= at)
        {
            let node = self.out.order.event(op);
            self.rounds
                .entry((gpu, id))
                .or_default()
                .push((node, count, Vec::new()));
        }
        let mut node = NONE;
        if let Some(round) = self
            .rounds
            .get_mut(&(gpu, id))
            .and_then(|rounds| rounds.get_mut(at))
        {
            // Who names another number of thread blocks never meets these.
            if round.1 != count {
                round.1 = NONE;
            }
            round.2.push(op);
            node = round.0;
        }
        self.out.order.seen.push((op, node));
        node
    }

    /// Data that the threads move are done with the operation; a port channel carries them away later.
    fn data(&mut self, walk: &mut Walk, block: u32, op: u32, data: Data) -> Result<u32> {
        let moves = data.moves.0..data.moves.1;
        if data.ports.0 == data.ports.1 {
            moves.for_each(|made| self.out.done[made as usize] = op);
            return Ok(op);
        }
        let mut left = Vec::new();
        for made in moves {
            let end = self.plan.names[(data.ports.0 + made - data.moves.0) as usize];
            let done = self.out.order.event(op);
            self.out.order.seen.push((op, done));
            self.out.done[made as usize] = done;
            walk.carried.entry(end).or_default().push(done);
            walk.put.entry(end).or_default().push(done);
            left.push(done);
            if data.signals {
                self.signal(walk, block, op, end, false)?;
            }
        }
        if !data.flushes {
            return Ok(op);
        }
        let end = self.out.order.event(op);
        self.out.order.seen.push((op, end));
        self.out
            .order
            .seen
            .extend(left.into_iter().map(|done| (done, end)));
        Ok(end)
    }

    /// A signal, behind what the channel has carried so far.
    fn signal(
        &mut self,
        walk: &mut Walk,
        block: u32,
        op: u32,
        end: u32,
        relaxed: bool,
    ) -> Result<()> {
        let carried = walk.carried.remove(&end).unwrap_or_default();
        let mut node = op;
        if !carried.is_empty() || walk.arrived.contains_key(&end) {
            node = self.out.order.event(op);
            self.out.order.seen.push((op, node));
            self.out
                .order
                .seen
                .extend(carried.iter().map(|&done| (done, node)));
            self.out
                .order
                .seen
                .extend(walk.arrived.get(&end).map(|&before| (before, node)));
            walk.arrived.insert(end, node);
        }
        use_of(
            self.plan,
            &mut self.signals[end as usize],
            block,
            op,
            node,
            relaxed,
        )
    }
}

/// Enter a use; two thread blocks that use the same would not know whose turn it is.
fn use_of(
    plan: &Plan,
    uses: &mut Uses,
    block: u32,
    op: u32,
    node: u32,
    relaxed: bool,
) -> Result<()> {
    let first = *uses.block.get_or_insert(block);
    if first != block {
        let other = plan.blocks[first as usize].id;
        return plan.error(
            op,
            format!(
                "threadblock {other} uses this channel or semaphore in the same way, and nothing says whose turn it is; \
                 give each its own"
            ),
        );
    }
    uses.list.push((node, relaxed));
    Ok(())
}
