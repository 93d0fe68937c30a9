//! Swing, bandwidth optimal: halve the vector between partners at distance 1, 1, 3, 5, 11, ...,
//! then double it back.
//!
//! ```text
//!   reduce-scatter   step s = 0 .. last:  send what the partner reaches from step s+1 on
//!   allgather        step s = last .. 0:  send what I reach from step s+1 on
//! ```
//!
//! 2 log2 p rounds and 2 S (p-1)/p bytes per rank, the least possible. Half of the bytes go to a
//! direct neighbour and the longest way, about p/3 on a ring, carries one block. Off powers of
//! two surplus ranks fold.
//!
//! Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
//! allreduce" (NSDI 2024).

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::allreduce_bandwidth;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "swing_bandwidth",
    summary: "halve the vector between partners at distance 1, 1, 3, 5, ..., then double it back",
    description:
        "The rounds and bytes of Rabenseifner's algorithm on shorter ways, made for rings \
                  and tori. Surplus ranks beyond a power of two fold into a partner first. With a \
                  grid the steps alternate between its axes.",
    cost: "2 log2(p) rounds, 2 S (p-1)/p bytes per rank; two rounds and up to 2 S more off powers \
           of two",
    needs: "",
    source: "De Sensi, Bonato, Saam and Hoefler, NSDI 2024",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    allreduce_bandwidth(shape, Partners::Swing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, rounds};

    #[test]
    fn twelve_rounds_and_the_least_bytes_over_64_ranks() {
        for shape in [Shape::new(64, 640), Shape::new(64, 640).with_grid(8, 8)] {
            let schedule = build(&shape).unwrap();
            assert_eq!(rounds(&schedule), 12);
            // 2 S 63/64 = 1.96875 x 2560 bytes.
            assert_eq!(bytes_sent(&schedule), (5040, 5040));
        }
    }

    #[test]
    fn the_first_messages_have_16_or_17_runs() {
        let schedule = build(&Shape::new(64, 64).with_grid(8, 8)).unwrap();
        let first = schedule.ops()[0].step;
        let step = schedule.ops().iter().filter(|op| op.step == first);
        let runs: Vec<u32> = step.map(|op| schedule.op_runs(op)).collect();
        assert_eq!(
            (runs.iter().min(), runs.iter().max()),
            (Some(&16), Some(&17))
        );
    }
}
