//! Shortest ways through the graph.
//!
//! A way has as few links as possible; a breadth-first search over links in file order breaks ties, so the same file
//! gives the same ways. The search from a source stops at the target and resumes there when a farther target is
//! needed: an all-to-all searches once per source, a ring hardly at all.

use super::topology::Topology;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;
/// Most nodes kept in all trees, four bytes each; beyond that, all trees are dropped and grow again.
const KEPT: usize = 1 << 24;

/// What ways may use.
#[derive(Clone, Copy)]
pub(super) struct Terrain<'a> {
    pub topology: &'a Topology,
    /// By class of links, whether they may be used.
    pub classes: &'a [bool],
    /// Whether ranks relay data for others.
    pub relays: bool,
}

/// A rank without any connection to rank 0.
pub(super) fn cut_off(topology: &Topology) -> Option<u32> {
    let terrain = Terrain {
        topology,
        classes: &topology.every_class(),
        relays: true,
    };
    let mut tree = Tree::new(0, topology.names.len());
    (1..topology.ranks).find(|&rank| !tree.reaches(rank, terrain))
}

/// The shortest paths from one source, as far as they have been needed.
#[derive(Debug)]
pub(super) struct Tree {
    source: u32,
    /// The link into each node.
    into: Vec<u32>,
    /// Nodes whose links are still to be followed.
    border: VecDeque<u32>,
}

impl Tree {
    pub fn new(source: u32, nodes: usize) -> Self {
        Tree {
            source,
            into: vec![NONE; nodes],
            border: VecDeque::from([source]),
        }
    }

    /// Whether a way leads to `target`.
    pub fn reaches(&mut self, target: u32, terrain: Terrain<'_>) -> bool {
        while target != self.source && self.into[target as usize] == NONE {
            let Some(node) = self.border.pop_front() else {
                return false;
            };
            self.follow(node, terrain);
        }
        true
    }

    fn follow(&mut self, node: u32, terrain: Terrain<'_>) {
        let topology = terrain.topology;
        let carries = node >= topology.endpoints || terrain.relays && node < topology.ranks;
        if node != self.source && !carries {
            return;
        }
        for &link in topology.out(node) {
            let end = &topology.links[link as usize];
            let free = end.to != self.source && self.into[end.to as usize] == NONE;
            if free && terrain.classes[end.class as usize] {
                self.into[end.to as usize] = link;
                self.border.push_back(end.to);
            }
        }
    }

    /// Append the links to `target`, which it reaches.
    fn way(&self, target: u32, topology: &Topology, links: &mut Vec<u32>) {
        let (first, mut node) = (links.len(), target);
        while node != self.source {
            let link = self.into[node as usize];
            links.push(link);
            node = topology.begins[link as usize];
        }
        links[first..].reverse();
    }
}

/// The trees of all sources, by source and terrain.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// By source and number of the terrain.
    trees: FxHashMap<(u32, u64), Tree>,
}

impl Trees {
    /// The number of links from `source` to each node that is no farther than `target`; `None` if there is no way to it.
    pub fn depths<'a>(
        &'a mut self,
        (source, target): (u32, u32),
        (number, terrain): (u64, Terrain<'a>),
    ) -> Option<impl Fn(u32) -> Option<u32> + 'a> {
        let tree = self.tree(source, (number, terrain));
        if !tree.reaches(target, terrain) {
            return None;
        }
        Some(move |mut node: u32| {
            let mut depth = 0;
            while node != tree.source {
                let link = tree.into[node as usize];
                if link == NONE {
                    return None;
                }
                node = terrain.topology.begins[link as usize];
                depth += 1;
            }
            Some(depth)
        })
    }

    fn tree(&mut self, source: u32, (number, terrain): (u64, Terrain<'_>)) -> &mut Tree {
        let nodes = terrain.topology.names.len();
        if self.trees.len() * nodes > KEPT {
            self.trees.clear();
        }
        (self.trees.entry((source, number))).or_insert_with(|| Tree::new(source, nodes))
    }

    /// Append the links of the way from `source` to `target` over terrain number `number`; whether there is one.
    pub fn way(
        &mut self,
        (source, target): (u32, u32),
        (number, terrain): (u64, Terrain<'_>),
        links: &mut Vec<u32>,
    ) -> bool {
        let tree = self.tree(source, (number, terrain));
        let reached = tree.reaches(target, terrain);
        if reached {
            tree.way(target, terrain.topology, links);
        }
        reached
    }
}
