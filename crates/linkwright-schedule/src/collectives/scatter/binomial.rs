//! Binomial scatter: bundles of blocks flow up a tree and are split on the way.
//!
//! ```text
//!   p = 8    round 0   0 -> 4                                 four blocks
//!            round 1   0 -> 2   4 -> 6                        two
//!            round 2   0 -> 1   2 -> 3   4 -> 5   6 -> 7      one
//! ```
//!
//! The gather backwards: log2 p rounds, rounded up, as many messages from the root; a block moves
//! in the mean log2(p)/2 times, and relays keep their subtree in scratch.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
//! in MPICH" (IJHPCA 2005).

use crate::builder::{Builder, Shape};
use crate::collectives::common::tree::{binomial, relay_scratch, runs_at_root, subtree};
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "binomial",
    summary: "bundles of blocks flow up a binomial tree and are split",
    description: "The least rounds; the choice for small blocks. Relaying ranks need scratch.",
    cost: "ceil(log2 p) rounds, S (p-1)/p bytes from the root; up to S/2 into a relay",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Scatter, shape);
    let all = b.buffer(Buffer::vector("input", p).only_at(root));
    let own = b.buffer(Buffer::block("output", p));
    let tree = binomial(p, root);
    let bundle = b.buffer(relay_scratch(p, &tree));
    for round in &tree {
        b.step();
        for branch in round {
            let to = if branch.size == 1 { own } else { bundle };
            if branch.parent == root {
                let runs: Vec<_> = runs_at_root(p, root, branch)
                    .into_iter()
                    .map(|(here, there, count)| (there, here, count))
                    .collect();
                b.put_runs(root, all, branch.child, to, &runs);
            } else {
                let offset = branch.v.1 - branch.v.0;
                let part = bundle.range(offset..offset + branch.size);
                b.put(branch.parent, part, branch.child, to.range(0..branch.size));
            }
        }
    }
    b.step();
    b.local(root, all.at(root), own.at(0));
    for v in (1..p).filter(|&v| subtree(p, v) > 1) {
        b.local((root + v) % p, bundle.at(0), own.at(0));
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn the_root_sends_one_message_per_round() {
        let schedule = build(&Shape::new(64, 640).with_root(3)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (6, 63));
        let of_root = schedule
            .ops()
            .iter()
            .filter(|op| op.from == 3 && op.is_message());
        assert_eq!(of_root.count(), 6);
        assert_eq!(bytes_sent(&schedule), (0, 2520));
    }
}
