//! Recursive doubling, bandwidth optimal: halve the vector from partner to partner, then double
//! it back.
//!
//! ```text
//!   p = 4, rank 0     sends blocks   to      keeps
//!     step 0          1 3            1       0 2
//!     step 1          2              2       0       complete
//!     step 2          0              2       0 2
//!     step 3          0 2            1       0 1 2 3
//! ```
//!
//! 2 log2 p rounds and 2 S (p-1)/p bytes per rank, the least possible. Near partners exchange the
//! most, so the long ways carry the small messages; the price is that a message consists of many
//! scattered runs (32, 16, 8, 4, 2, 1 over 64 ranks), which some machines pay for one by one.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005), there called Rabenseifner's algorithm.

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::allreduce_bandwidth;
use crate::collectives::common::cube::Cube;
use crate::collectives::Algorithm;
use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "recursive_doubling_bandwidth",
    summary: "halve the vector between partners at distance 1, 2, 4, ..., then double it back",
    description: "Moves the least bytes possible in few rounds (Rabenseifner's algorithm): good \
                  from medium sizes on. Surplus ranks beyond a power of two fold into a partner \
                  first. With a grid the steps alternate between its axes.",
    cost: "2 log2(p) rounds, 2 S (p-1)/p bytes per rank; two rounds and up to 2 S more off powers \
           of two",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let (cube, mut b) = Cube::program(&ALGORITHM, shape)?;
    let data = b.relative("output");
    cube.halve(&mut b, data);
    cube.double(&mut b, data);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    match program(shape) {
        Err(ScheduleError::Waived { .. }) => allreduce_bandwidth(shape, Partners::Doubling),
        program => program?.expand(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, rounds};
    use crate::ir::OpKind;

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
    fn messages_are_scattered_most_where_they_are_longest() {
        let schedule = build(&Shape::new(64, 64)).unwrap();
        let puts = schedule.ops().iter().filter(|op| op.kind == OpKind::Put);
        let runs: Vec<u32> = puts
            .filter(|op| op.from == 0)
            .map(|op| schedule.op_runs(op))
            .collect();
        assert_eq!(runs, [32, 16, 8, 4, 2, 1, 1, 2, 4, 8, 16, 32]);
    }
}
