//! Recursive doubling, latency optimal: in each round partners at distance 1, 2, 4, ... exchange
//! and add whole vectors.
//!
//! log2 p rounds, the least possible, and S log2 p bytes per rank. Where p is no power of two the
//! surplus ranks first fold their vector into a partner and get the result at the end.
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
    collective: Collective::Allreduce,
    name: "recursive_doubling_latency",
    summary: "partners at distance 1, 2, 4, ... exchange whole vectors",
    description: "The least number of rounds, so it is for small messages. Surplus ranks beyond a \
                  power of two fold into a partner first.",
    cost: "log2(p) rounds, S log2(p) bytes per rank; two rounds more off powers of two",
    needs: "",
    source: "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    reads_bytes: false,
    build,
};

fn build(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks.max(1);
    let power = 1 << p.ilog2();
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", 1));
    let all = data.at(0);
    b.step();
    for surplus in power..p {
        b.put(surplus, all, surplus - power, all).reduce();
    }
    let mut distance = 1;
    while distance < power {
        b.step();
        for r in 0..power {
            b.put(r, all, r ^ distance, all).reduce();
        }
        distance *= 2;
    }
    b.step();
    for surplus in power..p {
        b.put(surplus - power, all, surplus, all);
    }
    b.finish()
}
