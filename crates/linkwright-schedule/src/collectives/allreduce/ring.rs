//! Ring allreduce: reduce-scatter once round the ring, then allgather once round.
//!
//! ```text
//!   step s < p-1 :  rank r sends block r-1-s to r+1, which adds it
//!   then         :  rank r sends block r-s   to r+1, which keeps it
//! ```
//!
//! After p-1 steps rank r holds block r complete. Every rank sends 2 S (p-1)/p bytes, which is
//! the least possible, in 2 (p-1) rounds, which is the most that anyone uses.
//!
//! Several orders of the ranks may be given; each ring then carries its part of the vector, all at
//! once.
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
    collective: Collective::Allreduce,
    name: "ring",
    summary: "reduce-scatter, then allgather, once round a ring each",
    description: "Every rank sends only to its successor. Moves the least bytes possible and \
                  loads every link of a ring equally; the rounds grow with p, so it is for large \
                  messages.",
    cost: "2(p-1) rounds, 2 S (p-1)/p bytes per rank",
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
    ring::once_round(&mut b, data, false);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    if shape.rings.is_empty() {
        return program(shape)?.expand();
    }
    let mut b = Builder::new(Collective::Allreduce, shape);
    let rings = ring::of(shape);
    let data = b.buffer(Buffer::vector("output", rings.len() as u32 * shape.ranks));
    ring::reduce_scatter(&mut b, data, &rings, Blocks::ByRing);
    ring::allgather(&mut b, data, &rings, Blocks::ByRing);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};

    #[test]
    fn least_bytes_and_no_notices() {
        let schedule = build(&Shape::new(64, 640)).unwrap();
        assert_eq!(rounds(&schedule), 126);
        assert_eq!(bytes_sent(&schedule), (5040, 5040));
        assert_eq!(notices(&schedule), 0);
    }
}
