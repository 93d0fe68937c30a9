//! Two trees below one root: each half of the vector flows through a binary tree of its own.
//!
//! ```text
//!   the others in a line     1 2 3 4 5 6 7        the root 0 gives one half to the top of each tree
//!   tree 0, first half       1 is the top         whoever is a leaf of one tree is inside the other,
//!   tree 1, second half      another is the top   so nobody sends more than one vector, in halves to each of two
//! ```
//!
//! A binary tree leaves the ports of its leaves, half of the ranks, without work and sends two vectors from the others
//! ([`super::binary_tree`]). Here every rank sends about as much as it receives. Cut into slices (transform
//! `pipeline`), a large vector takes S over the rate of a port, in the rounds of a tree. Each stream has its own lane.
//! The reduce is the broadcast backwards.

use crate::collectives::common::binary;
use crate::collectives::common::forest::{self, First, Lanes, Tree};
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Sanders, Speck and Träff, \"Two-tree algorithms for full bandwidth broadcast, reduction and scan\" (Parallel \
     Computing 2009)";

algorithm! {
    /// each half of the vector flows through a binary tree of its own
    ///
    /// Who is a leaf of one tree is inside the other, so every rank sends about as much as it receives. Cut into
    /// slices, the full rate of a port in the rounds of a tree.
    pub BROADCAST = Broadcast "two_tree" {
        cost: "log2 p + 1 rounds, at most 1.5 S bytes per rank, S from almost all",
        source: SOURCE,
        build: |shape| build(shape, Collective::Broadcast),
    }

    /// each half of the vector is added up in a binary tree of its own
    ///
    /// Who is a leaf of one tree is inside the other, so every rank receives about as much as it sends. Cut into
    /// slices, the full rate of a port in the rounds of a tree.
    pub REDUCE = Reduce "two_tree" {
        cost: "log2 p + 1 rounds, S bytes per rank",
        source: SOURCE,
        build: |shape| build(shape, Collective::Reduce),
    }
}

fn build(shape: &Shape, collective: Collective) -> Result<Schedule> {
    shape.check()?;
    let mut b = Builder::new(collective, shape);
    let data = b.buffer(Buffer::vector("output", 2));
    let trees = [0, 1].map(|which| tree(shape, which));
    let mut lanes = Lanes::new(shape.ranks);
    match collective.reduces() {
        true => forest::up(&mut b, data, 2, &trees, First::Added, &mut lanes),
        false => forest::down(&mut b, data, &trees, &mut lanes),
    }
    b.finish()
}

/// Tree `which` over all ranks but the root, and the root above it.
fn tree(shape: &Shape, which: u32) -> Tree {
    let others = shape.ranks - 1;
    let mut tree = Tree {
        ranks: vec![shape.root],
        parents: vec![0],
        chunk: which,
    };
    if others == 0 {
        return tree;
    }
    let mut found = vec![0; others as usize];
    for (place, parent) in binary::tree(others, which as usize) {
        let top = place == parent;
        tree.parents
            .push(if top { 0 } else { found[parent as usize] });
        found[place as usize] = tree.ranks.len() as u32;
        tree.ranks.push((shape.root + 1 + place) % shape.ranks);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transforms::pipeline;
    use crate::verify;

    /// Every rank but the root gets two halves; one inside both trees sends three or four of them.
    #[test]
    fn hardly_anyone_sends_more_than_a_vector() {
        for p in 3..40 {
            let schedule =
                build(&Shape::new(p, 2).with_root(p / 2), Collective::Broadcast).unwrap();
            let sent = schedule.sent_bytes();
            let more = sent.iter().filter(|&&bytes| bytes > 8).count();
            assert!(more <= 1, "{p}: {sent:?}");
            assert_eq!(sent[p as usize / 2], 8);
        }
    }

    #[test]
    fn right_in_slices_from_any_root() {
        for (p, root) in [(1, 0), (2, 1), (5, 2), (8, 7), (13, 4)] {
            for collective in [Collective::Broadcast, Collective::Reduce] {
                let shape = Shape::new(p, 24).with_root(root);
                verify(&pipeline(&build(&shape, collective).unwrap(), 4).unwrap()).unwrap();
            }
        }
    }
}
