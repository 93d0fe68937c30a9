//! Who waits for whom, and the tokens that say so.

use super::names::plain;
use super::Writer;
use crate::mscclpp::json::Name;
use linkwright_schedule::ir::OpKind;
use std::collections::{BTreeMap, BTreeSet};

impl Writer<'_> {
    /// What is fenced waits for the last operation of each lane of its rank, and the next one of each lane for it.
    pub(super) fn find_fences(&mut self) {
        let (mut last, mut fence) = (BTreeMap::new(), BTreeMap::new());
        for (id, op) in (0..).zip(self.schedule.ops()) {
            let (rank, block) = (op.initiator(), self.block_of(id));
            if op.fenced {
                let lanes = last.range((rank, 0)..=(rank, u32::MAX));
                self.fenced
                    .insert(id, lanes.map(|(_, &earlier)| earlier).collect());
                fence.insert(rank, id);
            } else if let Some(&fenced) = fence.get(&rank) {
                if last
                    .get(&(rank, block))
                    .is_none_or(|&earlier| earlier < fenced)
                {
                    self.fenced.insert(id, vec![fenced]);
                }
            }
            last.insert((rank, block), id);
        }
    }

    /// All operations that operation `id` waits for.
    fn awaited(&self, id: u32) -> Vec<u32> {
        let edges = self.schedule.after(id).iter().map(|edge| edge.op());
        let fenced = self.fenced.get(&id).into_iter().flatten().copied();
        edges.chain(fenced).collect()
    }

    pub(super) fn find_tokens(&mut self) {
        for id in 0..self.schedule.ops().len() as u32 {
            let block = self.block_of(id);
            for earlier in self.awaited(id) {
                let from = self.block_of(earlier);
                let targets = &mut self.targets[earlier as usize];
                if from != block && !targets.contains(&block) {
                    targets.push(block);
                    self.tokens.entry((from, block)).or_default().push(earlier);
                }
            }
        }
        self.tokens
            .values_mut()
            .for_each(|list| list.sort_unstable());
    }

    /// A thread block that accesses the buffers of another GPU waits until that GPU has begun.
    pub(super) fn begin(&mut self) {
        let mut accesses = BTreeSet::new();
        for (id, op) in (0..).zip(self.schedule.ops()) {
            let peer = if op.kind == OpKind::Get {
                op.from
            } else {
                op.to
            };
            if matches!(op.kind, OpKind::Put | OpKind::Get) && peer != op.initiator() {
                accesses.insert((self.block_of(id), peer));
            }
        }
        for &(block, peer) in &accesses {
            let op = self.channel_op(Name::RelaxedSignal, self.first[peer as usize], &[block]);
            self.push(self.first[peer as usize], op);
        }
        for &(block, peer) in &accesses {
            let op = self.channel_op(Name::RelaxedWait, block, &[self.first[peer as usize]]);
            self.push(block, op);
        }
    }

    /// Take the tokens that an operation needs, and let the threads meet if what it needs was done by them.
    pub(super) fn wait_for(&mut self, id: u32) {
        let block = self.block_of(id);
        for earlier in self.awaited(id) {
            let from = self.block_of(earlier);
            if from == block {
                if self.blocks[block as usize]
                    .since
                    .is_some_and(|first| first <= earlier)
                {
                    self.meet(block);
                }
                continue;
            }
            let needed = self.tokens[&(from, block)].partition_point(|&op| op <= earlier) as u32;
            self.take(from, block, needed);
        }
        let last = self.blocks[block as usize].ops.last();
        if last.is_some_and(|op| is_wait(op.name)) {
            self.meet(block);
        }
    }

    fn take(&mut self, from: u32, block: u32, needed: u32) {
        while self.taken.get(&(from, block)).copied().unwrap_or(0) < needed {
            *self.taken.entry((from, block)).or_default() += 1;
            let op = match self.near(from, block) {
                true => self.semaphore_op(Name::Acquire, from, block),
                false => self.channel_op(Name::Wait, block, &[from]),
            };
            self.push(block, op);
        }
    }

    /// Send the tokens of an operation.
    pub(super) fn tell(&mut self, id: u32) {
        let block = self.block_of(id);
        for target in std::mem::take(&mut self.targets[id as usize]) {
            self.send(block, target);
        }
    }

    fn send(&mut self, block: u32, target: u32) {
        if !self.blocks[block as usize]
            .ops
            .last()
            .is_some_and(|op| is_signal(op.name))
        {
            self.meet(block);
        }
        *self.sent.entry((block, target)).or_default() += 1;
        let op = match self.near(block, target) {
            true => self.semaphore_op(Name::Release, block, target),
            false => self.channel_op(Name::Signal, block, &[target]),
        };
        self.accessed
            .remove(&(block, self.blocks[target as usize].rank));
        self.push(block, op);
    }

    /// A GPU ends when it knows that all accesses to its buffers are done.
    pub(super) fn end(&mut self) {
        for (block, rank) in std::mem::take(&mut self.accessed) {
            self.send(block, self.first[rank as usize]);
        }
        for ((from, block), sent) in std::mem::take(&mut self.sent) {
            self.take(from, block, sent);
        }
    }

    fn meet(&mut self, block: u32) {
        let block = &mut self.blocks[block as usize];
        if block.open {
            block.ops.push(plain(Name::Nop));
            (block.open, block.since) = (false, None);
        }
    }
}

fn is_wait(name: Name) -> bool {
    matches!(name, Name::Wait | Name::RelaxedWait | Name::Acquire)
}

fn is_signal(name: Name) -> bool {
    matches!(name, Name::Signal | Name::Release)
}
