//! Linear allgather: everyone sends its block to everyone, all at once.
//!
//! ```text
//!   one step:  rank r sends block r to r+1, r+2, ... r-1
//! ```
//!
//! One round of p-1 messages and S (p-1)/p bytes per rank; what happens when all of them meet is
//! up to the network. Everyone begins with its successor, so not all begin with the same rank.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::Shape;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::{Group, Program};

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "linear",
    summary: "everyone sends its block to everyone at once",
    description: "No forwarding and no order: the network sees all messages at once. Good where \
                  it is a crossbar and messages are cheap.",
    cost: "1 round of p-1 messages, S (p-1)/p bytes per rank",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::Allgather, shape, Group::cyclic(p))?;
    let data = b.relative("output");
    b.step();
    for ahead in 1..p {
        b.put(data.at(0), ahead, data.at(0));
    }
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
    fn one_round_without_any_wait() {
        let schedule = build(&Shape::new(33, 330)).unwrap();
        assert_eq!(rounds(&schedule), 1);
        assert_eq!(bytes_sent(&schedule), (32 * 40, 32 * 40));
        assert_eq!(notices(&schedule) + schedule.edge_count(), 0);
    }
}
