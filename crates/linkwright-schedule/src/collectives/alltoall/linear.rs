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

use crate::builder::{Builder, Shape};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

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
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let mut b = Builder::new(Collective::Alltoall, shape);
    let input = b.buffer(Buffer::vector("input", p));
    let output = b.buffer(Buffer::vector("output", p));
    b.step();
    for r in 0..p {
        b.local(r, input.at(r), output.at(r));
    }
    for ahead in 1..p {
        for r in 0..p {
            let to = (r + ahead) % p;
            b.put(r, input.at(to), to, output.at(r));
        }
    }
    b.finish()
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
