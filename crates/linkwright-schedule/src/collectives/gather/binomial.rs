//! Binomial gather: blocks flow down a tree and are bundled on the way.
//!
//! ```text
//!   p = 8    round 0   1 -> 0   3 -> 2   5 -> 4   7 -> 6      one block
//!            round 1   2 -> 0   6 -> 4                        two
//!            round 2   4 -> 0                                 four
//! ```
//!
//! log2 p rounds, rounded up, and as many messages into the root; a block moves once per level, in
//! the mean log2(p)/2 times. Ranks that relay keep a subtree, at most half of the vector, in
//! scratch. Blocks there lie in the order seen from the root, so a bundle is one run; at the root
//! it may wrap round the end of the vector.
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
    collective: Collective::Gather,
    name: "binomial",
    summary: "blocks flow down a binomial tree and are bundled",
    description: "The least rounds; the choice for small blocks. Relaying ranks need scratch.",
    cost: "ceil(log2 p) rounds, S (p-1)/p bytes into the root; up to S/2 from a relay",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    program: None,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Gather, shape);
    let own = b.buffer(Buffer::block("input", p));
    let all = b.buffer(Buffer::vector("output", p).only_at(root));
    let tree = binomial(p, root);
    let bundle = b.buffer(relay_scratch(p, &tree));
    b.step();
    b.local(root, own.at(0), all.at(root));
    for v in (1..p).filter(|&v| subtree(p, v) > 1) {
        b.local((root + v) % p, own.at(0), bundle.at(0));
    }
    for round in tree.iter().rev() {
        b.step();
        for branch in round {
            let from = if branch.size == 1 { own } else { bundle };
            if branch.parent == root {
                let runs = runs_at_root(p, root, branch);
                b.put_runs(branch.child, from, root, all, &runs);
            } else {
                let offset = branch.v.1 - branch.v.0;
                let place = bundle.range(offset..offset + branch.size);
                b.put(
                    branch.child,
                    from.range(0..branch.size),
                    branch.parent,
                    place,
                );
            }
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, messages, rounds};

    #[test]
    fn the_root_takes_one_message_per_round() {
        let schedule = build(&Shape::new(64, 640).with_root(3)).unwrap();
        assert_eq!((rounds(&schedule), messages(&schedule)), (6, 63));
        let into_root = schedule
            .ops()
            .iter()
            .filter(|op| op.to == 3 && op.is_message());
        assert_eq!(into_root.count(), 6);
        // The farthest relay brings 32 blocks of 40 bytes.
        assert_eq!(bytes_sent(&schedule), (0, 32 * 40));
    }
}
