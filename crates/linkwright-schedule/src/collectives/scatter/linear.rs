//! Linear scatter: the root sends everyone its block.
//!
//! ```text
//!   one step    root -> block r to r
//! ```
//!
//! Every byte moves once, and the port of the root is never idle: nothing is faster for large
//! blocks. For small ones the root pays for p-1 messages.
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
    collective: Collective::Scatter,
    name: "linear",
    summary: "the root sends everyone its block itself",
    description:
        "Every byte moves once; the port of the root is the limit, and its cost per message.",
    cost: "1 round of p-1 messages, S (p-1)/p bytes from the root",
    needs: "",
    source: "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 2007",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Scatter, shape);
    let all = b.buffer(Buffer::vector("input", p).only_at(root));
    let own = b.buffer(Buffer::block("output", p)).at(0);
    b.step();
    b.local(root, all.at(root), own);
    for r in (1..p).map(|ahead| (root + ahead) % p) {
        b.put(root, all.at(r), r, own);
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
        assert_eq!(bytes_sent(&schedule), (0, 2520));
    }
}
