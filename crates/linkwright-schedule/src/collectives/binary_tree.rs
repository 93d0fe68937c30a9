//! Binary tree: every rank has two children, whole vectors flow in slices.
//!
//! ```text
//!   seen from the root, v = rank - root mod p          0
//!   v has the children 2v+1 and 2v+2                 1   2
//!                                                   3 4 5 6
//! ```
//!
//! No rank sends more than two vectors, where the root of a binomial tree sends log2 p of them. In slices
//! (transform `pipeline`), the time of a large vector tends to 2 S over the rate of a link, in fewer rounds than
//! a chain has. Each stream has its own lane. The reduce is the broadcast backwards.

use crate::collectives::common::forest::{self, First, Lanes, Tree};
use crate::collectives::prelude::*;

algorithm! {
    /// every rank passes the vector on to two others
    ///
    /// A tree in which no rank sends more than two vectors: cut into slices, a compromise between the few rounds of
    /// a binomial tree and the few bytes of a ring.
    pub BROADCAST = Broadcast "binary_tree" {
        cost: "log2 p rounds, at most 2 S bytes per rank",
        source:
            "Open MPI, coll/tuned, binary tree; Sanders, Speck and Träff, \"Two-tree algorithms for full bandwidth \
             broadcast, reduction and scan\" (Parallel Computing 2009), section 1, for its cost",
        build: |shape| build(shape, Collective::Broadcast),
    }

    /// every rank adds the vectors of two others and passes the sum on
    ///
    /// A tree in which no rank receives more than two vectors: cut into slices, a compromise between the few rounds
    /// of a binomial tree and the few bytes of a ring.
    pub REDUCE = Reduce "binary_tree" {
        cost: "log2 p rounds, S bytes per rank, at most 2 S into one",
        source:
            "Open MPI, coll/tuned, binary tree, reversed; Sanders, Speck and Träff, \"Two-tree algorithms for full \
             bandwidth broadcast, reduction and scan\" (Parallel Computing 2009), section 1, for its cost",
        build: |shape| build(shape, Collective::Reduce),
    }
}

fn build(shape: &Shape, collective: Collective) -> Result<Schedule> {
    shape.check()?;
    let p = shape.ranks;
    let mut b = Builder::new(collective, shape);
    let data = b.buffer(Buffer::vector("output", 1));
    let tree = Tree {
        ranks: (0..p).map(|v| (v + shape.root) % p).collect(),
        parents: (0..p).map(|v| v.saturating_sub(1) / 2).collect(),
        chunk: 0,
    };
    let mut lanes = Lanes::new(p);
    match collective.reduces() {
        true => forest::up(&mut b, data, 1, &[tree], First::Added, &mut lanes),
        false => forest::down(&mut b, data, &[tree], &mut lanes),
    }
    b.finish()
}
