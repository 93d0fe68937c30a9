//! Broadcast by one multicast: the network copies.
//!
//! ```text
//!   root ==> everyone else      one operation, S bytes from the root
//! ```
//!
//! Where the machine multicasts, S bytes leave the root once, whatever p is. Where it does not,
//! the executor sends p-1 messages and it is the linear broadcast.
//!
//! Source: Ni and McKinley, "A survey of wormhole routing techniques in direct networks" (IEEE
//! Computer 1993), on multicast in hardware.

use crate::builder::{Builder, Shape};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Broadcast,
    name: "multicast",
    summary: "one multicast from the root to everyone",
    description: "Leaves the copying to the network; without multicast in hardware it is the linear broadcast.",
    cost: "1 round of 1 message, S bytes from the root",
    needs: "",
    source: "Ni and McKinley, IEEE Computer 1993",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let root = shape.root;
    let mut b = Builder::new(Collective::Broadcast, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    let others: Vec<u32> = (0..shape.ranks).filter(|&r| r != root).collect();
    if !others.is_empty() {
        b.step();
        b.multicast(root, vector, &others, vector);
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages};

    #[test]
    fn one_operation() {
        let schedule = build(&Shape::new(64, 10).with_root(3)).unwrap();
        assert_eq!(messages(&schedule), 1);
        assert_eq!(schedule.targets(&schedule.ops()[0]).len(), 63);
        assert_eq!(bytes_sent(&schedule), (0, 40));
    }
}
