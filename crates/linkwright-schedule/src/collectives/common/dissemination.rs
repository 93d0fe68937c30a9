//! Dissemination: with every round everyone has heard of twice as many ranks.
//!
//! ```text
//!   round k:  rank r tells r + 2^k all that it knows, which is of r, r-1, ... r-2^k+1
//! ```
//!
//! log2 p rounds, rounded up, for every p; the last round tells only what is missing. The other
//! direction is the algorithm that Bruck published for allgather.
//!
//! Sources: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization"
//! (International Journal of Parallel Programming 1988); Bruck, Ho, Kipnis, Upfal and Weathersby,
//! "Efficient algorithms for all-to-all communications in multiport message-passing systems"
//! (IEEE TPDS 1997).

use crate::builder::{Builder, Slot};

/// Which way round the ranks information flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// Rank r tells r + 2^k.
    Higher,
    /// Rank r tells r - 2^k.
    Lower,
}

/// Rounds after which everyone has block q of every rank q in `data`.
pub fn disseminate(b: &mut Builder, p: u32, data: Slot, towards: Towards) {
    let mut known = 1;
    while known < p {
        let told = known.min(p - known);
        b.step();
        for r in 0..p {
            let (to, first) = match towards {
                Towards::Higher => ((r + known) % p, (r + p - told + 1) % p),
                Towards::Lower => ((r + p - known) % p, r),
            };
            let mut blocks: Vec<u32> = (0..told).map(|i| (first + i) % p).collect();
            blocks.sort_unstable();
            b.put_blocks(r, data, to, data, &blocks);
        }
        known += told;
    }
}
