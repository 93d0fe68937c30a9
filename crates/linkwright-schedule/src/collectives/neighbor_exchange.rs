//! Neighbour exchange: pairs of blocks wander in both directions along the ranks at once.
//!
//! ```text
//!   6 ranks   0-1 2-3 4-5    each tells its block
//!             5-0 1-2 3-4    each tells the pair that it knows
//!             0-1 2-3 4-5    each tells the pair that came last
//! ```
//!
//! Half the rounds of a ring for the same bytes.
//!
//! Source: Chen, Zhang, Zhang and Yuan, "Performance evaluation of allgather algorithms on terascale Linux cluster with
//! Fast Ethernet" (HPC Asia 2005).

use crate::builder::{Builder, Shape};
use crate::collectives::algorithm::Algorithm;
use crate::error::{Result, ScheduleError};
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Registry entry of allgather/neighbor_exchange.
pub static ALLGATHER: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "neighbor_exchange",
    summary: "neighbours exchange what came last, on either side in turn",
    description: "Messages go to the two neighbours only, as in a ring, in half the rounds.",
    cost: "p/2 rounds, S (p-1)/p bytes per rank",
    needs: "an even number of ranks",
    source: "Chen et al., HPC Asia 2005",
    program: None,
    build: allgather,
};

fn allgather(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    if p % 2 == 1 {
        let text = format!("{p} ranks; neighbours exchange in pairs, so take an even number");
        return Err(ScheduleError::Shape(text));
    }
    let mut b = Builder::new(Collective::Allgather, shape);
    let data = b.buffer(Buffer::vector("output", p));
    b.step();
    for rank in 0..p {
        b.put(rank, data.at(rank), rank ^ 1, data.at(rank));
    }
    let mut last: Vec<u32> = (0..p).map(|rank| rank & !1).collect();
    for round in 1..p / 2 {
        b.step();
        let partner = |rank: u32| match (rank + round) % 2 {
            0 => (rank + 1) % p,
            _ => (rank + p - 1) % p,
        };
        for rank in 0..p {
            let pair = data.chunks(last[rank as usize], 2);
            b.put(rank, pair, partner(rank), pair);
        }
        last = (0..p).map(|rank| last[partner(rank) as usize]).collect();
    }
    b.finish()
}
