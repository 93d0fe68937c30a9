//! Bine trees and butterflies: binomial ones over shorter ways, with blocks in runs.
//!
//! ```text
//!   trees        [`super::common::bine`]: round by round at a distance of p/3, p/6, ... 3, 1, 1
//!   butterflies  the meetings of [`super::swing`]: at a distance of 1, 1, 3, 5, ... about 2^i / 3
//!
//!   8 ranks, blocks in the order of their owners   0 3 7 4 1 6 2 5
//!     rank 0 sends   blocks 4-7 to 1,   blocks 2-3 to 7,   block 1 to 3
//! ```
//!
//! Ways are a third shorter than those of binomial trees, so less crosses the borders of groups of neighbours: up
//! to 33 % less over the global links of a dragonfly or a tapered fat tree. Where Swing scatters the blocks of a
//! message, here an allreduce, broadcast or reduce puts them into an order in which every message is a run. In
//! a reduce-scatter or allgather the blocks belong to their ranks: either one more message brings each to its
//! place, or near partners exchange first, and ranks hold what they met, a growing run that may wrap.
//!
//! Whole vectors are exchanged as in `allreduce/swing_latency`, which others call Bine's allreduce for small vectors.

use crate::collectives::common::bine::bine;
use crate::collectives::common::butterfly::Partners::Bine;
use crate::collectives::common::butterfly_runs as runs;
use crate::collectives::common::butterfly_schedules as folded;
use crate::collectives::common::tree;
use crate::collectives::prelude::*;

const SOURCE: &str =
    "De Sensi and others, \"Bine trees: enhancing collective operations by optimizing communication locality\" (SC \
     2025)";

algorithm! {
    /// every rank that has the vector forwards it, a third of the ring away at first
    ///
    /// A binomial tree whose branches are a third shorter, so that less leaves a group of neighbours. Fewest
    /// rounds: for small vectors.
    pub BROADCAST = Broadcast "bine" {
        cost: "ceil(log2 p) rounds of S bytes; the root sends S log2(p)",
        source: SOURCE,
        build: |shape| {
            tree::whole_vectors(shape, Collective::Broadcast, &bine(shape.ranks, shape.root))
        },
    }

    /// scatter along near partners first, then double the blocks back
    ///
    /// Scatter and allgather along the meetings of Swing, with blocks in runs: moves about 2 S per rank, however
    /// many there are. For large vectors. With a grid, the steps alternate between its axes.
    pub BROADCAST_LARGE = Broadcast "bine_bandwidth" {
        cost: "2 log2(p) rounds, at most 2 S (p-1)/p bytes per rank; up to two rounds and 2 S more off powers of two",
        source: SOURCE,
        build: |shape| runs::broadcast(shape, Bine),
    }

    /// ranks add their vectors into one nearer to the root, nearest first
    ///
    /// A binomial tree whose branches are a third shorter, so that less leaves a group of neighbours. Fewest
    /// rounds: for small vectors.
    pub REDUCE = Reduce "bine" {
        cost: "ceil(log2 p) rounds of S bytes; the root receives S log2(p)",
        source: SOURCE,
        build: |shape| tree::whole_vectors(shape, Collective::Reduce, &bine(shape.ranks, shape.root)),
    }

    /// halve the vector between near partners, then gather the blocks along the same ones
    ///
    /// Reduce-scatter and gather along the meetings of Swing, with blocks in runs: moves about 2 S per rank,
    /// however many there are. For large vectors. With a grid, the steps alternate between its axes.
    pub REDUCE_LARGE = Reduce "bine_bandwidth" {
        cost: "2 log2(p) rounds, at most 2 S (p-1)/p bytes per rank; up to two rounds and 2 S more off powers of two",
        source: SOURCE,
        build: |shape| folded::reduce(shape, Bine),
    }

    /// blocks flow down a bine tree and are bundled on the way
    ///
    /// A binomial tree whose branches are a third shorter. What a rank relays is one run of blocks. For small
    /// blocks.
    pub GATHER = Gather "bine" {
        cost: "ceil(log2 p) rounds, S (p-1)/p bytes into the root; up to S/2 from a relay",
        source: SOURCE,
        build: |shape| tree::gather(shape, &bine(shape.ranks, shape.root)),
    }

    /// bundles of blocks flow up a bine tree and are split on the way
    ///
    /// A binomial tree whose branches are a third shorter. What a rank relays is one run of blocks. For small
    /// blocks.
    pub SCATTER = Scatter "bine" {
        cost: "ceil(log2 p) rounds, S (p-1)/p bytes from the root; up to S/2 into a relay",
        source: SOURCE,
        build: |shape| tree::scatter(shape, &bine(shape.ranks, shape.root)),
    }

    /// Swing's halving and doubling with every message in one run
    ///
    /// Partners at distance 1, 1, 3, 5, ... in turning directions; blocks are in an order in which none of a
    /// message are scattered. For medium and large vectors. With a grid, the steps alternate between its axes. For
    /// small vectors use swing_latency, which has the same meetings.
    pub ALLREDUCE = Allreduce "bine_bandwidth" {
        cost: "2 log2(p) rounds, 2 S (p-1)/p bytes per rank; two rounds and up to 2 S more off powers of two",
        source: SOURCE,
        build: |shape| folded::allreduce_bandwidth(shape, Bine),
    }

    /// Swing's halving in runs of blocks, then each block to its rank
    ///
    /// Near partners exchange the most, and every message is one run; the price is one block more per rank, at the
    /// end. With a grid, the steps alternate between its axes.
    pub REDUCE_SCATTER = ReduceScatter "bine" {
        cost: "1 + log2(p) rounds, S bytes per rank; one round and up to S more off powers of two",
        source: SOURCE,
        build: |shape| runs::reduce_scatter_exchanged(shape, Bine),
    }

    /// each block to its owner, then Swing's doubling in runs of blocks
    ///
    /// Near partners exchange the most, and every message is one run; the price is one block more per rank, at the
    /// beginning. With a grid, the steps alternate between its axes.
    pub ALLGATHER = Allgather "bine" {
        cost: "1 + log2(p) rounds, S bytes per rank; one round and up to S more off powers of two",
        source: SOURCE,
        build: |shape| runs::allgather_exchanged(shape, Bine),
    }

    /// near partners first; what a rank holds is a growing run of blocks
    ///
    /// No block moves twice and none is scattered but by the end of the vector; the price is that the largest
    /// messages go farthest. With a grid, the steps alternate between its axes, and runs are shorter.
    pub ALLGATHER_TWO_RUNS = Allgather "bine_two_runs" {
        cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
        source: SOURCE,
        build: |shape| runs::allgather_near_first(shape, Bine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::ir::Schedule;

    /// Most runs of a message.
    fn most_runs(schedule: &Schedule) -> u32 {
        let messages = schedule
            .ops()
            .iter()
            .filter(|op| op.moves_data() && op.count > 0);
        messages.map(|op| schedule.op_runs(op)).max().unwrap()
    }

    #[test]
    fn messages_are_runs() {
        for shape in [Shape::new(64, 64), Shape::new(64, 64).with_grid(8, 8)] {
            for algorithm in [
                &BROADCAST_LARGE,
                &REDUCE_LARGE,
                &ALLREDUCE,
                &REDUCE_SCATTER,
                &ALLGATHER,
            ] {
                let schedule = (algorithm.build)(&shape).unwrap();
                assert_eq!(most_runs(&schedule), 1, "{} {shape:?}", algorithm.key());
            }
        }
        let beyond = (REDUCE_SCATTER.build)(&Shape::new(37, 37)).unwrap();
        assert_eq!(most_runs(&beyond), 1);
    }

    #[test]
    fn messages_of_near_partners_first_wrap_at_most() {
        let schedule = (ALLGATHER_TWO_RUNS.build)(&Shape::new(128, 128)).unwrap();
        assert_eq!(most_runs(&schedule), 2);
        // Of a root's gather only the end of the vector cuts a run.
        let gather = (GATHER.build)(&Shape::new(100, 100).with_root(17)).unwrap();
        assert_eq!(most_runs(&gather), 2);
    }
}
