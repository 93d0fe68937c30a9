//! Linear alltoall: everyone posts all its messages at once.
//!
//! ```text
//!   one step    r -> r+1, r+2, ... r-1      block q of r lands as block r of q
//! ```
//!
//! No waits at all: how the p (p-1) messages share the network is up to the machine. Everyone
//! begins with its successor, so not all begin with the same rank.
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
    collective: Collective::Alltoall,
    name: "linear",
    summary: "everyone posts a message to everyone at once",
    description: "No waits and no forwarding; shows how the network shares itself.",
    cost: "1 round of p-1 messages per rank, S (p-1)/p bytes per rank",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::Alltoall, shape, Group::cyclic(p))?;
    let (input, output) = (b.relative("input"), b.relative("output"));
    b.step();
    b.local(input.at(0), output.at(0));
    for ahead in 1..p {
        b.put(input.at(ahead), ahead, output.at(0));
    }
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    program(shape)?.expand()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn all_at_once() {
        let schedule = build(&Shape::new(33, 330)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (1, 33 * 32));
        assert_eq!(bytes_sent(&schedule), (32 * 40, 32 * 40));
        assert_eq!(schedule.edge_count(), 0);
    }
}
