//! Allreduce in two exchanges between all pairs: every rank reads, and no notices are sent.
//!
//! ```text
//!   1  rank r reads part r of the vectors of r+1, r+2, ... r-1 and sums them into its own
//!      barrier: all parts are sums, and all that was to be read of the vectors has been read
//!   2  rank r reads part q from rank q, for all q
//! ```
//!
//! Two latencies instead of 2 log2 p, for p-1 small messages each: good where all ranks reach each
//! other and a message costs little compared with its latency, as among the SMs of a GPU. It needs no
//! memory besides the vectors: in the first half each rank writes the part that no other rank reads.
//! No rank asks whether a vector is ready: the caller ensures that all are when the collective begins.

use crate::collectives::prelude::*;

algorithm! {
    /// every rank sums its part of all vectors in place, then reads the other parts
    ///
    /// Two exchanges between all pairs, with a barrier in between. Good where all ranks reach each other, latency
    /// is high and messages are cheap. Known as the two-shot allreduce of custom kernels, in its form with reads.
    pub ALGORITHM = Allreduce "all_pairs" {
        cost: "1 barrier; 2 (p-1) reads of S/p bytes per rank, in two rounds where reads are in flight together",
        source: "\"MSCCLang: Microsoft Collective Communication Language\" (ASPLOS 2023), All Pairs",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let everyone: Vec<u32> = (0..p).collect();
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", p));
    for ahead in 1..p {
        b.step();
        for r in 0..p {
            b.get((r + ahead) % p, data.at(r), r, data.at(r)).reduce();
        }
    }
    b.barrier(&everyone);
    for ahead in 1..p {
        for r in 0..p {
            let q = (r + ahead) % p;
            b.get(q, data.at(q), r, data.at(q));
        }
    }
    b.finish()
}
