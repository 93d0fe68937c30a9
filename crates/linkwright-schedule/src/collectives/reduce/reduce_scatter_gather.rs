//! Reduce of a large vector: recursive halving, then collect the blocks along the same partners.
//!
//! ```text
//!   p = 4, root 0     halving    0-1, 2-3   then 0-2, 1-3     half, quarter of the vector
//!                     collect    2 -> 0, 3 -> 1   then 1 -> 0   quarter, half
//! ```
//!
//! 2 log2 p rounds and about 2 S per rank instead of S log2 p: everyone's port and arithmetic
//! work, not only the root's. Off powers of two surplus ranks fold into a partner; if the root is
//! one of them it gets the vector in one round more.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005), there called Rabenseifner's algorithm.

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::reduce;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "reduce_scatter_gather",
    summary: "recursive halving, then gather the blocks to the root along the same partners",
    description: "Moves about 2 S per rank however many there are (Rabenseifner's algorithm); the \
                  choice for large vectors. With a grid the steps alternate between its axes.",
    cost: "2 log2(p) rounds, at most 2 S (p-1)/p bytes per rank; up to two rounds and 2 S more off powers of two",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    reduce(shape, Partners::Doubling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, rounds};

    #[test]
    fn halving_and_collecting() {
        let schedule = build(&Shape::new(64, 640).with_root(9)).unwrap();
        assert_eq!(rounds(&schedule), 12);
        // The root sends only while halving, its first partner also half of the vector back.
        assert_eq!(bytes_sent(&schedule), (2520, 2520 + 1280));
    }

    #[test]
    fn a_surplus_root_costs_a_round() {
        let rounds_of = |root| rounds(&build(&Shape::new(5, 5).with_root(root)).unwrap());
        assert_eq!((rounds_of(0), rounds_of(4)), (1 + 2 + 2, 1 + 2 + 2 + 1));
    }
}
