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

use crate::builder::Slot;
use crate::symmetric::Program;

/// Which way round the ranks information flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// Rank r tells r + 2^k.
    Higher,
    /// Rank r tells r - 2^k.
    Lower,
}

/// Rounds after which everyone has block q of every rank q in `data`.
pub fn disseminate(b: &mut Program, data: Slot, towards: Towards) {
    let p = b.ranks();
    let mut known = 1;
    while known < p {
        let told = known.min(p - known);
        let (ahead, first) = match towards {
            Towards::Higher => (known, p - told + 1),
            Towards::Lower => (p - known, 0),
        };
        let blocks: Vec<u32> = (0..told).map(|i| (first + i) % p).collect();
        b.step();
        b.put_blocks(data, ahead, data, &blocks);
        known += told;
    }
}
