//! Ring allreduce along Hamiltonian cycles of a torus: every hop is one link.
//!
//! ```text
//!   one ring     cycle A on c x c:  c times  (c-1 moves +x, 1 move +y)
//!                4 x 4:   y = 1   > > ^ >     three along, one across; the wrap links close the rows
//!                         y = 0   > > > ^
//!   two rings    and cycle B     :  c times  (c-1 moves +y, 1 move +x)
//!   four rings   and both reversed: -x and -y
//! ```
//!
//! A plain ring over ranks in row order jumps from the end of a row to the start of the next, which
//! on one-way links is a route through both. Cycle A goes from neighbour to neighbour over forward
//! links only, but leaves half of them idle. With B, which shares no link with A, each forward link
//! carries one message of half the size per round. With two-way links, or with a second network of
//! one-way links in the other direction, the reversals use the backward links: on 8 x 8 all 4 x 64
//! links carry one message of S/256 per round.
//!
//! Tori that are not square have such cycles where the sides share a suitable divisor; the general
//! rule and its proof are in `common/hamiltonian.rs`.

use crate::builder::{by, Builder, Shape};
use crate::collectives::common::hamiltonian::cycles;
use crate::collectives::common::phases;
use crate::collectives::common::ring::{rounds, Blocks, Ring};
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Trotter and Erdos, \"When the Cartesian product of directed cycles is Hamiltonian\" (Journal of Graph Theory \
     1978)";

algorithm! {
    /// ring along a directed Hamiltonian cycle of a torus
    ///
    /// Ring allreduce in which every hop is one forward link of a two-dimensional torus. Without a grid it takes
    /// the squarest torus of as many ranks that has the cycle.
    pub ONE_RING = Allreduce "hamiltonian_ring" {
        cost: "2(p-1) rounds, 2 S (p-1)/p bytes per rank",
        needs: "a torus with a directed Hamiltonian cycle, such as a square one",
        source: SOURCE,
        build: |shape| build(&ONE_RING, shape, 1, false),
    }

    /// two rings along edge-disjoint Hamiltonian cycles of a torus
    ///
    /// Each of two directed Hamiltonian cycles carries half of the vector, which keeps all forward links of a torus
    /// busy. Without a grid it takes the squarest torus of as many ranks that has the cycles.
    pub TWO_RINGS = Allreduce "hamiltonian_rings" {
        cost: "2(p-1) rounds of two messages, 2 S (p-1)/p bytes per rank",
        needs: "a torus with two edge-disjoint directed Hamiltonian cycles, such as a square one",
        source: SOURCE,
        build: |shape| build(&TWO_RINGS, shape, 2, false),
    }

    /// four rings: both edge-disjoint Hamiltonian cycles of a torus, in both directions
    ///
    /// Two directed Hamiltonian cycles and their reversals carry a quarter of the vector each, which keeps the
    /// links of a torus busy in all directions. Without a grid it takes the squarest torus of as many ranks that
    /// has the cycles.
    pub FOUR_RINGS = Allreduce "hamiltonian_rings_bidirectional" {
        cost: "2(p-1) rounds of four messages, 2 S (p-1)/p bytes per rank",
        needs: "a torus with two edge-disjoint directed Hamiltonian cycles, such as a square one",
        source: SOURCE,
        build: |shape| build(&FOUR_RINGS, shape, 2, true),
    }
}

/// Along the first `count` cycles, with `both_ways` along their reversals as well; each carries an
/// equal part of the vector.
fn build(algorithm: &Algorithm, shape: &Shape, count: usize, both_ways: bool) -> Result<Schedule> {
    shape.check()?;
    let Some(mut rings) = cycles(shape, count) else {
        return Err(algorithm.waive(reason(shape, count)));
    };
    if both_ways {
        rings.extend(rings.iter().map(Ring::reversed).collect::<Vec<_>>());
    }
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer {
        blocks: rings.len() as u32,
        slices: shape.ranks,
        ..Buffer::vector("output", 1)
    });
    for &phase in phases(Collective::Allreduce) {
        rounds(&mut b, data, &rings, Blocks::ByRing, phase);
    }
    b.finish()
}

fn reason(shape: &Shape, count: usize) -> String {
    let what = match count {
        1 => "a directed Hamiltonian cycle",
        _ => "two directed Hamiltonian cycles without a common link",
    };
    let torus = match &shape.grid[..] {
        sides @ [_, ..] => format!("the {} torus does not have", by(sides)),
        [] => format!("no torus of {} ranks has", shape.ranks),
    };
    format!(
        "{torus} {what}; use a square grid such as 8x8, or allreduce/bucket_multiport for any grid"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ScheduleError;
    use crate::ir::Hint;
    use std::collections::HashSet;

    #[test]
    fn every_ring_uses_every_rank_once_per_round() {
        for (algorithm, rings) in [(&ONE_RING, 1), (&TWO_RINGS, 2), (&FOUR_RINGS, 4)] {
            let schedule = (algorithm.build)(&Shape::new(64, 2560).with_grid(8, 8)).unwrap();
            let first = schedule.ops()[0].step;
            let round = schedule.ops().iter().filter(|op| op.step == first);
            let links: HashSet<_> = round.map(|op| (op.from, op.hint)).collect();
            assert_eq!(links.len(), rings * 64);
            assert!(schedule.ops().iter().all(|op| op.hint != Hint::None));
        }
    }

    #[test]
    fn a_torus_without_cycles_is_waived_with_a_cure() {
        for (algorithm, shape) in [
            (&ONE_RING, Shape::new(12, 12).with_grid(4, 3)),
            (&TWO_RINGS, Shape::new(7, 7)),
        ] {
            let waived = (algorithm.build)(&shape).unwrap_err();
            assert!(matches!(waived, ScheduleError::Waived { .. }));
            assert!(waived.to_string().contains("use a square grid"), "{waived}");
        }
    }
}
