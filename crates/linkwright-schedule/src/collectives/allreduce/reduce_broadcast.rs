//! Reduce to rank 0 along a binomial tree, then broadcast along the same tree.
//!
//! ```text
//!   p = 4    1 -> 0   3 -> 2  |  2 -> 0  ||  0 -> 2  |  0 -> 1   2 -> 3
//! ```
//!
//! The simplest allreduce that beats "everyone to one and back": 2 log2 p rounds of whole
//! vectors, in which most ranks are idle. The baseline that the others must beat.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005), as the algorithm they replace.

use crate::builder::{Builder, Shape};
use crate::collectives::common::tree::{binomial, broadcast, reduce};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "reduce_broadcast",
    summary: "binomial reduce to rank 0, then binomial broadcast from it",
    description: "Two trees one after the other: the baseline. Serves any number of ranks in the \
                  same way.",
    cost: "2 ceil(log2 p) rounds of S bytes; rank 0 receives and sends S log2(p)",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", 1));
    let tree = binomial(shape.ranks.max(1), 0);
    reduce(&mut b, data.at(0), &tree);
    broadcast(&mut b, data.at(0), &tree);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn two_trees() {
        for (p, height) in [(1, 0), (2, 1), (5, 3), (64, 6)] {
            let schedule = build(&Shape::new(p, 100)).unwrap();
            assert_eq!(rounds(&schedule), 2 * height);
            assert_eq!(messages(&schedule), 2 * (p as usize - 1));
            assert_eq!(bytes_sent(&schedule).1, 400 * height as u64);
        }
    }
}
