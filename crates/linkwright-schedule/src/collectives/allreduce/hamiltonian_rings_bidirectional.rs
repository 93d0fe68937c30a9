//! Four rings along the two edge-disjoint Hamiltonian cycles of a torus, both ways round, a
//! quarter of the vector each.
//!
//! ```text
//!   A and B          use every +x and +y link once per round
//!   their reversals  use every -x and -y link once per round
//! ```
//!
//! With two-way links, or with a second network of one-way links in the other direction, nobody
//! shares a link and none is idle: on 8 x 8 all 4 x 64 links carry one message of S/256 per round.
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
    name: "hamiltonian_rings_bidirectional",
    summary: "four rings: both edge-disjoint Hamiltonian cycles of a torus, both ways",
    description: "Two directed Hamiltonian cycles and their reversals carry a quarter of the \
                  vector each, so all links of a torus in all directions work all the time. \
                  Without a grid the squarest torus of as many ranks that has the cycles is taken.",
    cost: "2(p-1) rounds of four messages, 2 S (p-1)/p bytes per rank",
    needs: "a torus with two edge-disjoint directed Hamiltonian cycles, such as a square one",
    source: "Trotter and Erdos, Journal of Graph Theory 1978",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    allreduce(&ALGORITHM, shape, 2, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};
    use std::collections::HashSet;

    #[test]
    fn every_link_of_the_torus_once_per_round() {
        let schedule = build(&Shape::new(64, 2560).with_grid(8, 8)).unwrap();
        assert_eq!(rounds(&schedule), 126);
        // 2 S 63/64 of 10240 bytes.
        assert_eq!(bytes_sent(&schedule), (20160, 20160));
        assert_eq!(notices(&schedule), 0);
        let first = schedule.ops()[0].step;
        let round = schedule.ops().iter().filter(|op| op.step == first);
        let links: HashSet<_> = round.map(|op| (op.from, op.hint)).collect();
        assert_eq!(links.len(), 4 * 64);
    }
}
