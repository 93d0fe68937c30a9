//! Neighbour exchange: ranks exchange with the one before and the one after in turns.
//!
//! ```text
//!   round 0        0 <-> 1   2 <-> 3   4 <-> 5       own blocks
//!   round 1     5 <-> 0   1 <-> 2   3 <-> 4          the two blocks of the pair of round 0
//!   round 2        0 <-> 1   2 <-> 3   4 <-> 5       the two that came last
//! ```
//!
//! Only neighbours talk, as in a ring, but both ways and with two blocks: half of the rounds for the same bytes.
//! It needs an even number of ranks.

use crate::collectives::prelude::*;

algorithm! {
    /// ranks exchange two blocks with either neighbour in turns
    ///
    /// Only neighbours talk, in half of the rounds of a ring and with the same bytes: for medium and large blocks
    /// on networks in which ways are long.
    pub ALGORITHM = Allgather "neighbor_exchange" {
        cost: "p/2 rounds, S (p-1)/p bytes per rank",
        needs: "an even number of ranks",
        source:
            "Chen, Zhang, Huang and Wang, \"Performance evaluation of allgather algorithms on terascale Linux cluster \
             with Fast Ethernet\" (HPC Asia 2005)",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let p = shape.ranks;
    if p % 2 == 1 && p > 1 {
        return Err(ALGORITHM.waive(format!(
            "one of {p} ranks has no neighbour to exchange with; use an even number of ranks, or allgather/ring"
        )));
    }
    let mut b = Builder::new(Collective::Allgather, shape);
    let data = b.buffer(Buffer::vector("output", p));
    // What a rank sends next: its own block, the blocks of its pair, then what came last.
    let mut next: Vec<Vec<u32>> = (0..p).map(|rank| vec![rank]).collect();
    for round in 0..p / 2 {
        b.step();
        let partner = |rank: u32| match (rank + round) % 2 {
            0 => (rank + 1) % p,
            _ => (rank + p - 1) % p,
        };
        for rank in 0..p {
            b.put_blocks(rank, data, partner(rank), data, &next[rank as usize]);
        }
        let came = (0..p)
            .map(|rank| next[partner(rank) as usize].clone())
            .collect();
        if round == 0 {
            next = (0..p)
                .map(|rank| vec![rank - rank % 2, rank - rank % 2 + 1])
                .collect();
        } else {
            next = came;
        }
    }
    b.finish()
}
