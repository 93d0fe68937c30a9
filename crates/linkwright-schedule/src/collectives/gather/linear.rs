//! Linear gather: everyone sends its block straight to its place at the root.
//!
//! ```text
//!   one step    r -> block r of the root
//! ```
//!
//! Every byte moves once, and the port of the root is never idle: nothing is faster for large
//! blocks. For small ones the root pays for p-1 messages. Only the root has room for all.
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
    collective: Collective::Gather,
    name: "linear",
    summary: "everyone sends its block straight to the root",
    description:
        "Every byte moves once; the port of the root is the limit, and its cost per message.",
    cost: "1 round of p-1 messages, S (p-1)/p bytes into the root",
    needs: "",
    source: "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 2007",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Gather, shape);
    let own = b.buffer(Buffer::block("input", p)).at(0);
    let all = b.buffer(Buffer::vector("output", p).only_at(root));
    b.step();
    b.local(root, own, all.at(root));
    for r in (1..p).map(|ahead| (root + ahead) % p) {
        b.put(r, own, root, all.at(r));
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn every_byte_moves_once() {
        let schedule = build(&Shape::new(64, 640).with_root(3)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (1, 63));
        assert_eq!(bytes_sent(&schedule), (0, 40));
    }

    #[test]
    fn many_ranks() {
        let schedule = build(&Shape::new(19_456, 19_456)).unwrap();
        assert_eq!(messages(&schedule), 19_455);
    }
}
