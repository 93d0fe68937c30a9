//! Ring: everyone sends to its successor only, once round for a reduce-scatter, once for an allgather.
//!
//! ```text
//!   reduce_scatter   step s < p-1 :  rank r sends block r-1-s to r+1, which adds it
//!   allgather        step s < p-1 :  rank r sends block r-s   to r+1, which keeps it
//!   allreduce        the first, then the second
//!
//!   block 0 of p = 4, reduce_scatter:   1 --> 2 --> 3 --> 0      one more contribution at each stop
//!                     allgather:        0 --> 1 --> 2 --> 3      one more rank that has it
//! ```
//!
//! The allgather is the reduce-scatter reversed: a block starts where it ended, and is copied where
//! it was added. Each moves S (p-1)/p bytes per rank, the least possible, in p-1
//! rounds, the most that any algorithm uses.
//!
//! Several orders of the ranks may be given; each ring then carries its part of the vector, and
//! all rings run at once.

use crate::collectives::common::phases;
use crate::collectives::common::ring::{self, Blocks};
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Patarasuk and Yuan, \"Bandwidth optimal all-reduce algorithms for clusters of workstations\" (JPDC 2009)";

algorithm! {
    /// reduce-scatter, then allgather, each once around a ring
    ///
    /// Every rank sends only to its successor. Moves the fewest bytes possible and loads every link of a ring
    /// equally; since the rounds grow with p, it suits large messages.
    pub ALLREDUCE = Allreduce "ring" {
        cost: "2(p-1) rounds, 2 S (p-1)/p bytes per rank",
        source: SOURCE,
        program: |shape| program(&ALLREDUCE, shape),
        build: |shape| build(&ALLREDUCE, shape),
    }

    /// blocks travel once around a ring and collect contributions
    ///
    /// Every rank sends only to its successor. Moves the fewest bytes possible and loads every link of a ring
    /// equally; since the rounds grow with p, it suits large messages.
    pub REDUCE_SCATTER = ReduceScatter "ring" {
        cost: "p-1 rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: |shape| program(&REDUCE_SCATTER, shape),
        build: |shape| build(&REDUCE_SCATTER, shape),
    }

    /// blocks travel once around a ring
    ///
    /// Every rank sends only to its successor. Moves the fewest bytes possible and loads every link of a ring
    /// equally; since the rounds grow with p, it suits large messages.
    pub ALLGATHER = Allgather "ring" {
        cost: "p-1 rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: |shape| program(&ALLGATHER, shape),
        build: |shape| build(&ALLGATHER, shape),
    }
}

fn program(algorithm: &Algorithm, shape: &Shape) -> Result<Program> {
    let mut b = ring::program(algorithm, shape)?;
    let data = b.relative("output");
    for &phase in phases(algorithm.collective) {
        ring::once_round(&mut b, data, phase);
    }
    Ok(b)
}

fn build(algorithm: &Algorithm, shape: &Shape) -> Result<Schedule> {
    if shape.rings.is_empty() {
        return program(algorithm, shape)?.expand();
    }
    let rings = ring::of(shape);
    let count = rings.len() as u32;
    let (buffer, blocks) = match phases(algorithm.collective) {
        [_, _] => (
            Buffer::vector("output", count * shape.ranks),
            Blocks::ByRing,
        ),
        // The result is defined rank by rank, so each ring takes a slice of every block.
        _ => {
            let sliced = Buffer {
                slices: count,
                ..Buffer::vector("output", shape.ranks)
            };
            (sliced, Blocks::ByRank)
        }
    };
    let mut b = Builder::new(algorithm.collective, shape);
    let data = b.buffer(buffer);
    for &phase in phases(algorithm.collective) {
        ring::rounds(&mut b, data, &rings, blocks, phase);
    }
    b.finish()
}
