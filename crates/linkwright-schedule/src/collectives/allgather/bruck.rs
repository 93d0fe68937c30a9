//! Bruck allgather: everyone tells rank r - 2^k all that it has.
//!
//! ```text
//!   p = 5     round 0   r sends r           to r-1
//!             round 1   r sends r, r+1      to r-2
//!             round 2   r sends r           to r-4      only what is missing
//! ```
//!
//! log2 p rounds, rounded up, and S (p-1)/p bytes per rank: both the least possible, for every p.
//! Published with a rotation of the result at the end; here blocks lie where they belong from the
//! start, so a message wraps round the end of the vector as two runs instead.
//!
//! Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
//! communications in multiport message-passing systems" (IEEE TPDS 1997).

use crate::builder::Shape;
use crate::collectives::common::dissemination::{disseminate, Towards};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::{Group, Program};

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "bruck",
    summary: "everyone tells rank r - 2^k all that it has",
    description: "The least rounds and bytes for every number of ranks; the choice for small \
                  messages off powers of two.",
    cost: "ceil(log2 p) rounds, S (p-1)/p bytes per rank",
    needs: "",
    source: "Bruck et al., IEEE TPDS 1997",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let group = Group::cyclic(shape.ranks);
    let mut b = Program::new(Collective::Allgather, shape, group)?;
    let data = b.relative("output");
    disseminate(&mut b, data, Towards::Lower);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    program(shape)?.expand()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};

    #[test]
    fn least_rounds_and_bytes_for_any_p() {
        for (p, height) in [(1, 0), (2, 1), (5, 3), (33, 6), (64, 6)] {
            let schedule = build(&Shape::new(p, 10 * p as u64)).unwrap();
            let bytes = 40 * (p as u64 - 1);
            assert_eq!(rounds(&schedule), height);
            assert_eq!(bytes_sent(&schedule), (bytes, bytes));
            assert_eq!(notices(&schedule), 0);
        }
    }
}
