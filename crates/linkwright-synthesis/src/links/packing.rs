//! Trees over all endpoints that together load no link more than necessary.
//!
//! ```text
//!   root 0          tree 0: 0 > 1 > 2 > 3        tree 1: 0 > 3 > 2 > 1         each carries half of what 0 sends
//! ```
//!
//! What a root sends is cut into as many parts as it has trees, and pieces of a part follow each other down its tree.
//! For large data only the busiest link counts, and the best trees are those of Edmonds: as many as the narrowest cut
//! allows. Here trees are grown one by one, each over what is cheapest at the prices of [`super::loads`], and then
//! taken out and grown again until the busiest link is no less busy. This serves links that several pairs share and
//! many roots at once (allgather). A memory is on a tree only where the cheapest way to the next rank leads over it.
//!
//! Source: Wang and others, "Blink: Fast and generic collectives for distributed ML" (MLSys 2020), trees packed by
//! multiplicative weights; Zhao and others, "ForestColl: Throughput-optimal collective communications on heterogeneous
//! network fabrics" (2024), one set of trees for each rank.

use super::loads::Loads;
use super::wires::Wires;

/// A spanning tree: its root, and its pairs in an order in which each begins at an endpoint reached before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Where it begins.
    pub root: u32,
    /// Its pairs.
    pub pairs: Vec<u32>,
}

/// How trees are grown.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Trees of each root.
    pub trees: u32,
    /// How much more a pair costs for each generation between the root and it.
    pub depth: f64,
    /// Times that every tree is taken out and grown again.
    pub rounds: u32,
}

/// Trees from each of `roots`, by root, and the load of the busiest link: seconds that 1 GB down every tree keeps it.
pub fn pack(wires: &Wires, roots: &[u32], growth: Growth) -> (Vec<Tree>, f64) {
    let mut loads = Loads::new(wires);
    loads.sharpen(SHARP[0]);
    let mut room = Room::new(wires);
    let all = roots
        .iter()
        .flat_map(|&root| (0..growth.trees).map(move |_| root));
    let mut trees: Vec<Tree> = all
        .map(|root| room.grow(&mut loads, root, growth.depth))
        .collect();
    let mut best = (trees.clone(), loads.busiest(), loads.total());
    for round in 0..growth.rounds {
        loads.sharpen(SHARP[(round as usize).min(SHARP.len() - 1)]);
        for tree in &mut trees {
            tree.pairs.iter().for_each(|&pair| loads.add(pair, -1.0));
            *tree = room.grow(&mut loads, tree.root, growth.depth);
        }
        let (busiest, total) = (loads.busiest(), loads.total());
        if (busiest, total) < (best.1 * (1.0 - 1e-9), f64::INFINITY)
            || busiest < best.1 * (1.0 + 1e-9) && total < best.2
        {
            best = (trees.clone(), busiest, total);
        }
    }
    (best.0, best.1)
}

/// Sharpness of the prices, round by round.
const SHARP: [f64; 6] = [4.0, 8.0, 12.0, 16.0, 24.0, 32.0];

/// Room in which trees grow.
struct Room<'a> {
    wires: &'a Wires,
    depth: Vec<u32>,
}

const OUTSIDE: u32 = u32::MAX;

impl<'a> Room<'a> {
    fn new(wires: &'a Wires) -> Self {
        Room {
            wires,
            depth: vec![OUTSIDE; wires.endpoints() as usize],
        }
    }

    /// A tree from `root` that takes the cheapest pair again and again; every one that it takes changes the prices.
    fn grow(&mut self, loads: &mut Loads<'_>, root: u32, deeper: f64) -> Tree {
        self.depth.fill(OUTSIDE);
        self.depth[root as usize] = 0;
        let mut inside = vec![root];
        let mut pairs = Vec::new();
        for _ in 1..self.wires.ranks() {
            let (memory, last) = self.cheapest(loads, &inside, deeper);
            for next in memory.into_iter().chain([last]) {
                let pair = self.wires.pair(next);
                self.depth[pair.to as usize] = self.depth[pair.from as usize] + 1;
                inside.push(pair.to);
                loads.add(next, 1.0);
                pairs.push(next);
            }
        }
        Tree { root, pairs }
    }

    /// The last pair of the cheapest way to a new rank, and the pair before it, to a new memory, if the way has one.
    fn cheapest(&self, loads: &Loads<'_>, inside: &[u32], deeper: f64) -> (Option<u32>, u32) {
        let mut best = (f64::INFINITY, None, u32::MAX);
        let is_outside = |pair: &u32| self.depth[self.wires.pair(*pair).to as usize] == OUTSIDE;
        for &from in inside {
            let far = 1.0 + deeper * f64::from(self.depth[from as usize]);
            for &pair in self.wires.out(from).iter().filter(|pair| is_outside(pair)) {
                let (to, cost) = (self.wires.pair(pair).to, loads.cost(pair) * far);
                if to < self.wires.ranks() {
                    if cost < best.0 {
                        best = (cost, None, pair);
                    }
                    continue;
                }
                for &last in self.wires.out(to).iter().filter(|pair| is_outside(pair)) {
                    let cost = cost + loads.cost(last) * (far + deeper);
                    if cost < best.0 {
                        best = (cost, Some(pair), last);
                    }
                }
            }
        }
        (best.1, best.2)
    }
}
