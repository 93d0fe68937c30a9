//! Binomial reduce: in every round half of the ranks add their vector into another one and leave.
//!
//! ```text
//!   p = 8    round 0   1 -> 0   3 -> 2   5 -> 4   7 -> 6
//!            round 1   2 -> 0   6 -> 4
//!            round 2   4 -> 0
//! ```
//!
//! log2 p rounds, rounded up: the least possible. Each carries the whole vector, so for large
//! vectors [`super::reduce_scatter_gather`] moves less.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::{Builder, Shape};
use crate::collectives::common::tree::{self, binomial};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "binomial",
    summary: "ranks add their vector into one nearer to the root, from near to far",
    description: "The least rounds; the choice for small vectors.",
    cost: "ceil(log2 p) rounds of S bytes; the root receives S log2(p)",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let mut b = Builder::new(Collective::Reduce, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    tree::reduce(&mut b, vector, &binomial(shape.ranks, shape.root));
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn everyone_sends_once() {
        for (p, height) in [(1, 0), (2, 1), (5, 3), (64, 6)] {
            let schedule = build(&Shape::new(p, 10).with_root(p - 1)).unwrap();
            assert_eq!(rounds(&schedule), height);
            assert_eq!(messages(&schedule), p as usize - 1);
            assert_eq!(bytes_sent(&schedule).0, 0);
        }
    }
}
