//! Two rings along the two edge-disjoint Hamiltonian cycles of a torus, half of the vector each.
//!
//! ```text
//!   cycle A on c x c:  c times  (c-1 moves +x, 1 move +y)
//!   cycle B         :  c times  (c-1 moves +y, 1 move +x)
//! ```
//!
//! The plain ring leaves half of a torus' forward links idle; these two use each of them once per
//! round. Tori that are not square have such cycles where the sides share a suitable divisor; the
//! general rule and its proof are in `common/hamiltonian.rs`.
//!
//! Source: Trotter and Erdos, "When the Cartesian product of directed cycles is Hamiltonian"
//! (Journal of Graph Theory 1978).

use crate::builder::Shape;
use crate::collectives::common::hamiltonian::allreduce;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "hamiltonian_rings",
    summary: "two rings along edge-disjoint Hamiltonian cycles of a torus",
    description: "Each of two directed Hamiltonian cycles carries half of the vector, so all \
                  forward links of a torus work all the time. Without a grid the squarest torus \
                  of as many ranks that has the cycles is taken.",
    cost: "2(p-1) rounds of two messages, 2 S (p-1)/p bytes per rank",
    needs: "a torus with two edge-disjoint directed Hamiltonian cycles, such as a square one",
    source: "Trotter and Erdos, Journal of Graph Theory 1978",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    allreduce(&ALGORITHM, shape, 2, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};
    use crate::error::ScheduleError;

    #[test]
    fn two_messages_per_round_and_the_bytes_of_one_ring() {
        let schedule = build(&Shape::new(64, 640).with_grid(8, 8)).unwrap();
        assert_eq!(rounds(&schedule), 126);
        assert_eq!(bytes_sent(&schedule), (5040, 5040));
        assert_eq!(schedule.ops().len(), 126 * 64 * 2);
        assert_eq!(notices(&schedule), 0);
    }

    #[test]
    fn a_prime_number_of_ranks_is_waived() {
        let waived = build(&Shape::new(7, 7)).unwrap_err();
        assert!(matches!(waived, ScheduleError::Waived { .. }));
    }
}
