//! Swing allgather: as recursive doubling, with partners at distance ..., 5, 3, 1, 1 on
//! alternating sides.
//!
//! ```text
//!   step s = last .. 0:  send what I reach from step s+1 on
//!   ring of 8, rank 0:   1 block to 3,   2 blocks to 7,   4 blocks to 1
//! ```
//!
//! log2 p rounds and S (p-1)/p bytes per rank; the ways on a ring are a third shorter than with
//! recursive doubling, and the long ones carry single blocks. Off powers of two surplus ranks fold.
//!
//! Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
//! allreduce" (NSDI 2024).

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::allgather;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "swing",
    summary:
        "partners at distance ..., 5, 3, 1, 1 in turning directions exchange all that they have",
    description: "The rounds and bytes of recursive doubling on shorter ways, made for rings and \
                  tori. Surplus ranks beyond a power of two get everything from a partner at the \
                  end. With a grid the steps alternate between its axes.",
    cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
    needs: "",
    source: "De Sensi, Bonato, Saam and Hoefler, NSDI 2024",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    allgather(shape, Partners::Swing)
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
    fn a_surplus_rank_gets_all_but_its_own_block() {
        let schedule = build(&Shape::new(5, 5)).unwrap();
        assert_eq!(rounds(&schedule), 1 + 2 + 1);
        let last = schedule.ops().last().unwrap();
        assert_eq!((last.from, last.to, last.src, last.count), (0, 4, 0, 4));
    }
}
