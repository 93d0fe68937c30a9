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
//! log2 p rounds, rounded up. Every subtree is a run of consecutive v, modulo p, so gather and scatter send
//! what belongs to a subtree as one piece. [`super::bine`] has other trees of this kind.

use crate::builder::{Builder, Chunks, Shape};
use crate::collectives::prelude::*;
use std::ops::Range;

/// One branch of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Nearer to the root.
    pub parent: u32,
    /// Farther from the root.
    pub child: u32,
    /// The first of the subtrees of parent and child, as seen from the root.
    pub first: (u32, u32),
    /// Ranks in the subtree of the child.
    pub size: u32,
}

/// A tree: its branches, round by round as a broadcast uses them.
pub type Rounds = [Vec<Branch>];

impl Branch {
    /// Where the child's blocks lie among those of the parent.
    fn place(&self, p: u32) -> Range<u32> {
        let offset = (self.first.1 + p - self.first.0) % p;
        offset..offset + self.size
    }
}

/// The branches of a tree over `p` ranks, round by round as a broadcast uses them.
pub fn binomial(p: u32, root: u32) -> Vec<Vec<Branch>> {
    let rounds = p.next_power_of_two().ilog2();
    let branch = |v: u32, reach: u32| Branch {
        parent: (root + v - reach) % p,
        child: (root + v) % p,
        first: (v - reach, v),
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
pub fn reduce(b: &mut Builder, vector: Chunks, tree: &Rounds) {
    for round in tree.iter().rev() {
        b.step();
        for branch in round {
            b.put(branch.child, vector, branch.parent, vector).reduce();
        }
    }
}

/// Copy the vector of the root along `tree` to everyone.
pub fn broadcast(b: &mut Builder, vector: Chunks, tree: &Rounds) {
    for round in tree {
        b.step();
        for branch in round {
            b.put(branch.parent, vector, branch.child, vector);
        }
    }
}

/// The vector of everyone up to the root, or of the root to everyone, or both: whole vectors along `tree`.
pub fn whole_vectors(shape: &Shape, collective: Collective, tree: &Rounds) -> Result<Schedule> {
    let mut b = Builder::new(collective, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    if collective.reduces() {
        reduce(&mut b, vector, tree);
    }
    if collective != Collective::Reduce {
        broadcast(&mut b, vector, tree);
    }
    b.finish()
}

/// Everyone's block to the root, bundled on the way.
pub fn gather(shape: &Shape, tree: &Rounds) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Gather, shape);
    let own = b.buffer(Buffer::block("input", p));
    let all = b.buffer(Buffer::vector("output", p).only_at(root));
    let bundle = b.buffer(relay_scratch(p, tree));
    b.step();
    b.local(root, own.at(0), all.at(root));
    for (relay, place) in relays(p, root, tree) {
        b.local(relay, own.at(0), bundle.at(place));
    }
    for round in tree.iter().rev() {
        b.step();
        for branch in round {
            let from = if branch.size == 1 { own } else { bundle };
            if branch.parent == root {
                let runs = runs_at_root(p, root, branch);
                b.put_runs(branch.child, from, root, all, &runs);
            } else {
                let (whole, place) = (from.range(0..branch.size), bundle.range(branch.place(p)));
                b.put(branch.child, whole, branch.parent, place);
            }
        }
    }
    b.finish()
}

/// The root's blocks to everyone, in bundles that are split on the way.
pub fn scatter(shape: &Shape, tree: &Rounds) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Scatter, shape);
    let all = b.buffer(Buffer::vector("input", p).only_at(root));
    let own = b.buffer(Buffer::block("output", p));
    let bundle = b.buffer(relay_scratch(p, tree));
    for round in tree {
        b.step();
        for branch in round {
            let to = if branch.size == 1 { own } else { bundle };
            if branch.parent == root {
                let runs = runs_at_root(p, root, branch).into_iter();
                let reversed: Vec<_> = runs.map(|(there, here, n)| (here, there, n)).collect();
                b.put_runs(root, all, branch.child, to, &reversed);
            } else {
                let (whole, place) = (to.range(0..branch.size), bundle.range(branch.place(p)));
                b.put(branch.parent, place, branch.child, whole);
            }
        }
    }
    b.step();
    b.local(root, all.at(root), own.at(0));
    for (relay, place) in relays(p, root, tree) {
        b.local(relay, bundle.at(place), own.at(0));
    }
    b.finish()
}

/// Those other than the root that others hang from, and where their own block lies in their bundle.
fn relays(p: u32, root: u32, tree: &Rounds) -> Vec<(u32, u32)> {
    let relays = tree.iter().flatten().filter(|branch| branch.size > 1);
    let own = |branch: &Branch| (branch.child + 2 * p - root - branch.first.1) % p;
    relays.map(|branch| (branch.child, own(branch))).collect()
}

/// Blocks of `size` ranks from the `v`-th as seen from the root, as ascending rank numbers.
pub fn blocks(p: u32, root: u32, v: u32, size: u32) -> Vec<u32> {
    let mut blocks: Vec<u32> = (v..v + size).map(|v| (root + v) % p).collect();
    blocks.sort_unstable();
    blocks
}

/// Scratch for the largest subtree but the root's own.
fn relay_scratch(p: u32, tree: &Rounds) -> Buffer {
    let sizes = tree.iter().flatten().map(|branch| branch.size);
    let largest = sizes.max().unwrap_or(1);
    Buffer {
        mul: largest,
        blocks: largest,
        ..Buffer::block("scratch", p)
    }
}

/// The blocks of `branch` as the child keeps them and as the root does: (there, at root, count).
fn runs_at_root(p: u32, root: u32, branch: &Branch) -> Vec<(u32, u32, u32)> {
    let block = |i| (i, (root + branch.first.1 + i) % p, 1);
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
                        let v = branch.first.1;
                        assert_eq!(branch.size, (1 << v.trailing_zeros()).min(p - v));
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
