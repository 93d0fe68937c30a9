//! Who sends which chunk to whom, before it has an order.
//!
//! A *task* moves one chunk over one pair. It waits for the earlier tasks of its plan that bring the same chunk to its
//! sender; nothing else has to be said. Chunk `b * slices + s` is slice s of block b.

use super::packing::Tree;
use super::wires::Wires;
use linkwright_schedule::Collective;

/// Most lanes of a rank, besides the compute lane.
pub(super) const MOST_LANES: u32 = 254;

/// One chunk over one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Pair of the network.
    pub pair: u32,
    /// What it moves: slice of a block; of personalised collectives, block = sender * ranks + receiver.
    pub chunk: u32,
    /// Whether the receiver adds it.
    pub reduce: bool,
}

/// All tasks, each behind those that it waits for.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Blocks of the vector.
    pub blocks: u32,
    /// Slices of each block.
    pub slices: u32,
}

impl Plan {
    /// By pair, one of the `lanes` of its initiator, which take turns in the order in which pairs are first used.
    pub(super) fn lanes(&self, wires: &Wires, lanes: u32) -> Vec<u8> {
        let mut next = vec![0u32; wires.endpoints() as usize];
        let mut lane = vec![u8::MAX; wires.pairs().len()];
        for task in &self.tasks {
            let (from, known) = (
                &mut next[wires.initiator(task.pair) as usize],
                &mut lane[task.pair as usize],
            );
            if *known == u8::MAX {
                *known = (*from % lanes.clamp(1, MOST_LANES)) as u8;
                *from += 1;
            }
        }
        lane
    }

    /// For each task, those that wait for it, and how many it waits for.
    pub(super) fn order(&self, wires: &Wires) -> (Vec<Vec<u32>>, Vec<u32>) {
        let n = wires.endpoints() as usize;
        let chunks = self.tasks.iter().map(|task| task.chunk as usize + 1).max();
        let mut arrivals: Vec<Vec<u32>> = vec![Vec::new(); chunks.unwrap_or(0) * n];
        let mut waiting = vec![Vec::new(); self.tasks.len()];
        let mut count = vec![0; self.tasks.len()];
        for (id, task) in (0u32..).zip(&self.tasks) {
            let pair = wires.pair(task.pair);
            let cell = task.chunk as usize * n;
            for &earlier in &arrivals[cell + pair.from as usize] {
                waiting[earlier as usize].push(id);
                count[id as usize] += 1;
            }
            arrivals[cell + pair.to as usize].push(id);
        }
        (waiting, count)
    }
}

/// Which way data take the trees of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the roots to all, which keep it.
    Spread,
    /// From all to the roots, combined on the way.
    Collect,
    /// To the roots, then back.
    Both,
}

impl Way {
    /// Which way the data of `collective` take; `None`: each has a receiver of its own.
    pub fn of(collective: Collective) -> Option<Self> {
        match collective {
            Collective::Allgather | Collective::Broadcast => Some(Way::Spread),
            Collective::ReduceScatter | Collective::Reduce => Some(Way::Collect),
            Collective::Allreduce => Some(Way::Both),
            _ => None,
        }
    }

    /// The plan that collects as `up`, a plan on the reversed network, says backwards, and spreads as `down` says.
    pub fn plan(self, up: &Plan, down: &Plan) -> Plan {
        let collected = up.tasks.iter().rev().map(|task| Task {
            reduce: true,
            ..*task
        });
        let spread = down.tasks.iter().copied();
        Plan {
            blocks: up.blocks.max(down.blocks),
            slices: up.slices.max(down.slices),
            tasks: match self {
                Way::Spread => spread.collect(),
                Way::Collect => collected.collect(),
                Way::Both => collected.chain(spread).collect(),
            },
        }
    }
}

/// Data go down `trees`, of which each block has as many, in pieces that follow each other in this order.
pub fn down(trees: &[Tree], blocks: u32, order: impl ExactSizeIterator<Item = u32>) -> Plan {
    let pieces = order.len() as u32;
    let each = trees.len() as u32 / blocks;
    let slices = each * pieces;
    let mut tasks = Vec::new();
    for piece in order {
        for (number, tree) in (0u32..).zip(trees) {
            let (block, part) = (number / each, number % each);
            let chunk = block * slices + piece * each + part;
            let task = |&pair: &u32| Task {
                pair,
                chunk,
                reduce: false,
            };
            tasks.extend(tree.pairs.iter().map(task));
        }
    }
    Plan {
        tasks,
        blocks,
        slices,
    }
}
