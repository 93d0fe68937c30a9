//! Shortest ways through the graph.
//!
//! A way has as few links as possible; a breadth-first search over links in file order breaks ties, so the same file
//! gives the same ways. The search from a source stops at the target and resumes there when a farther target is
//! needed: an all-to-all searches once per source, a ring hardly at all.
//!
//! In a large graph such a tree holds nearly every node as soon as a way leads over the top switches. The first few
//! targets of a source are therefore found by [`super::meeting`], which looks at the nodes around both ends only. A
//! target that many sources ask for has a [`Table`] of the distances to it.

use super::meeting::{first_way, neighbours, Between};
use super::topology::{Terrain, Topology};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;
/// Most words of four bytes kept in all trees; beyond that, all trees are dropped and grow again.
const KEPT: usize = 1 << 24;
/// Graphs of so many nodes are searched by trees alone.
const SMALL: usize = 1 << 12;
/// A table is shorter than a map of more than one in so many nodes.
const SPARSE: usize = 16;
/// Targets of a source that are found by searches from both ends; a tree serves a source that has more.
const MEETINGS: u32 = 16;
/// Meetings of a target with its sources; a table serves a target that has more.
const SOURCES: u32 = 1 << 10;

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
    into: Links,
    /// Nodes whose links are still to be followed.
    border: VecDeque<u32>,
}

/// The link into each node that a search has reached. Near a source that is a few of very many.
#[derive(Debug)]
enum Links {
    Few(FxHashMap<u32, u32>),
    Any(Vec<u32>),
}

impl Links {
    fn get(&self, node: u32) -> Option<u32> {
        let link = match self {
            Links::Few(links) => links.get(&node).copied(),
            Links::Any(links) => Some(links[node as usize]),
        };
        link.filter(|&link| link != NONE)
    }

    fn set(&mut self, node: u32, link: u32, nodes: usize) {
        match self {
            Links::Any(links) => links[node as usize] = link,
            Links::Few(links) => {
                links.insert(node, link);
                if links.len() * SPARSE > nodes {
                    let mut all = vec![NONE; nodes];
                    (links.iter()).for_each(|(&node, &link)| all[node as usize] = link);
                    *self = Links::Any(all);
                }
            }
        }
    }

    /// Words of memory.
    fn size(&self) -> usize {
        match self {
            Links::Few(links) => 4 * links.len(),
            Links::Any(links) => links.len(),
        }
    }
}

impl Tree {
    pub fn new(source: u32, nodes: usize) -> Self {
        Tree {
            source,
            into: match nodes > SMALL {
                true => Links::Few(FxHashMap::default()),
                false => Links::Any(vec![NONE; nodes]),
            },
            border: VecDeque::from([source]),
        }
    }

    /// Whether a way leads to `target`.
    pub fn reaches(&mut self, target: u32, terrain: Terrain<'_>) -> bool {
        while target != self.source && self.into.get(target).is_none() {
            let Some(node) = self.border.pop_front() else {
                return false;
            };
            self.follow(node, terrain);
        }
        true
    }

    fn follow(&mut self, node: u32, terrain: Terrain<'_>) {
        let topology = terrain.topology;
        if node != self.source && !terrain.carries(node) {
            return;
        }
        for &link in topology.out(node) {
            let end = &topology.links[link as usize];
            let free = end.to != self.source && self.into.get(end.to).is_none();
            if free && terrain.classes[end.class as usize] {
                self.into.set(end.to, link, topology.names.len());
                self.border.push_back(end.to);
            }
        }
    }

    /// Append the links to `target`, which it reaches.
    fn way(&self, target: u32, topology: &Topology, links: &mut Vec<u32>) {
        let (first, mut node) = (links.len(), target);
        while node != self.source {
            let link = self.into.get(node).expect("the search came here");
            links.push(link);
            node = topology.begins[link as usize];
        }
        links[first..].reverse();
    }

    /// The number of links to `node`; `None` where the search has not come there.
    fn depth(&self, mut node: u32, topology: &Topology) -> Option<u32> {
        let mut depth = 0;
        while node != self.source {
            node = topology.begins[self.into.get(node)? as usize];
            depth += 1;
        }
        Some(depth)
    }
}

/// The number of links from each node to one target; `NONE` where no way leads there.
type Table = Vec<u32>;

/// The distances of all nodes to `target`.
fn distances(target: u32, terrain: Terrain<'_>) -> Table {
    let mut links = vec![NONE; terrain.topology.names.len()];
    links[target as usize] = 0;
    let mut waiting = VecDeque::from([target]);
    while let Some(node) = waiting.pop_front() {
        for before in neighbours(node, false, terrain) {
            if links[before as usize] == NONE {
                links[before as usize] = links[node as usize] + 1;
                if terrain.carries(before) {
                    waiting.push_back(before);
                }
            }
        }
    }
    links
}

/// Source and target, and the number of the terrain.
type Asked = ((u32, u32), u64);

/// What has been found between sources and targets.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// By source and number of the terrain.
    trees: FxHashMap<(u32, u64), Tree>,
    /// Words of memory that they take.
    kept: usize,
    /// By target and number of the terrain.
    tables: FxHashMap<(u32, u64), Table>,
    /// Meetings of each source that has no tree, and of each target that has no table.
    meetings: [FxHashMap<(u32, u64), u32>; 2],
    /// The last meeting: a way is often followed by a look at all that are as short.
    last: Option<(Asked, Between)>,
}

/// All that a search knows about the ways from a source to a target.
enum Search<'a> {
    Tree(&'a Tree),
    Met(&'a Between),
    Table(&'a Table),
}

impl Trees {
    /// How many links each node on a shortest way to `target` is away from `source`; `None` if there is no way. For
    /// other nodes the result is undefined.
    pub fn depths<'a>(
        &'a mut self,
        ends: (u32, u32),
        (number, terrain): (u64, Terrain<'a>),
    ) -> Option<impl Fn(u32) -> Option<u32> + 'a> {
        let search = self.search(ends, (number, terrain))?;
        let towards = match search {
            Search::Table(table) => Some(Between::towards(ends, table, terrain)),
            _ => None,
        };
        Some(move |node: u32| match (&towards, &search) {
            (None, Search::Tree(tree)) => tree.depth(node, terrain.topology),
            (Some(between), _) => between.depth(node),
            (None, Search::Met(between)) => between.depth(node),
            (None, Search::Table(_)) => unreachable!("a table has its ways"),
        })
    }

    /// Append the links of the way from `source` to `target` over terrain number `number`; whether there is one.
    pub fn way(
        &mut self,
        (source, target): (u32, u32),
        (number, terrain): (u64, Terrain<'_>),
        links: &mut Vec<u32>,
    ) -> bool {
        match self.search((source, target), (number, terrain)) {
            Some(Search::Tree(tree)) => tree.way(target, terrain.topology, links),
            Some(Search::Met(between)) => {
                let total = between.depth(target).unwrap_or(0);
                let rest = |node| between.depth(node).map(|depth| total - depth);
                first_way((source, target), rest, terrain, links);
            }
            Some(Search::Table(table)) => {
                let rest = |node: u32| Some(table[node as usize]).filter(|&rest| rest != NONE);
                first_way((source, target), rest, terrain, links);
            }
            None => return false,
        }
        true
    }

    /// The search that leads from `source` to `target`, if there is a way.
    fn search(
        &mut self,
        (source, target): (u32, u32),
        (number, terrain): (u64, Terrain<'_>),
    ) -> Option<Search<'_>> {
        let (nodes, by_source) = (terrain.topology.names.len(), (source, number));
        if self.kept > KEPT {
            self.trees.clear();
            self.tables.clear();
            self.kept = 0;
        }
        if nodes > SMALL && !self.trees.contains_key(&by_source) {
            let asked = ((source, target), number);
            let known = self.last.as_ref().is_some_and(|(last, _)| *last == asked);
            if known {
                return self.last.as_ref().map(|(_, between)| Search::Met(between));
            }
            let [of_source, of_target] = &mut self.meetings;
            let of_source = of_source.entry(by_source).or_default();
            let of_target = of_target.entry((target, number)).or_default();
            if *of_target >= SOURCES {
                let kept = &mut self.kept;
                let table = self.tables.entry((target, number)).or_insert_with(|| {
                    *kept += nodes;
                    distances(target, terrain)
                });
                return (table[source as usize] != NONE).then_some(Search::Table(table));
            }
            if *of_source < MEETINGS {
                *of_source += 1;
                *of_target += 1;
                self.last = Some((asked, Between::new((source, target), terrain)?));
                return self.last.as_ref().map(|(_, between)| Search::Met(between));
            }
        }
        let before = self
            .trees
            .get(&by_source)
            .map_or(0, |tree| tree.into.size());
        let tree = (self.trees.entry(by_source)).or_insert_with(|| Tree::new(source, nodes));
        let reached = tree.reaches(target, terrain);
        self.kept += tree.into.size() - before;
        reached.then_some(Search::Tree(tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_core::TimePs;

    /// A graph of `switches` switches joined at random, each with two ranks; links of two classes.
    fn graph(switches: u32, seed: u64) -> Topology {
        let (ranks, mut state) = (2 * switches, seed);
        let names = (0..ranks + switches).map(|node| node.to_string()).collect();
        let mut topology = Topology::new(names, ranks, ranks);
        let mut draw = |below: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32 % below
        };
        let mut join = |a: u32, b: u32, class: u32| topology.connect(a, b, class, 1, TimePs::ZERO);
        for rank in 0..ranks {
            join(rank, ranks + rank / 2, 0);
        }
        for _ in 0..3 * switches {
            let (a, b) = (draw(switches), draw(switches));
            if a != b {
                join(ranks + a, ranks + b, draw(4) / 3);
            }
        }
        for _ in 0..switches / 4 {
            join(draw(ranks), ranks + draw(switches), 1);
        }
        topology
    }

    /// Searches from both ends find the way that a tree finds, and the same depths along all shortest ways.
    #[test]
    fn meetings_find_what_trees_find() {
        for seed in 0..60 {
            let topology = graph(3 + seed as u32 % 20, seed);
            let classes = [true, seed % 3 != 0];
            let terrain = Terrain {
                topology: &topology,
                classes: &classes,
                relays: seed % 2 == 0,
            };
            for (source, target) in (0..topology.ranks)
                .flat_map(|a| [(a, (a + 1) % topology.ranks), (a, a * 7 % topology.ranks)])
            {
                let mut tree = Tree::new(source, topology.names.len());
                let reached = tree.reaches(target, terrain);
                let met = Between::new((source, target), terrain);
                assert_eq!(met.is_some(), reached, "seed {seed}, {source} to {target}");
                let Some(met) = met else { continue };
                let (mut by_tree, mut by_meeting) = (Vec::new(), Vec::new());
                tree.way(target, &topology, &mut by_tree);
                let total = by_tree.len() as u32;
                let rest = |node| met.depth(node).map(|depth| total - depth);
                first_way((source, target), rest, terrain, &mut by_meeting);
                assert_eq!(by_tree, by_meeting, "seed {seed}, {source} to {target}");
                let table = distances(target, terrain);
                assert_eq!(table[source as usize], total);
                let (mut by_table, rest) = (Vec::new(), |node: u32| Some(table[node as usize]));
                first_way((source, target), rest, terrain, &mut by_table);
                assert_eq!(by_tree, by_table, "seed {seed}, {source} to {target}");
                let towards = Between::towards((source, target), &table, terrain);
                assert!((0..table.len() as u32).all(|node| towards.depth(node) == met.depth(node)));
                assert_eq!(met.depth(target), tree.depth(target, &topology));
                for &link in &by_tree {
                    let node = topology.links[link as usize].to;
                    assert_eq!(met.depth(node), tree.depth(node, &topology));
                }
            }
        }
    }
}
