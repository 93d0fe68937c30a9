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
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005); the broadcast of a large vector is there called van de Geijn's.

use crate::builder::{Builder, Shape};
use crate::collectives::algorithm::Algorithm;
use crate::collectives::common::ring::{self, Blocks, Ring};
use crate::collectives::common::tree::{self, binomial, relay_scratch, runs_at_root, subtree};
use crate::collectives::common::Phase;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry of broadcast/binomial.
pub static BROADCAST: Algorithm = Algorithm {
    collective: Collective::Broadcast,
    name: "binomial",
    summary: "every rank that has the vector forwards it, farthest first",
    description: "Fewest rounds; the choice for small vectors.",
    cost: "ceil(log2 p) rounds of S bytes; the root sends S log2(p)",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    program: None,
    build: |shape| whole_vectors(shape, Collective::Broadcast),
};

/// Registry entry of reduce/binomial.
pub static REDUCE: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "binomial",
    summary: "ranks add their vectors into one nearer to the root, nearest first",
    description: "Fewest rounds; the choice for small vectors.",
    cost: "ceil(log2 p) rounds of S bytes; the root receives S log2(p)",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    program: None,
    build: |shape| whole_vectors(shape, Collective::Reduce),
};

/// Registry entry of allreduce/reduce_broadcast.
pub static ALLREDUCE: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "reduce_broadcast",
    summary: "binomial reduce to rank 0, then binomial broadcast from it",
    description: "Two trees, one after the other: the baseline. Treats every number of ranks \
                 alike.",
    cost: "2 ceil(log2 p) rounds of S bytes; rank 0 receives and sends S log2(p)",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    program: None,
    build: |shape| whole_vectors(shape, Collective::Allreduce),
};

/// Registry entry of broadcast/scatter_allgather.
pub static BROADCAST_LARGE: Algorithm = Algorithm {
    collective: Collective::Broadcast,
    name: "scatter_allgather",
    summary: "scatter the vector along a tree, then allgather it around a ring",
    description: "Moves about 2 S per rank, however many there are (van de Geijn's algorithm); \
                 the choice for large vectors.",
    cost: "ceil(log2 p) + p-1 rounds, 2 S (p-1)/p bytes from the root",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    program: None,
    build: broadcast_large,
};

/// Registry entry of gather/binomial.
pub static GATHER: Algorithm = Algorithm {
    collective: Collective::Gather,
    name: "binomial",
    summary: "blocks flow down a binomial tree and are bundled on the way",
    description: "Fewest rounds; the choice for small blocks. Ranks that relay need scratch.",
    cost: "ceil(log2 p) rounds, S (p-1)/p bytes into the root; up to S/2 from a relay",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    program: None,
    build: gather,
};

/// Registry entry of scatter/binomial.
pub static SCATTER: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "binomial",
    summary: "bundles of blocks flow up a binomial tree and are split on the way",
    description: "Fewest rounds; the choice for small blocks. Ranks that relay need scratch.",
    cost: "ceil(log2 p) rounds, S (p-1)/p bytes from the root; up to S/2 into a relay",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    program: None,
    build: scatter,
};

fn whole_vectors(shape: &Shape, collective: Collective) -> Result<Schedule> {
    let mut b = Builder::new(collective, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    let root = if collective.is_rooted() {
        shape.root
    } else {
        0
    };
    let tree = binomial(shape.ranks, root);
    if collective.reduces() {
        tree::reduce(&mut b, vector, &tree);
    }
    if collective != Collective::Reduce {
        tree::broadcast(&mut b, vector, &tree);
    }
    b.finish()
}

fn broadcast_large(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Broadcast, shape);
    let data = b.buffer(Buffer::vector("output", p));
    for round in binomial(p, root) {
        b.step();
        for branch in round {
            let subtree = tree::blocks(p, root, branch.v.1, branch.size);
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

fn gather(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Gather, shape);
    let own = b.buffer(Buffer::block("input", p));
    let all = b.buffer(Buffer::vector("output", p).only_at(root));
    let tree = binomial(p, root);
    let bundle = b.buffer(relay_scratch(p, &tree));
    b.step();
    b.local(root, own.at(0), all.at(root));
    for v in (1..p).filter(|&v| subtree(p, v) > 1) {
        b.local((root + v) % p, own.at(0), bundle.at(0));
    }
    for round in tree.iter().rev() {
        b.step();
        for branch in round {
            let from = if branch.size == 1 { own } else { bundle };
            if branch.parent == root {
                let runs = runs_at_root(p, root, branch);
                b.put_runs(branch.child, from, root, all, &runs);
            } else {
                let (whole, place) = (from.range(0..branch.size), bundle.range(branch.place()));
                b.put(branch.child, whole, branch.parent, place);
            }
        }
    }
    b.finish()
}

fn scatter(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Scatter, shape);
    let all = b.buffer(Buffer::vector("input", p).only_at(root));
    let own = b.buffer(Buffer::block("output", p));
    let tree = binomial(p, root);
    let bundle = b.buffer(relay_scratch(p, &tree));
    for round in &tree {
        b.step();
        for branch in round {
            let to = if branch.size == 1 { own } else { bundle };
            if branch.parent == root {
                let runs = runs_at_root(p, root, branch).into_iter();
                let reversed: Vec<_> = runs.map(|(there, here, n)| (here, there, n)).collect();
                b.put_runs(root, all, branch.child, to, &reversed);
            } else {
                let (whole, place) = (to.range(0..branch.size), bundle.range(branch.place()));
                b.put(branch.parent, place, branch.child, whole);
            }
        }
    }
    b.step();
    b.local(root, all.at(root), own.at(0));
    for v in (1..p).filter(|&v| subtree(p, v) > 1) {
        b.local((root + v) % p, bundle.at(0), own.at(0));
    }
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
        assert_eq!(of_root(&gather(&shape).unwrap()), 6);
        assert_eq!(of_root(&scatter(&shape).unwrap()), 6);
    }
}
