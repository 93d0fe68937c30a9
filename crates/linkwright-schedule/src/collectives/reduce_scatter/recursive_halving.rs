//! Recursive halving: in every step partners exchange the halves that the other goes on with.
//!
//! ```text
//!   p = 4, rank 0     sends blocks   to      keeps
//!     step 0          1 3            1       0 2
//!     step 1          2              2       0       complete
//! ```
//!
//! log2 p rounds and S (p-1)/p bytes per rank, both the least possible for powers of two. The
//! textbook starts with the farthest partner and contiguous halves; this one starts with the
//! nearest, so that the large messages go the short ways, and sends scattered blocks. Off powers
//! of two a surplus rank adds its vector into a partner, which acts for both and returns its
//! block at the end.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::Shape;
use crate::collectives::common::butterfly::Partners;
use crate::collectives::common::butterfly_schedules::reduce_scatter;
use crate::collectives::common::cube::Cube;
use crate::collectives::Algorithm;
use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::ReduceScatter,
    name: "recursive_halving",
    summary: "partners at distance 1, 2, 4, ... exchange halves of what is left",
    description: "The least rounds and bytes for powers of two. Surplus ranks beyond fold into a \
                  partner, which costs them a whole vector. With a grid the steps alternate \
                  between its axes.",
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
    cube.halve(&mut b, data);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    match program(shape) {
        Err(ScheduleError::Waived { .. }) => reduce_scatter(shape, Partners::Doubling),
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
    fn a_surplus_rank_sends_its_vector_and_gets_its_block() {
        // 5 ranks of 4-byte blocks: 20 bytes in, rank 0 then answers for blocks 0 and 4.
        let schedule = build(&Shape::new(5, 5)).unwrap();
        assert_eq!(rounds(&schedule), 1 + 2 + 1);
        let last = schedule.ops().last().unwrap();
        assert_eq!((last.from, last.to, last.src, last.count), (0, 4, 4, 1));
    }
}
