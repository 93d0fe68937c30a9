//! A walk through a thread block: where its threads meet, and what is in order between such places.

use super::Maker;
use crate::error::Result;
use crate::mscclpp::plan::{Action, Data, Part, Steps};
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
        let (plan, mut walk) = (self.plan, Walk::default());
        for op in plan.blocks[block as usize].ops.clone() {
            let order = &mut self.out.order;
            order.epoch[op as usize] = walk.epoch;
            order.later.extend(walk.last.map(|last| (last, op)));
            order.seen.extend(walk.met.map(|met| (met, op)));
            let mut end = op;
            match plan.ops[op as usize].action {
                Action::Nop => self.meet(&mut walk, op, op),
                Action::Barrier(id, count) => {
                    end = self.arrive(op, id, count, &mut walk);
                    self.meet(&mut walk, op, end);
                }
                Action::Data(data) => end = self.data(&mut walk, op, data)?,
                Action::Post(names, relaxed) => {
                    self.control(&mut walk, op, names);
                    for &name in plan.names(names) {
                        self.post(&mut walk, op, name, relaxed)?;
                    }
                }
                Action::Take(names, relaxed) => {
                    self.control(&mut walk, op, names);
                    for &name in plan.names(names) {
                        self.enter(true, name, op, relaxed)?;
                    }
                }
                Action::Flush(ends) => {
                    self.control(&mut walk, op, ends);
                    for end in plan.names(ends) {
                        self.all_before(op, &walk.put.remove(end).unwrap_or_default());
                    }
                }
            }
            walk.last = Some(end);
            walk.since.push(end);
        }
        Ok(())
    }

    /// The data of all `earlier` are seen by `event`.
    fn all_before(&mut self, event: u32, earlier: &[u32]) {
        let edges = earlier.iter().map(|&earlier| (earlier, event));
        self.out.order.seen.extend(edges);
    }

    /// The threads of the block meet in `op` and go on from `event`.
    fn meet(&mut self, walk: &mut Walk, op: u32, event: u32) {
        self.all_before(op, &std::mem::take(&mut walk.since));
        self.out.order.meets[op as usize] = true;
        (walk.met, walk.single, walk.epoch) = (Some(event), None, walk.epoch + 1);
    }

    /// Entry k of such an operation is done by thread k, so two with one entry each are in order.
    fn control(&mut self, walk: &mut Walk, op: u32, part: Part) {
        if part.1 - part.0 == 1 {
            let earlier = walk.single.replace(op);
            self.all_before(op, earlier.as_slice());
        }
    }

    /// The thread block comes to the next round of a barrier; gives when it goes on.
    fn arrive(&mut self, op: u32, id: u32, count: u32, walk: &mut Walk) -> u32 {
        let gpu = self.plan.blocks[self.out.order.block[op as usize] as usize].gpu;
        let at = walk.rounds.entry(id).or_insert(0);
        let rounds = self.rounds.entry((gpu, id)).or_default();
        if rounds.len() == *at {
            rounds.push((self.out.order.event(op), Some(count), Vec::new()));
        }
        let (event, needed, came) = &mut rounds[*at];
        *at += 1;
        // Who names another number of thread blocks never meets these.
        *needed = needed.filter(|&needed| needed == count);
        came.push(op);
        self.out.order.seen.push((op, *event));
        *event
    }

    /// Data that the threads move are done with the operation; a port channel carries them away later.
    fn data(&mut self, walk: &mut Walk, op: u32, data: Data) -> Result<u32> {
        let moves = data.moves.0..data.moves.1;
        if data.ports.0 == data.ports.1 {
            moves.for_each(|made| self.out.done[made as usize] = op);
            return Ok(op);
        }
        let mut left = vec![op];
        for (made, &end) in moves.zip(self.plan.names(data.ports)) {
            let done = self.out.order.event(op);
            self.all_before(done, &[op]);
            self.out.done[made as usize] = done;
            walk.carried.entry(end).or_default().push(done);
            walk.put.entry(end).or_default().push(done);
            left.push(done);
            if data.signals {
                self.post(walk, op, end, false)?;
            }
        }
        if !data.flushes {
            return Ok(op);
        }
        let end = self.out.order.event(op);
        self.all_before(end, &left);
        Ok(end)
    }

    /// Count up, behind what the channel has carried so far.
    fn post(&mut self, walk: &mut Walk, op: u32, name: u32, relaxed: bool) -> Result<()> {
        let mut before = walk.carried.remove(&name).unwrap_or_default();
        before.extend(walk.arrived.get(&name));
        if before.is_empty() {
            return self.enter(false, name, op, relaxed);
        }
        let event = self.out.order.event(op);
        before.push(op);
        self.all_before(event, &before);
        walk.arrived.insert(name, event);
        self.enter(false, name, event, relaxed)
    }

    /// Enter a use; two thread blocks that use the same would not know whose turn it is.
    fn enter(&mut self, takes: bool, name: u32, event: u32, relaxed: bool) -> Result<()> {
        let order = &self.out.order;
        let block = |event: u32| order.block[order.owner[event as usize] as usize];
        let uses = match takes {
            true => &mut self.takes[name as usize],
            false => &mut self.posts[name as usize],
        };
        match uses.first().map(|first| block(first.0)) {
            Some(first) if first != block(event) => {
                let other = self.plan.blocks[first as usize].id;
                let problem = format!(
                    "threadblock {other} uses this channel or semaphore in the same way, and nothing says whose turn it \
                     is; give each its own"
                );
                self.plan.error(order.owner[event as usize], problem)
            }
            _ => {
                uses.push((event, relaxed));
                Ok(())
            }
        }
    }
}
