//! Bruck alltoall: blocks hop along the binary digits of their way.
//!
//! ```text
//!   turn      slot i of r  =  block for r+i
//!   round k   slots whose digit k is 1 move from r to r+2^k, into the same slots
//!   turn back slot i of r  =  block from r-i
//! ```
//!
//! log2 p rounds, rounded up, of about S/2: a block moves as often as its way has ones, log2(p)/2
//! times in the mean. Few messages for many bytes: the choice for small blocks. Both turns are
//! local copies of a whole vector; sent slots are replaced, so the builder adds landing scratch.
//!
//! Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
//! communications in multiport message-passing systems" (IEEE TPDS 1997).

use crate::builder::Shape;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::{Group, Program};

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "bruck",
    summary: "blocks hop along the binary digits of their way",
    description: "The least rounds for every number of ranks at the price of log2(p)/2 times the \
                  bytes; the choice for small blocks.",
    cost: "ceil(log2 p) rounds of about S/2 bytes per rank, two local copies of S",
    needs: "",
    source: "Bruck et al., IEEE TPDS 1997",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::Alltoall, shape, Group::cyclic(p))?;
    let (input, output) = (b.relative("input"), b.relative("output"));
    let slots = b.absolute("scratch", p);
    let turn: Vec<_> = (0..p).map(|i| (i, i, 1)).collect();
    b.step();
    b.local_runs(input, slots, &turn);
    let mut way = 1;
    while way < p {
        let moving: Vec<u32> = (0..p).filter(|slot| slot & way != 0).collect();
        b.step();
        b.put_blocks(slots, way, slots, &moving);
        way *= 2;
    }
    let back: Vec<_> = (0..p).map(|i| (i, (p - i) % p, 1)).collect();
    b.step();
    b.local_runs(slots, output, &back);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    program(shape)?.expand()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn half_of_the_vector_in_every_round() {
        let schedule = build(&Shape::new(64, 640)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (6, 6 * 64));
        assert_eq!(bytes_sent(&schedule), (6 * 1280, 6 * 1280));
    }

    #[test]
    fn a_block_moves_as_often_as_its_way_has_ones() {
        // Ways 1, 2, 3, 4 of p = 5: 1 + 1 + 2 + 1 moves.
        let schedule = build(&Shape::new(5, 5)).unwrap();
        assert_eq!(bytes_sent(&schedule), (5 * 4, 5 * 4));
    }
}
