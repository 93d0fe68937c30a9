//! Recursive doubling, latency optimal: in each round partners at distance 1, 2, 4, ... exchange
//! and add whole vectors.
//!
//! ```text
//!   p = 8    step 0   0-1  2-3  4-5  6-7
//!            step 1   0-2  1-3  4-6  5-7
//!            step 2   0-4  1-5  2-6  3-7
//! ```
//!
//! log2 p rounds, the least possible, and S log2 p bytes per rank. On a grid the steps alternate
//! between rows and columns. Where p is no power of two the surplus ranks first fold their vector
//! into a partner and get the result at the end.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::allreduce_latency;
use crate::collectives::common::cube::Cube;
use crate::collectives::Algorithm;
use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "recursive_doubling_latency",
    summary: "partners at distance 1, 2, 4, ... exchange whole vectors",
    description: "The least number of rounds, so it is for small messages. Surplus ranks beyond a \
                  power of two fold into a partner first. With a grid the steps alternate between \
                  its axes.",
    cost: "log2(p) rounds, S log2(p) bytes per rank; two rounds more off powers of two",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let (cube, mut b) = Cube::program(&ALGORITHM, shape)?;
    let data = b.absolute("output", 1);
    cube.exchange(&mut b, data);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    match program(shape) {
        Err(ScheduleError::Waived { .. }) => allreduce_latency(shape, Partners::Doubling),
        program => program?.expand(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, rounds};

    #[test]
    fn six_rounds_of_whole_vectors_over_64_ranks() {
        for shape in [Shape::new(64, 640), Shape::new(64, 640).with_grid(8, 8)] {
            let schedule = build(&shape).unwrap();
            assert_eq!(rounds(&schedule), 6);
            assert_eq!(bytes_sent(&schedule), (6 * 2560, 6 * 2560));
        }
    }

    #[test]
    fn folding_costs_two_rounds() {
        assert_eq!(rounds(&build(&Shape::new(11, 1)).unwrap()), 3 + 2);
        // 3 x 3: a fold along either axis, before and after the 2 x 2 core.
        let grid = Shape::new(9, 1).with_grid(3, 3);
        assert_eq!(rounds(&build(&grid).unwrap()), 2 + 4);
    }
}
