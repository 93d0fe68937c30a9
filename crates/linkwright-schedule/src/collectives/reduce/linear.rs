//! Linear reduce: everyone sends its vector to the root, which adds one after the other.
//!
//! ```text
//!   one step    r -> a place of its own at the root
//!   then        root: sum += place of root+1, root+2, ... root-1
//! ```
//!
//! One round, but all S (p-1) bytes enter through the port of the root, which does all the
//! arithmetic and needs room for p-1 vectors. What the trees improve.
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
    collective: Collective::Reduce,
    name: "linear",
    summary: "everyone sends its vector to the root, which adds them one by one",
    description: "No forwarding: the port and the arithmetic of the root do everything. The \
                  baseline, and right for few ranks.",
    cost: "1 round of p-1 messages, S (p-1) bytes into the root, p-1 additions there",
    needs: "",
    source: "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 2007",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Reduce, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    if p < 2 {
        return b.finish();
    }
    let places = b.buffer(Buffer {
        mul: p - 1,
        ..Buffer::vector("scratch", p - 1).only_at(root)
    });
    b.step();
    for ahead in 1..p {
        b.put((root + ahead) % p, vector, root, places.at(ahead - 1));
    }
    for place in 0..p - 1 {
        b.step();
        b.local(root, places.at(place), vector).reduce();
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn everything_enters_the_root_and_is_added_there() {
        let schedule = build(&Shape::new(64, 10).with_root(3)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (1, 63));
        assert_eq!(bytes_sent(&schedule), (0, 40));
        assert_eq!(schedule.ops().len(), 63 + 63);
    }
}
