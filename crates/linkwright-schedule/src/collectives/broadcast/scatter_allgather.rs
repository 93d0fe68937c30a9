//! Broadcast of a large vector: scatter its blocks along a tree, then pass them round a ring.
//!
//! ```text
//!   scatter     binomial tree, halves, quarters, ...     S (p-1)/p bytes from the root
//!   allgather   ring, p-1 rounds of S/p                  S (p-1)/p bytes from everyone
//! ```
//!
//! About 2 S per rank instead of S log2 p: everyone's port works, not only the root's. The price
//! is p-1 more rounds. The ring starts from single blocks and brings again what the inner ranks of
//! the tree have already; leaving that out would not shorten the longest way.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005), there called van de Geijn's algorithm.

use crate::builder::{Builder, Shape};
use crate::collectives::common::ring::{self, Blocks, Ring};
use crate::collectives::common::tree::{binomial, blocks};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Broadcast,
    name: "scatter_allgather",
    summary: "scatter the vector along a tree, then allgather it round a ring",
    description: "Moves about 2 S per rank however many there are (van de Geijn's algorithm); the \
                  choice for large vectors.",
    cost: "ceil(log2 p) + p-1 rounds, 2 S (p-1)/p bytes from the root",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Broadcast, shape);
    let data = b.buffer(Buffer::vector("output", p));
    for round in binomial(p, root) {
        b.step();
        for branch in round {
            let subtree = blocks(p, root, branch.v.1, branch.size);
            b.put_blocks(branch.parent, data, branch.child, data, &subtree);
        }
    }
    ring::allgather(&mut b, data, &[Ring::plain(p)], Blocks::ByRing);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, rounds};

    #[test]
    fn twice_the_vector_from_the_root() {
        let schedule = build(&Shape::new(64, 640).with_root(5)).unwrap();
        assert_eq!(rounds(&schedule), 6 + 63);
        // Leaves send only in the ring: S 63/64 = 2520 bytes.
        assert_eq!(bytes_sent(&schedule), (2520, 5040));
    }
}
