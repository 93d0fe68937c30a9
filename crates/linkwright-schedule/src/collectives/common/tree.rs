//! Binomial trees: with every round twice as many ranks take part.
//!
//! ```text
//!   seen from the root, v = rank - root mod p              p = 8:   0
//!   v is attached to v without its lowest set bit                /  | \
//!   v's subtree is v .. v + lowest set bit, within p            4   2  1
//!                                                              / \  |
//!   a broadcast uses the branches with the largest first,     6   5 3
//!   a reduction the same ones backwards                       |
//!                                                             7
//! ```
//!
//! log2 p rounds, rounded up. Every subtree is a run of consecutive v, so gather and scatter send
//! what belongs to a subtree as one piece.

use crate::builder::{Builder, Chunks};
use crate::ir::Buffer;
use std::ops::Range;

/// One branch of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Nearer to the root.
    pub parent: u32,
    /// Farther from the root.
    pub child: u32,
    /// Parent and child as seen from the root.
    pub v: (u32, u32),
    /// Ranks in the subtree of the child.
    pub size: u32,
}

impl Branch {
    /// Where the child's blocks lie among those of the parent.
    pub fn place(&self) -> Range<u32> {
        let offset = self.v.1 - self.v.0;
        offset..offset + self.size
    }
}

/// The branches of a tree over `p` ranks, round by round as a broadcast uses them.
pub fn binomial(p: u32, root: u32) -> Vec<Vec<Branch>> {
    let rounds = p.next_power_of_two().ilog2();
    let branch = |v: u32, reach: u32| Branch {
        parent: (root + v - reach) % p,
        child: (root + v) % p,
        v: (v - reach, v),
        size: reach.min(p - v),
    };
    let round = |k: u32| {
        let reach = 1 << k;
        let children = (reach..p).step_by(2 * reach as usize);
        children.map(|v| branch(v, reach)).collect()
    };
    (0..rounds).rev().map(round).collect()
}

/// Combine the vectors of all ranks along `tree` at its root.
pub fn reduce(b: &mut Builder, vector: Chunks, tree: &[Vec<Branch>]) {
    for round in tree.iter().rev() {
        b.step();
        for branch in round {
            b.put(branch.child, vector, branch.parent, vector).reduce();
        }
    }
}

/// Copy the vector of the root along `tree` to everyone.
pub fn broadcast(b: &mut Builder, vector: Chunks, tree: &[Vec<Branch>]) {
    for round in tree {
        b.step();
        for branch in round {
            b.put(branch.parent, vector, branch.child, vector);
        }
    }
}

/// Number of ranks in the subtree of the rank that is `v` as seen from the root.
pub fn subtree(p: u32, v: u32) -> u32 {
    match v {
        0 => p,
        _ => (1 << v.trailing_zeros()).min(p - v),
    }
}

/// Blocks of `size` ranks from the `v`-th as seen from the root, as ascending rank numbers.
pub fn blocks(p: u32, root: u32, v: u32, size: u32) -> Vec<u32> {
    let mut blocks: Vec<u32> = (v..v + size).map(|v| (root + v) % p).collect();
    blocks.sort_unstable();
    blocks
}

/// Scratch for the largest subtree but the root's own.
pub fn relay_scratch(p: u32, tree: &[Vec<Branch>]) -> Buffer {
    let sizes = tree.iter().flatten().map(|branch| branch.size);
    let largest = sizes.max().unwrap_or(1);
    Buffer {
        mul: largest,
        blocks: largest,
        ..Buffer::block("scratch", p)
    }
}

/// The blocks of `branch` as the child keeps them and as the root does: (there, at root, count).
pub fn runs_at_root(p: u32, root: u32, branch: &Branch) -> Vec<(u32, u32, u32)> {
    let block = |i| (i, (root + branch.v.1 + i) % p, 1);
    (0..branch.size).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_but_the_root_is_a_child_once() {
        for p in 1..70 {
            for root in [0, p / 2, p - 1] {
                let tree = binomial(p, root);
                assert_eq!(tree.len() as u32, p.next_power_of_two().ilog2());
                let mut informed = vec![root];
                for round in &tree {
                    for branch in round {
                        assert!(informed.contains(&branch.parent));
                        assert_eq!(branch.size, subtree(p, branch.v.1));
                    }
                    informed.extend(round.iter().map(|branch| branch.child));
                }
                informed.sort_unstable();
                assert_eq!(informed, (0..p).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn eight_ranks_from_three() {
        let children: Vec<Vec<u32>> = binomial(8, 3)
            .iter()
            .map(|round| round.iter().map(|branch| branch.child).collect())
            .collect();
        assert_eq!(children, [vec![7], vec![5, 1], vec![4, 6, 0, 2]]);
    }
}
