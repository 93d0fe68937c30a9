//! Trees side by side: each carries one chunk of the vector to its root and back.
//!
//! ```text
//!   up     children add into their parent, which then sends on       step = height of the parent
//!   down   a parent copies to all of its children                    step = depth of the parent
//! ```
//!
//! Cut into slices (transform `pipeline`), a slice goes up while others come down. So every stream of a rank has
//! a lane of its own: what it sends up, what it sends to each child, what it adds for each child. The first child
//! adds while it writes ([`First`]); a further one writes to a buffer of its own, from which its parent adds,
//! because two that add into one chunk would have to wait for each other.

use std::collections::BTreeMap;

use crate::builder::{Builder, Slot};
use crate::ir::{Buffer, COMPUTE_LANE};

/// A tree over some ranks, and the chunk of the vector that it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The ranks, the root first, each behind its parent.
    pub ranks: Vec<u32>,
    /// The place of each one's parent in `ranks`; that of the root is its own, 0.
    pub parents: Vec<u32>,
    /// The chunk.
    pub chunk: u32,
}

/// Lanes not yet used, by rank.
pub struct Lanes(Vec<u8>);

impl Lanes {
    /// All lanes of `ranks` ranks but the compute lane.
    pub fn new(ranks: u32) -> Self {
        Lanes(vec![0; ranks as usize])
    }

    /// A lane of `rank` for one more stream; they are shared where there are more streams than lanes.
    pub fn next(&mut self, rank: u32) -> u8 {
        let next = &mut self.0[rank as usize];
        let lane = *next;
        *next = (lane + 1) % COMPUTE_LANE;
        lane
    }
}

impl Tree {
    /// The places of each one's children.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.ranks.len()];
        for (place, &parent) in self.parents.iter().enumerate().skip(1) {
            children[parent as usize].push(place);
        }
        children
    }

    /// How far above its lowest leaf each one is.
    fn heights(&self) -> Vec<u32> {
        let mut heights = vec![0; self.ranks.len()];
        for place in (1..self.ranks.len()).rev() {
            let above = heights[place] + 1;
            let parent = &mut heights[self.parents[place] as usize];
            *parent = above.max(*parent);
        }
        heights
    }

    /// How far below the root each one is.
    fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.ranks.len()];
        for place in 1..self.ranks.len() {
            depths[place] = depths[self.parents[place] as usize] + 1;
        }
        depths
    }
}

/// A parent, its children and the chunk between them.
struct Family {
    parent: u32,
    children: Vec<u32>,
    chunk: u32,
}

/// The families of `trees` in the order of `level`.
fn families(trees: &[Tree], level: impl Fn(&Tree) -> Vec<u32>) -> Vec<Vec<Family>> {
    let mut levels: BTreeMap<u32, Vec<Family>> = BTreeMap::new();
    for tree in trees {
        for ((children, level), &parent) in tree.children().iter().zip(level(tree)).zip(&tree.ranks)
        {
            if !children.is_empty() {
                levels.entry(level).or_default().push(Family {
                    parent,
                    children: children.iter().map(|&place| tree.ranks[place]).collect(),
                    chunk: tree.chunk,
                });
            }
        }
    }
    levels.into_values().collect()
}

/// Where the data of the first child land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// In the vector, which they are added into as they arrive.
    Added,
    /// Beside it like those of the others: what they are added to is not there from the start, and the child
    /// would have to be told when it is.
    Beside,
}

/// Combine the chunk of every tree, one of `chunks` chunks of `data`, at its root.
pub fn up(
    b: &mut Builder,
    data: Slot,
    chunks: u32,
    trees: &[Tree],
    first: First,
    lanes: &mut Lanes,
) {
    let levels = families(trees, Tree::heights);
    let added = usize::from(first == First::Added);
    let children = levels.iter().flatten().map(|family| family.children.len());
    let places: Vec<Slot> = (added..children.max().unwrap_or(0))
        .map(|n| b.buffer(Buffer::vector(&format!("from_child{n}"), chunks)))
        .collect();
    for level in levels {
        b.step();
        for family in &level {
            arrive(b, data, (added, &places), family, lanes);
        }
        for (n, place) in (added..).zip(&places) {
            b.step();
            for family in level.iter().filter(|family| family.children.len() > n) {
                let (parent, chunk) = (family.parent, family.chunk);
                b.local(parent, place.at(chunk), data.at(chunk))
                    .reduce()
                    .lane(lanes.next(parent));
            }
        }
    }
}

/// The children of `family` send to their parent: the first `added` into its vector, the others into `places`.
fn arrive(
    b: &mut Builder,
    data: Slot,
    (added, places): (usize, &[Slot]),
    family: &Family,
    lanes: &mut Lanes,
) {
    let chunk = data.at(family.chunk);
    for (n, &child) in family.children.iter().enumerate() {
        let lane = lanes.next(child);
        if n < added {
            b.put(child, chunk, family.parent, chunk)
                .reduce()
                .lane(lane);
        } else {
            let place = places[n - added].at(family.chunk);
            b.put(child, chunk, family.parent, place).lane(lane);
        }
    }
}

/// Copy the chunk of every tree from its root to all of its ranks.
pub fn down(b: &mut Builder, data: Slot, trees: &[Tree], lanes: &mut Lanes) {
    for level in families(trees, Tree::depths) {
        b.step();
        for family in &level {
            let chunk = data.at(family.chunk);
            for &child in &family.children {
                b.put(family.parent, chunk, child, chunk)
                    .lane(lanes.next(family.parent));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_a_tree_with_a_chain() {
        // 5 has the children 3 and 8; 3 has 1, which has 0.
        let tree = Tree {
            ranks: vec![5, 3, 8, 1, 0],
            parents: vec![0, 0, 0, 1, 3],
            chunk: 7,
        };
        assert_eq!(tree.heights(), [3, 2, 0, 1, 0]);
        assert_eq!(tree.depths(), [0, 1, 1, 2, 3]);
        assert_eq!(
            tree.children(),
            [vec![1, 2], vec![3], vec![], vec![4], vec![]]
        );
    }

    #[test]
    fn streams_share_lanes_only_when_all_are_used() {
        let mut lanes = Lanes::new(2);
        let first: Vec<u8> = (0..256).map(|_| lanes.next(1)).collect();
        assert_eq!((first[0], first[254], first[255]), (0, 254, 0));
        assert_eq!(lanes.next(0), 0);
    }
}
