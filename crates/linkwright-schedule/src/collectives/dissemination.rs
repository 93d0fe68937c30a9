//! Dissemination: in round k every rank sends to the rank 2^k away, which doubles what ranks know.
//!
//! ```text
//!   p = 5     barrier, tokens         allgather                 alltoall: slot i holds block for r+i
//!   round 0   r -> r+1    1 token     r sends r       to r-1    slots 1, 3 to r+1
//!   round 1   r -> r+2    2 tokens    r sends r, r+1  to r-2    slots 2, 3 to r+2
//!   round 2   r -> r+4    1 token     r sends r       to r-4    slot  4    to r+4
//! ```
//!
//! log2 p rounds, rounded up, for every p, and no rank is special: the least rounds possible. In a
//! barrier and an allgather the last round tells only what is missing, so an allgather also moves
//! the least bytes, S (p-1)/p per rank. A barrier is an allgather of tokens, chunks without bytes,
//! one per rank: whoever has everyone's token may leave.
//!
//! In an alltoall a block hops once for each binary one of its distance, log2(p)/2 times on average:
//! few messages for many bytes. Every rank first rotates its vector so that slot i holds the block
//! for r+i; slots whose digit k is 1 move in round k, into the same slots; at the end slot i holds
//! the block from r-i and is rotated back. Both rotations are local copies of a whole vector. Sent
//! slots are overwritten, so the builder adds scratch to receive into.
//!
//! Bruck's allgather was published with a rotation of the result at the end; here blocks lie where
//! they belong from the start, so a message wraps round the end of the vector as two runs instead.

use crate::collectives::prelude::*;

const BRUCK: &str =
    "Bruck, Ho, Kipnis, Upfal and Weathersby, \"Efficient algorithms for all-to-all communications in multiport \
     message-passing systems\" (IEEE TPDS 1997)";

algorithm! {
    /// in round k every rank r signals rank r + 2^k
    ///
    /// Fewest rounds for any number of ranks, and all ranks do the same.
    pub BARRIER = Barrier "dissemination" {
        cost: "ceil(log2 p) rounds of one empty message per rank",
        source:
            "Hensgen, Finkel and Manber, \"Two algorithms for barrier synchronization\" (International Journal of \
             Parallel Programming 1988)",
        program: barrier,
        build: |shape| barrier(shape)?.expand(),
    }

    /// in round k every rank r sends all it has to rank r - 2^k
    ///
    /// Fewest rounds and bytes for any number of ranks; the choice for small messages where that number is not a
    /// power of two.
    pub ALLGATHER = Allgather "bruck" {
        cost: "ceil(log2 p) rounds, S (p-1)/p bytes per rank",
        source: BRUCK,
        program: allgather,
        build: |shape| allgather(shape)?.expand(),
    }

    /// blocks hop by the binary digits of their distance
    ///
    /// Fewest rounds for any number of ranks, at log2(p)/2 times the bytes; the choice for small blocks.
    pub ALLTOALL = Alltoall "bruck" {
        cost: "ceil(log2 p) rounds of about S/2 bytes per rank, two local copies of S",
        source: BRUCK,
        program: alltoall,
        build: |shape| alltoall(shape)?.expand(),
    }
}

fn barrier(shape: &Shape) -> Result<Program> {
    let mut b = Program::new(Collective::Barrier, shape, Group::cyclic(shape.ranks))?;
    let tokens = b.tokens("output");
    disseminate(&mut b, tokens, Towards::Higher);
    Ok(b)
}

fn allgather(shape: &Shape) -> Result<Program> {
    let mut b = Program::new(Collective::Allgather, shape, Group::cyclic(shape.ranks))?;
    let data = b.relative("output");
    disseminate(&mut b, data, Towards::Lower);
    Ok(b)
}

/// Which way round the ranks information flows.
enum Towards {
    /// Rank r tells r + 2^k.
    Higher,
    /// Rank r tells r - 2^k.
    Lower,
}

/// Rounds after which everyone has block q of every rank q in `data`.
fn disseminate(b: &mut Program, data: Slot, towards: Towards) {
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

fn alltoall(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::Alltoall, shape, Group::cyclic(p))?;
    let (input, output) = (b.relative("input"), b.relative("output"));
    let slots = b.absolute("scratch", p);
    let turn: Vec<_> = (0..p).map(|i| (i, i, 1)).collect();
    b.step();
    b.local_runs(input, slots, &turn);
    let mut way = 1;
    while way < p {
        let moving: Vec<u32> = (0..p).filter(|slot| slot & way != 0).collect();
        b.step();
        b.put_blocks(slots, way, slots, &moving);
        way *= 2;
    }
    let back: Vec<_> = (0..p).map(|i| (i, (p - i) % p, 1)).collect();
    b.step();
    b.local_runs(slots, output, &back);
    Ok(b)
}
