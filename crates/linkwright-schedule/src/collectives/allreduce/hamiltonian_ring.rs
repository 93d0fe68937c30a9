//! Ring allreduce along a Hamiltonian cycle of a torus: every hop is one link.
//!
//! ```text
//!   4 x 4:   y = 1   > > ^ >     three along, one across; the wrap links close the rows
//!            y = 0   > > > ^
//! ```
//!
//! A plain ring over ranks in row order jumps from the end of a row to the start of the next,
//! which on one-way links is a way through both. This one never leaves the neighbourhood and uses
//! forward links only. The cycle is the first of [`super::hamiltonian_rings`]; on a torus of 8 x 8
//! it takes seven steps along and one across, eight times.
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
    name: "hamiltonian_ring",
    summary: "ring along a directed Hamiltonian cycle of a torus",
    description: "Ring allreduce whose every hop is one forward link of a two-dimensional \
                  torus. Without a grid the squarest torus of as many ranks that has the cycle \
                  is taken.",
    cost: "2(p-1) rounds, 2 S (p-1)/p bytes per rank",
    needs: "a torus with a directed Hamiltonian cycle, such as a square one",
    source: "Trotter and Erdos, Journal of Graph Theory 1978",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    allreduce(&ALGORITHM, shape, 1, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};
    use crate::error::ScheduleError;
    use crate::ir::Hint;

    #[test]
    fn the_cost_of_a_ring_with_a_way_for_every_hop() {
        let schedule = build(&Shape::new(64, 640).with_grid(8, 8)).unwrap();
        assert_eq!(rounds(&schedule), 126);
        assert_eq!(bytes_sent(&schedule), (5040, 5040));
        assert_eq!(notices(&schedule), 0);
        assert!(schedule.ops().iter().all(|op| op.hint != Hint::None));
    }

    #[test]
    fn coprime_sides_are_waived_with_a_cure() {
        let waived = build(&Shape::new(12, 12).with_grid(4, 3)).unwrap_err();
        assert!(matches!(waived, ScheduleError::Waived { .. }));
        assert!(waived.to_string().contains("use a square grid"), "{waived}");
    }
}
