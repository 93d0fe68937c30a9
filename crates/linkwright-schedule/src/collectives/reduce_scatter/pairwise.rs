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

use crate::builder::Shape;
use crate::collectives::Algorithm;
use crate::error::Result;
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::{Group, Program};

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
    program: Some(program),
    build,
};

fn program(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::ReduceScatter, shape, Group::cyclic(p))?;
    let data = b.relative("output");
    for owner in 1..p {
        b.step();
        b.put(data.at(owner), owner, data.at(owner)).reduce();
    }
    Ok(b)
}

fn build(shape: &Shape) -> Result<Schedule> {
    program(shape)?.expand()
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
