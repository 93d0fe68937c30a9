//! Swing: recursive halving and doubling with partners at distance 1, 1, 3, 5, 11, ... on
//! alternating sides.
//!
//! ```text
//!   ring of 8, even ranks    step 0: +1    step 1: -1    step 2: +3
//!              odd ranks             -1            +1            -3
//!
//!   allreduce, latency       exchange whole vectors
//!   reduce_scatter           step s = 0 .. last:  send what the partner reaches from step s+1 on
//!                            rank 0:   4 blocks to 1,   2 blocks to 7,   1 block to 3
//!   allgather                step s = last .. 0:  send what I reach from step s+1 on
//!                            rank 0:   1 block to 3,   2 blocks to 7,   4 blocks to 1
//!   allreduce, bandwidth     the reduce_scatter, then the allgather
//! ```
//!
//! Rounds and bytes are those of [`super::recursive_doubling`], but the routes on a ring are a third
//! shorter, so fewer messages share a link: at most 1, 1, 2, 3, 6 over 32 ranks instead of 1, 2, 4,
//! 8, 16. Half of the bytes go to a direct neighbour and the longest route, about p/3, carries one
//! block. On a grid the steps alternate between rows and columns. Ranks beyond a power of two fold.

use crate::collectives::algorithm::algorithm;
use crate::collectives::common::butterfly::Partners::Swing;
use crate::collectives::common::butterfly_schedules as folded;

const SOURCE: &str =
    "De Sensi, Bonato, Saam and Hoefler, \"Swing: short-cutting rings for higher bandwidth allreduce\" (NSDI 2024)";

algorithm! {
    /// partners at distance 1, 1, 3, 5, ... in alternating directions exchange whole vectors
    ///
    /// The rounds and bytes of recursive doubling over shorter routes, made for rings and tori. Ranks beyond a
    /// power of two first fold into a partner. With a grid, the steps alternate between its axes. Bine's allreduce
    /// of small vectors has the same meetings.
    pub ALLREDUCE_LATENCY = Allreduce "swing_latency" {
        cost: "log2(p) rounds, S log2(p) bytes per rank; two rounds more off powers of two",
        source: SOURCE,
        build: |shape| folded::allreduce_latency(shape, Swing),
    }

    /// halve the vector between partners at distance 1, 1, 3, 5, ..., then double it back
    ///
    /// The rounds and bytes of Rabenseifner's algorithm over shorter routes, made for rings and tori. Ranks beyond
    /// a power of two first fold into a partner. With a grid, the steps alternate between its axes.
    pub ALLREDUCE_BANDWIDTH = Allreduce "swing_bandwidth" {
        cost: "2 log2(p) rounds, 2 S (p-1)/p bytes per rank; two rounds and up to 2 S more off powers of two",
        source: SOURCE,
        build: |shape| folded::allreduce_bandwidth(shape, Swing),
    }

    /// partners at distance 1, 1, 3, 5, ... in alternating directions exchange halves
    ///
    /// The rounds and bytes of recursive halving over shorter routes, made for rings and tori. Ranks beyond a power
    /// of two fold into a partner, which costs them a whole vector. With a grid, the steps alternate between its
    /// axes.
    pub REDUCE_SCATTER = ReduceScatter "swing" {
        cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
        source: SOURCE,
        build: |shape| folded::reduce_scatter(shape, Swing),
    }

    /// partners at distance ..., 5, 3, 1, 1 in alternating directions exchange all they have
    ///
    /// The rounds and bytes of recursive doubling over shorter routes, made for rings and tori. Ranks beyond a
    /// power of two get everything from a partner at the end. With a grid, the steps alternate between its axes.
    pub ALLGATHER = Allgather "swing" {
        cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
        source: SOURCE,
        build: |shape| folded::allgather(shape, Swing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::ir::{Hint, OpKind};

    #[test]
    fn the_first_messages_have_16_or_17_runs() {
        let schedule = (ALLREDUCE_BANDWIDTH.build)(&Shape::new(64, 64).with_grid(8, 8)).unwrap();
        let first = schedule.ops()[0].step;
        let step = schedule.ops().iter().filter(|op| op.step == first);
        let runs: Vec<u32> = step.map(|op| schedule.op_runs(op)).collect();
        assert_eq!(
            (runs.iter().min(), runs.iter().max()),
            (Some(&16), Some(&17))
        );
    }

    #[test]
    fn partners_go_opposite_ways() {
        let schedule = (ALLREDUCE_LATENCY.build)(&Shape::new(64, 64).with_grid(8, 8)).unwrap();
        let puts = schedule.ops().iter().filter(|op| op.kind == OpKind::Put);
        // Rank 0 is even in both coordinates: +1, +1, -1, -1, +3, +3.
        let ways: Vec<Hint> = puts.filter(|op| op.from == 0).map(|op| op.hint).collect();
        let (x, y) = (Hint::PlusX, Hint::PlusY);
        assert_eq!(ways, [x, y, Hint::MinusX, Hint::MinusY, x, y]);
    }
}
