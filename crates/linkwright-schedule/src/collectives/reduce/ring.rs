//! Ring reduce: partial sums pass once round a ring and end at the root.
//!
//! ```text
//!   step s < p-1 :  place root+1+s sends its partial sum to place root+2+s, which adds it
//! ```
//!
//! The ring broadcast turned round: whole, p-1 transfers one after another; in k slices (transform
//! `pipeline`) p-2+k of them, so that for large vectors the time tends to S over the slowest hop.
//!
//! Source: Watts and van de Geijn, "A pipelined broadcast for multidimensional meshes" (Parallel
//! Processing Letters 1995), reversed.

use crate::builder::{Builder, Shape};
use crate::collectives::common::ring;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "ring",
    summary: "partial sums pass once round a ring and end at the root",
    description:
        "Every rank sends only to its successor. Cut into slices it is a pipeline that moves \
                  each byte over each hop once: the choice for large vectors.",
    cost: "p-1 rounds, S bytes per rank; p-2+k slices in k slices",
    needs: "",
    source: "Watts and van de Geijn, Parallel Processing Letters 1995, reversed",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let rings = ring::of(shape);
    let mut b = Builder::new(Collective::Reduce, shape);
    let data = b.buffer(Buffer::vector("output", rings.len() as u32));
    ring::chain(
        &mut b,
        data,
        &rings,
        |ring| ring.place(shape.root) + 1,
        true,
    );
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn one_rank_sends_nothing() {
        let schedule = build(&Shape::new(64, 10).with_root(3)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (63, 63));
        assert_eq!(bytes_sent(&schedule), (0, 40));
        assert!(schedule.ops().iter().all(|op| op.from != 3));
    }

    #[test]
    fn two_rings_carry_half_each() {
        let rings = vec![vec![0, 1, 2, 3], vec![0, 3, 2, 1]];
        let shape = Shape::new(4, 10).with_root(2).with_rings(rings);
        let schedule = build(&shape).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (3, 6));
    }
}
