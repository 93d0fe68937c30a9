//! Binomial trees: with every round twice as many ranks take part.
//!
//! ```text
//!   p = 8    round 0   0 -> 4                                 four blocks
//!            round 1   0 -> 2   4 -> 6                        two
//!            round 2   0 -> 1   2 -> 3   4 -> 5   6 -> 7      one
//!
//!   broadcast   as drawn: everyone who has the vector sends it on
//!   reduce      arrows and rounds reversed: half of the ranks add their vector into another and leave
//!   allreduce   the reduce to rank 0, then the broadcast from it
//!   scatter     as drawn, with bundles of blocks that are split on the way
//!   gather      reversed: blocks are bundled on the way
//!   broadcast of a large vector: scatter its blocks, then pass them round a ring
//! ```
//!
//! log2 p rounds, rounded up: the least possible. With whole vectors each round carries S, so for
//! large ones halving ([`super::recursive_doubling`]) or a scatter and an allgather move less:
//! about 2 S per rank instead of S log2 p, since everyone's port works, not only the root's. The
//! price is p-1 more rounds. That ring starts from single blocks and brings again what the inner
//! ranks of the tree have already; omitting that would not shorten the longest way.
//!
//! A block moves once per level, in the mean log2(p)/2 times. Ranks that relay keep a subtree, at
//! most half of the vector, in scratch. Blocks there lie in the order seen from the root, so a
//! bundle is one run; at the root it may wrap round the end of the vector.
//!
//! The broadcast of a large vector is also called van de Geijn's.

use crate::collectives::common::ring::{self, Blocks, Ring};
use crate::collectives::common::tree::{self, binomial};
use crate::collectives::common::Phase;
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Thakur, Rabenseifner and Gropp, \"Optimization of collective communication operations in MPICH\" (IJHPCA 2005)";

algorithm! {
    /// every rank that has the vector forwards it, farthest first
    ///
    /// Fewest rounds; the choice for small vectors.
    pub BROADCAST = Broadcast "binomial" {
        cost: "ceil(log2 p) rounds of S bytes; the root sends S log2(p)",
        source: SOURCE,
        build: |shape| whole_vectors(shape, Collective::Broadcast),
    }

    /// ranks add their vectors into one nearer to the root, nearest first
    ///
    /// Fewest rounds; the choice for small vectors.
    pub REDUCE = Reduce "binomial" {
        cost: "ceil(log2 p) rounds of S bytes; the root receives S log2(p)",
        source: SOURCE,
        build: |shape| whole_vectors(shape, Collective::Reduce),
    }

    /// binomial reduce to rank 0, then binomial broadcast from it
    ///
    /// Two trees, one after the other: the baseline. Treats every number of ranks alike.
    pub ALLREDUCE = Allreduce "reduce_broadcast" {
        cost: "2 ceil(log2 p) rounds of S bytes; rank 0 receives and sends S log2(p)",
        source: SOURCE,
        build: |shape| whole_vectors(shape, Collective::Allreduce),
    }

    /// scatter the vector along a tree, then allgather it around a ring
    ///
    /// Moves about 2 S per rank, however many there are (van de Geijn's algorithm); the choice for large vectors.
    pub BROADCAST_LARGE = Broadcast "scatter_allgather" {
        cost: "ceil(log2 p) + p-1 rounds, 2 S (p-1)/p bytes from the root",
        source: SOURCE,
        build: broadcast_large,
    }

    /// blocks flow down a binomial tree and are bundled on the way
    ///
    /// Fewest rounds; the choice for small blocks. Ranks that relay need scratch.
    pub GATHER = Gather "binomial" {
        cost: "ceil(log2 p) rounds, S (p-1)/p bytes into the root; up to S/2 from a relay",
        source: SOURCE,
        build: |shape| tree::gather(shape, &binomial(shape.ranks, shape.root)),
    }

    /// bundles of blocks flow up a binomial tree and are split on the way
    ///
    /// Fewest rounds; the choice for small blocks. Ranks that relay need scratch.
    pub SCATTER = Scatter "binomial" {
        cost: "ceil(log2 p) rounds, S (p-1)/p bytes from the root; up to S/2 into a relay",
        source: SOURCE,
        build: |shape| tree::scatter(shape, &binomial(shape.ranks, shape.root)),
    }
}

fn whole_vectors(shape: &Shape, collective: Collective) -> Result<Schedule> {
    let root = match collective.is_rooted() {
        true => shape.root,
        false => 0,
    };
    tree::whole_vectors(shape, collective, &binomial(shape.ranks, root))
}

fn broadcast_large(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Broadcast, shape);
    let data = b.buffer(Buffer::vector("output", p));
    for round in binomial(p, root) {
        b.step();
        for branch in round {
            let subtree = tree::blocks(p, root, branch.first.1, branch.size);
            b.put_blocks(branch.parent, data, branch.child, data, &subtree);
        }
    }
    ring::rounds(
        &mut b,
        data,
        &[Ring::plain(p)],
        Blocks::ByRing,
        Phase::Allgather,
    );
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_pass_the_root_in_one_message_per_round() {
        let shape = Shape::new(64, 640).with_root(3);
        let of_root = |schedule: &Schedule| {
            let messages = schedule.ops().iter().filter(|op| op.is_message());
            messages.filter(|op| op.from == 3 || op.to == 3).count()
        };
        assert_eq!(of_root(&(GATHER.build)(&shape).unwrap()), 6);
        assert_eq!(of_root(&(SCATTER.build)(&shape).unwrap()), 6);
    }
}
