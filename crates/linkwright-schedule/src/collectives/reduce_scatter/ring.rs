//! Reduce-scatter round a ring: a block starts beside its owner and collects all the way round.
//!
//! ```text
//!   step s < p-1 :  rank r sends block r-1-s to r+1, which adds it
//!
//!   block 0 of p = 4:   1 --> 2 --> 3 --> 0      one more contribution at each stop
//! ```
//!
//! S (p-1)/p bytes per rank, the least possible, in p-1 rounds, the most that anyone uses. The
//! first half of the ring allreduce.
//!
//! Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations" (JPDC 2009).

use crate::builder::{Builder, Shape};
use crate::collectives::common::ring::{self, Blocks};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;
use crate::symmetric::Program;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::ReduceScatter,
    name: "ring",
    summary: "blocks travel once round a ring and collect contributions",
    description: "Every rank sends only to its successor. Moves the least bytes possible and \
                  loads every link of a ring equally; the rounds grow with p, so it is for large \
                  messages.",
    cost: "p-1 rounds, S (p-1)/p bytes per rank",
    needs: "",
    source: "Patarasuk and Yuan, JPDC 2009",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let mut b = ring::program(&ALGORITHM, shape)?;
    let data = b.relative("output");
    ring::once_round(&mut b, data, true);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    if shape.rings.is_empty() {
        return program(shape)?.expand();
    }
    let mut b = Builder::new(Collective::ReduceScatter, shape);
    let rings = ring::of(shape);
    let data = b.buffer(Buffer {
        slices: rings.len() as u32,
        ..Buffer::vector("output", shape.ranks)
    });
    ring::reduce_scatter(&mut b, data, &rings, Blocks::ByRank);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};

    #[test]
    fn once_round_without_notices() {
        let schedule = build(&Shape::new(64, 640)).unwrap();
        assert_eq!(rounds(&schedule), 63);
        assert_eq!(bytes_sent(&schedule), (2520, 2520));
        assert_eq!(notices(&schedule), 0);
    }
}
