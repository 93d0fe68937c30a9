//! Swing, latency optimal: partners alternate sides at distance 1, 1, 3, 5, 11, ... and exchange
//! and add whole vectors.
//!
//! ```text
//!   ring of 8, even ranks    step 0: +1    step 1: -1    step 2: +3
//!              odd ranks             -1            +1            -3
//! ```
//!
//! As many rounds and bytes as recursive doubling, but the ways are a third shorter on a ring, so
//! fewer messages share a link: at most 1, 1, 2, 3, 6 over 32 ranks instead of 1, 2, 4, 8, 16. On
//! a grid the steps alternate between rows and columns. Off powers of two surplus ranks fold.
//!
//! Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
//! allreduce" (NSDI 2024).

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::allreduce_latency;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "swing_latency",
    summary: "partners at distance 1, 1, 3, 5, ... in turning directions exchange whole vectors",
    description: "The rounds and bytes of recursive doubling on shorter ways, made for rings and \
                  tori. Surplus ranks beyond a power of two fold into a partner first. With a \
                  grid the steps alternate between its axes.",
    cost: "log2(p) rounds, S log2(p) bytes per rank; two rounds more off powers of two",
    needs: "",
    source: "De Sensi, Bonato, Saam and Hoefler, NSDI 2024",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    allreduce_latency(shape, Partners::Swing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, rounds};
    use crate::ir::{Hint, OpKind};

    #[test]
    fn six_rounds_of_whole_vectors_over_64_ranks() {
        let schedule = build(&Shape::new(64, 640).with_grid(8, 8)).unwrap();
        assert_eq!(rounds(&schedule), 6);
        assert_eq!(bytes_sent(&schedule), (6 * 2560, 6 * 2560));
    }

    #[test]
    fn partners_go_opposite_ways() {
        let schedule = build(&Shape::new(64, 64).with_grid(8, 8)).unwrap();
        let puts = schedule.ops().iter().filter(|op| op.kind == OpKind::Put);
        // Rank 0 is even in both coordinates: +1, +1, -1, -1, +3, +3.
        let ways: Vec<Hint> = puts.filter(|op| op.from == 0).map(|op| op.hint).collect();
        let (x, y) = (Hint::PlusX, Hint::PlusY);
        assert_eq!(ways, [x, y, Hint::MinusX, Hint::MinusY, x, y]);
    }
}
