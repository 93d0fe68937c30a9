//! Binomial broadcast: everyone who has the vector sends it on, so they double every round.
//!
//! ```text
//!   p = 8    round 0   0 -> 4
//!            round 1   0 -> 2   4 -> 6
//!            round 2   0 -> 1   2 -> 3   4 -> 5   6 -> 7
//! ```
//!
//! log2 p rounds, rounded up: the least possible. Each carries the whole vector, so for large
//! vectors [`super::scatter_allgather`] moves less.
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
    collective: Collective::Broadcast,
    name: "binomial",
    summary: "everyone who has the vector sends it on, from far to near",
    description: "The least rounds; the choice for small vectors.",
    cost: "ceil(log2 p) rounds of S bytes; the root sends S log2(p)",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let mut b = Builder::new(Collective::Broadcast, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    tree::broadcast(&mut b, vector, &binomial(shape.ranks, shape.root));
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn the_informed_double() {
        for (p, height) in [(1, 0), (2, 1), (5, 3), (64, 6)] {
            let schedule = build(&Shape::new(p, 10).with_root(p - 1)).unwrap();
            assert_eq!(rounds(&schedule), height);
            assert_eq!(messages(&schedule), p as usize - 1);
            assert_eq!(bytes_sent(&schedule).1, 40 * height as u64);
        }
    }
}
