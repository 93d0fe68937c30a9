//! Pairwise reduce-scatter: everyone sends every block straight to its owner.
//!
//! ```text
//!   step s = 1 .. p-1:  rank r sends block r+s to rank r+s, which adds it
//! ```
//!
//! p-1 rounds and S (p-1)/p bytes per rank, the least possible for any p; each block is summed
//! by its owner alone. An owner takes one contribution after another, so every step but the first
//! begins with its word that the block is free again.
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
    collective: Collective::ReduceScatter,
    name: "pairwise",
    summary: "everyone sends each block straight to its owner, one owner after the other",
    description: "Serves any number of ranks with the least bytes and without forwarding, so it \
                  suits networks on which everyone is equally near.",
    cost: "p-1 rounds, S (p-1)/p bytes per rank",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let mut b = Builder::new(Collective::ReduceScatter, shape);
    let data = b.buffer(Buffer::vector("output", p));
    for s in 1..p {
        b.step();
        for r in 0..p {
            let owner = (r + s) % p;
            b.put(r, data.at(owner), owner, data.at(owner)).reduce();
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::counts::{bytes_sent, notices, rounds};

    #[test]
    fn least_bytes_for_any_p() {
        let schedule = build(&Shape::new(33, 330)).unwrap();
        assert_eq!(rounds(&schedule), 32);
        assert_eq!(bytes_sent(&schedule), (32 * 40, 32 * 40));
        // All but the first contribution wait until the owner has the one before.
        assert_eq!(notices(&schedule), 33 * 31);
    }
}
