//! Linear broadcast: the root sends its vector to one rank after the other.
//!
//! ```text
//!   root -> root+1, root+2, ... root-1      all in one step
//! ```
//!
//! One round, but all S (p-1) bytes leave through the port of the root. What the trees improve.
//!
//! Source: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory,
//! practice, and experience" (Concurrency and Computation: Practice and Experience 2007).

use crate::builder::{Builder, Shape};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Broadcast,
    name: "linear",
    summary: "the root sends its vector to everyone itself",
    description: "No forwarding: the port of the root carries everything. The baseline, and right for few ranks.",
    cost: "1 round of p-1 messages, S (p-1) bytes from the root",
    needs: "",
    source: "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 2007",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Broadcast, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    b.step();
    for ahead in 1..p {
        b.put(root, vector, (root + ahead) % p, vector);
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn everything_leaves_the_root() {
        let schedule = build(&Shape::new(64, 10).with_root(3)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (1, 63));
        assert_eq!(bytes_sent(&schedule), (0, 63 * 40));
    }
}
