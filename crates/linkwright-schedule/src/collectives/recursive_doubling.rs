//! Recursive halving and doubling: in every step partners at distance 1, 2, 4, ... exchange.
//!
//! ```text
//!   whole vectors, p = 8       step 0   0-1  2-3  4-5  6-7
//!   (allreduce, latency)       step 1   0-2  1-3  4-6  5-7
//!                              step 2   0-4  1-5  2-6  3-7
//!
//!   blocks, p = 4, rank 0      sends blocks   to      keeps
//!     halving    step 0        1 3            1       0 2
//!                step 1        2              2       0       complete: reduce_scatter
//!     doubling   step 2        0              2       0 2
//!                step 3        0 2            1       0 1 2 3           allgather
//!   both                                                                allreduce, bandwidth
//!   halving, then collecting along the same partners                    reduce
//! ```
//!
//! Doubling is halving reversed: partners return what they were sent, copied instead of added.
//! Each takes log2 p rounds and S (p-1)/p bytes per rank, both the least possible for powers of
//! two; whole vectors take S log2 p bytes in half of the rounds of an allreduce.
//!
//! The textbook starts with the farthest partner and sends contiguous halves. Here near partners
//! exchange the most, so that large messages travel short distances; the price is that a message
//! consists of many scattered runs (32, 16, 8, 4, 2, 1 over 64 ranks), each of which costs extra on
//! some machines. On a grid the steps alternate between rows and columns.
//!
//! Off powers of two a surplus rank adds its vector into a partner, which acts for both and
//! returns the result at the end. If the root of a reduce is a surplus rank, it gets the vector in
//! one round more.
//!
//! Allreduce and reduce of blocks are also called Rabenseifner's.

use crate::collectives::common::butterfly::Partners::{self, Doubling};
use crate::collectives::common::butterfly_schedules as folded;
use crate::collectives::common::cube::Cube;
use crate::collectives::common::phases;
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Thakur, Rabenseifner and Gropp, \"Optimization of collective communication operations in MPICH\" (IJHPCA 2005)";

algorithm! {
    /// partners at distance 1, 2, 4, ... exchange whole vectors
    ///
    /// Fewest rounds: for small messages. Ranks beyond a power of two first fold into a partner. With a grid, the
    /// steps alternate between its axes.
    pub ALLREDUCE_LATENCY = Allreduce "recursive_doubling_latency" {
        cost: "log2(p) rounds, S log2(p) bytes per rank; two rounds more off powers of two",
        source: SOURCE,
        program: whole_vectors,
        build: |shape| expand(whole_vectors(shape), folded::allreduce_latency, shape),
    }

    /// halve the vector between partners at distance 1, 2, 4, ..., then double it back
    ///
    /// Moves the fewest bytes in few rounds (Rabenseifner's algorithm): good for medium and large sizes. Ranks
    /// beyond a power of two first fold into a partner. With a grid, the steps alternate between its axes.
    pub ALLREDUCE_BANDWIDTH = Allreduce "recursive_doubling_bandwidth" {
        cost: "2 log2(p) rounds, 2 S (p-1)/p bytes per rank; two rounds and up to 2 S more off powers of two",
        source: SOURCE,
        program: |shape| blocks(&ALLREDUCE_BANDWIDTH, shape),
        build: |shape| {
            expand(
                blocks(&ALLREDUCE_BANDWIDTH, shape),
                folded::allreduce_bandwidth,
                shape,
            )
        },
    }

    /// partners at distance 1, 2, 4, ... exchange halves of what is left
    ///
    /// Fewest rounds and bytes for powers of two. Ranks beyond that fold into a partner, which costs them a whole
    /// vector. With a grid, the steps alternate between its axes.
    pub REDUCE_SCATTER = ReduceScatter "recursive_halving" {
        cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
        source: SOURCE,
        program: |shape| blocks(&REDUCE_SCATTER, shape),
        build: |shape| {
            expand(
                blocks(&REDUCE_SCATTER, shape),
                folded::reduce_scatter,
                shape,
            )
        },
    }

    /// partners at distance ..., 4, 2, 1 exchange all they have
    ///
    /// Fewest rounds and bytes for powers of two. Ranks beyond that get everything from a partner at the end. With
    /// a grid, the steps alternate between its axes.
    pub ALLGATHER = Allgather "recursive_doubling" {
        cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
        source: SOURCE,
        program: |shape| blocks(&ALLGATHER, shape),
        build: |shape| expand(blocks(&ALLGATHER, shape), folded::allgather, shape),
    }

    /// recursive halving, then gather the blocks to the root along the same partners
    ///
    /// Moves about 2 S per rank, however many there are (Rabenseifner's algorithm); the choice for large vectors.
    /// With a grid, the steps alternate between its axes.
    pub REDUCE = Reduce "reduce_scatter_gather" {
        cost: "2 log2(p) rounds, at most 2 S (p-1)/p bytes per rank; up to two rounds and 2 S more off powers of two",
        source: SOURCE,
        build: |shape| folded::reduce(shape, Doubling),
    }
}

/// The same over a butterfly, whose surplus ranks fold.
type Folded = fn(&Shape, Partners) -> Result<Schedule>;

fn whole_vectors(shape: &Shape) -> Result<Program> {
    let (cube, mut b) = Cube::program(&ALLREDUCE_LATENCY, shape)?;
    let data = b.absolute("output", 1);
    cube.exchange(&mut b, data);
    Ok(b)
}

fn blocks(algorithm: &Algorithm, shape: &Shape) -> Result<Program> {
    let (cube, mut b) = Cube::program(algorithm, shape)?;
    let data = b.relative("output");
    for &phase in phases(algorithm.collective) {
        cube.pass(&mut b, data, phase);
    }
    Ok(b)
}

/// What every rank does in `program`; where that is waived, `folded` deals with surplus ranks.
fn expand(program: Result<Program>, folded: Folded, shape: &Shape) -> Result<Schedule> {
    match program {
        Err(ScheduleError::Waived { .. }) => folded(shape, Doubling),
        program => program?.expand(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::OpKind;

    #[test]
    fn messages_are_scattered_most_where_they_are_longest() {
        let schedule = (ALLREDUCE_BANDWIDTH.build)(&Shape::new(64, 64)).unwrap();
        let puts = schedule.ops().iter().filter(|op| op.kind == OpKind::Put);
        let runs: Vec<u32> = puts
            .filter(|op| op.from == 0)
            .map(|op| schedule.op_runs(op))
            .collect();
        assert_eq!(runs, [32, 16, 8, 4, 2, 1, 1, 2, 4, 8, 16, 32]);
    }
}
