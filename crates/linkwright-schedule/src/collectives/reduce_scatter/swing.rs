//! Swing reduce-scatter: as recursive halving, with partners at distance 1, 1, 3, 5, 11, ... on
//! alternating sides.
//!
//! ```text
//!   step s:  send what the partner reaches from step s+1 on, keep what I reach
//!   ring of 8, rank 0:   4 blocks to 1,   2 blocks to 7,   1 block to 3
//! ```
//!
//! log2 p rounds and S (p-1)/p bytes per rank; the ways on a ring are a third shorter than with
//! recursive halving, and the long ones carry single blocks. Off powers of two surplus ranks fold.
//!
//! Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
//! allreduce" (NSDI 2024).

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::reduce_scatter;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::ReduceScatter,
    name: "swing",
    summary: "partners at distance 1, 1, 3, 5, ... in turning directions exchange halves",
    description: "The rounds and bytes of recursive halving on shorter ways, made for rings and \
                  tori. Surplus ranks beyond a power of two fold into a partner, which costs them \
                  a whole vector. With a grid the steps alternate between its axes.",
    cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
    needs: "",
    source: "De Sensi, Bonato, Saam and Hoefler, NSDI 2024",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    reduce_scatter(shape, Partners::Swing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, rounds};

    #[test]
    fn six_rounds_and_the_least_bytes_over_64_ranks() {
        for shape in [Shape::new(64, 640), Shape::new(64, 640).with_grid(8, 8)] {
            let schedule = build(&shape).unwrap();
            assert_eq!(rounds(&schedule), 6);
            assert_eq!(bytes_sent(&schedule), (2520, 2520));
        }
    }

    #[test]
    fn a_surplus_rank_sends_its_vector_and_gets_its_block() {
        // 5 ranks of 4-byte blocks: 20 bytes in, rank 0 then answers for blocks 0 and 4.
        let schedule = build(&Shape::new(5, 5)).unwrap();
        assert_eq!(rounds(&schedule), 1 + 2 + 1);
        let last = schedule.ops().last().unwrap();
        assert_eq!((last.from, last.to, last.src, last.count), (0, 4, 4, 1));
    }
}
