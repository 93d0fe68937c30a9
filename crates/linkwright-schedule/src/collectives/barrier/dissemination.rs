//! Dissemination barrier: in round k everyone tells rank r + 2^k whom it has heard of.
//!
//! ```text
//!   p = 5     round 0   r -> r+1     1 token
//!             round 1   r -> r+2     2 tokens
//!             round 2   r -> r+4     1 token: what is missing
//! ```
//!
//! log2 p rounds, rounded up, for every p, and nobody is special. The least rounds possible.
//!
//! Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization"
//! (International Journal of Parallel Programming 1988).

use crate::builder::Shape;
use crate::collectives::common::dissemination::{disseminate, Towards};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::{Group, Program};

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "dissemination",
    summary: "in round k everyone signals rank r + 2^k",
    description: "The least rounds for every number of ranks, and no rank is special.",
    cost: "ceil(log2 p) rounds of one empty message per rank",
    needs: "",
    source: "Hensgen, Finkel and Manber, IJPP 1988",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let group = Group::cyclic(shape.ranks);
    let mut b = Program::new(Collective::Barrier, shape, group)?;
    let tokens = b.tokens("output");
    disseminate(&mut b, tokens, Towards::Higher);
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    program(shape)?.expand()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, notices, rounds};

    #[test]
    fn log_p_rounds_without_bytes() {
        for (p, height) in [(1, 0), (2, 1), (5, 3), (64, 6)] {
            let schedule = build(&Shape::new(p, 100)).unwrap();
            assert_eq!(rounds(&schedule), height);
            assert_eq!(messages(&schedule), height * p as usize);
            assert_eq!(bytes_sent(&schedule), (0, 0));
            assert_eq!(notices(&schedule), 0);
        }
    }
}
