//! Recursive doubling allgather: in every step partners exchange all that they have.
//!
//! ```text
//!   p = 4, rank 0     sends blocks   to      has
//!     step 0          0              2       0 2
//!     step 1          0 2            1       0 1 2 3
//! ```
//!
//! log2 p rounds and S (p-1)/p bytes per rank, both the least possible for powers of two. The
//! farthest partner comes first, so that the large messages go the short ways; the second half of
//! the bandwidth-optimal allreduce. Off powers of two a surplus rank gives its block to a partner
//! and gets all others from it at the end.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::allgather;
use crate::collectives::common::cube::Cube;
use crate::collectives::Algorithm;
use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "recursive_doubling",
    summary: "partners at distance ..., 4, 2, 1 exchange all that they have",
    description: "The least rounds and bytes for powers of two. Surplus ranks beyond get \
                  everything from a partner at the end. With a grid the steps alternate between \
                  its axes.",
    cost: "log2(p) rounds, S (p-1)/p bytes per rank; two rounds and up to S more off powers of two",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let (cube, mut b) = Cube::program(&ALGORITHM, shape)?;
    let data = b.relative("output");
    cube.double(&mut b, data);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    match program(shape) {
        Err(ScheduleError::Waived { .. }) => allgather(shape, Partners::Doubling),
        program => program?.expand(),
    }
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
