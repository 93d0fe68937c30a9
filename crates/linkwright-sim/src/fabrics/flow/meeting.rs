//! Shortest ways between two nodes, by searches from both ends that meet half way.
//!
//! ```text
//!   source  o -- o -- o == meeting == o -- o  target
//!           0    1    2                       levels from the source; each side looks at its own neighbourhood
//! ```
//!
//! The smaller border goes on, a whole level at a time, until the two have a node in common. Then every shortest way
//! leads through such a node, and the nodes of all shortest ways are found from there. Among the ways, a tree of
//! [`super::trees`] takes the one whose links come first in the order of the file, compared link by link from the
//! source; so does [`first_way`].

use super::topology::Terrain;
use rustc_hash::FxHashMap;

/// Nodes of the shortest ways from a source to a target, with the number of links to each.
#[derive(Debug)]
pub(super) struct Between {
    depths: FxHashMap<u32, u32>,
}

/// Nodes within a number of links of one end, with the number.
struct Side {
    levels: FxHashMap<u32, u32>,
    border: Vec<u32>,
    level: u32,
}

impl Side {
    fn new(end: u32) -> Side {
        Side {
            levels: FxHashMap::from_iter([(end, 0)]),
            border: vec![end],
            level: 0,
        }
    }

    /// Go on by one level, with data or against them.
    fn grow(&mut self, forth: bool, other_end: u32, terrain: Terrain<'_>) {
        self.level += 1;
        for node in std::mem::take(&mut self.border) {
            for next in neighbours(node, forth, terrain) {
                let passes = next == other_end || terrain.carries(next);
                if passes && !self.levels.contains_key(&next) {
                    self.levels.insert(next, self.level);
                    self.border.push(next);
                }
            }
        }
    }
}

/// The nodes one link ahead of `node`, or behind it.
pub(super) fn neighbours(
    node: u32,
    forth: bool,
    terrain: Terrain<'_>,
) -> impl Iterator<Item = u32> + '_ {
    let topology = terrain.topology;
    let out = topology.out(node).iter().copied();
    out.filter(move |&link| {
        let taken = if forth { link } else { link ^ 1 };
        terrain.classes[topology.links[taken as usize].class as usize]
    })
    .map(move |link| topology.links[link as usize].to)
}

impl Between {
    /// Search between `source` and `target`; `None` if no way leads there.
    pub fn new((source, target): (u32, u32), terrain: Terrain<'_>) -> Option<Between> {
        if source == target {
            return Some(Between {
                depths: FxHashMap::from_iter([(source, 0)]),
            });
        }
        let (mut near, mut far) = (Side::new(source), Side::new(target));
        let met = loop {
            let forth = near.border.len() <= far.border.len();
            let (grown, other, end) = match forth {
                true => (&mut near, &far, target),
                false => (&mut far, &near, source),
            };
            grown.grow(forth, end, terrain);
            if grown.border.is_empty() {
                return None;
            }
            let in_both = |node: &&u32| other.levels.contains_key(node);
            let met: Vec<u32> = grown.border.iter().filter(in_both).copied().collect();
            if !met.is_empty() {
                break met;
            }
        };
        let mut depths: FxHashMap<u32, u32> = met.iter().map(|&node| (node, near.level)).collect();
        for (side, forth) in [(&near, false), (&far, true)] {
            let mut layer = met.clone();
            for level in (0..side.level).rev() {
                let mut next = Vec::new();
                for node in layer {
                    for neighbour in neighbours(node, forth, terrain) {
                        if side.levels.get(&neighbour) == Some(&level) {
                            let total = near.level + far.level;
                            let depth = if forth { total - level } else { level };
                            if depths.insert(neighbour, depth).is_none() {
                                next.push(neighbour);
                            }
                        }
                    }
                }
                layer = next;
            }
        }
        Some(Between { depths })
    }

    /// The number of links from the source to `node`, if a shortest way leads over it.
    pub fn depth(&self, node: u32) -> Option<u32> {
        self.depths.get(&node).copied()
    }

    /// The same by the number of links from each node to the target.
    pub fn towards((source, target): (u32, u32), rest: &[u32], terrain: Terrain<'_>) -> Between {
        let mut depths = FxHashMap::from_iter([(source, 0)]);
        let mut layer = vec![source];
        for depth in 1..=rest[source as usize] {
            for node in std::mem::take(&mut layer) {
                for next in neighbours(node, true, terrain) {
                    let leads = rest[next as usize] == rest[source as usize] - depth;
                    let passes = next == target || terrain.carries(next);
                    if leads && passes && depths.insert(next, depth).is_none() {
                        layer.push(next);
                    }
                }
            }
        }
        Between { depths }
    }
}

/// Append the links of the shortest way whose links come first; `rest` is the number of links from a node to the target,
/// if a shortest way leads over it.
pub(super) fn first_way(
    (source, target): (u32, u32),
    rest: impl Fn(u32) -> Option<u32>,
    terrain: Terrain<'_>,
    links: &mut Vec<u32>,
) {
    let topology = terrain.topology;
    let (mut node, mut left) = (source, rest(source).unwrap_or(0));
    while node != target {
        left -= 1;
        let leads = |&&link: &&u32| {
            let end = &topology.links[link as usize];
            let passes = end.to == target || terrain.carries(end.to);
            terrain.classes[end.class as usize] && passes && rest(end.to) == Some(left)
        };
        let link = *(topology.out(node).iter().find(leads)).expect("each node leads on");
        links.push(link);
        node = topology.links[link as usize].to;
    }
}
