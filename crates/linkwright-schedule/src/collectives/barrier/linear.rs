//! Linear barrier: everyone reports to rank 0, which then tells everyone.
//!
//! ```text
//!   round 0   1, 2, ... p-1 -> 0
//!   round 1   0 -> 1, 2, ... p-1
//! ```
//!
//! Two rounds, but rank 0 takes p-1 messages and sends as many. The counter that everyone
//! increments, written as messages; the baseline.
//!
//! Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization"
//! (International Journal of Parallel Programming 1988).

use crate::builder::{Builder, Shape};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "linear",
    summary: "everyone reports to rank 0, which tells everyone",
    description: "Two rounds through one rank: the baseline, and right for few ranks.",
    cost: "2 rounds of p-1 empty messages at rank 0",
    needs: "",
    source: "Hensgen, Finkel and Manber, IJPP 1988",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let mut b = Builder::new(Collective::Barrier, shape);
    let tokens = b.buffer(Buffer::vector("output", p).empty());
    let all = tokens.range(0..p);
    b.step();
    for r in 1..p {
        b.put(r, tokens.at(r), 0, tokens.at(r));
    }
    b.step();
    for r in 1..p {
        b.put(0, all, r, all);
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, notices, rounds};

    #[test]
    fn there_and_back_without_bytes() {
        let schedule = build(&Shape::new(64, 100)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (2, 126));
        assert_eq!(bytes_sent(&schedule), (0, 0));
        assert_eq!(notices(&schedule), 0);
    }
}
