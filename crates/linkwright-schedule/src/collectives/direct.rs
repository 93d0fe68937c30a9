//! Direct exchange: every block goes straight from its source to its destination.
//!
//! ```text
//!   allgather        one step            rank r sends block r to r+1, r+2, ... r-1
//!   reduce_scatter   step s = 1 .. p-1   rank r sends block r+s to r+s, which adds it
//!   alltoall         one step            rank r sends block q to every q, where it lands as block r
//!                    or pairwise, step s = 1 .. p-1:
//!                      p a power of two    r and r XOR s exchange
//!                      else                r sends to r+s and receives from r-s
//! ```
//!
//! S (p-1)/p bytes per rank, the least possible for any p. The reduce-scatter is the allgather
//! reversed, but its messages arrive at one block: an owner takes one contribution after another,
//! and every step but the first begins with its notice that the block is free again.
//!
//! In one step, how the p (p-1) messages share the network is up to the machine. Everyone begins
//! with its successor, so not all begin with the same rank. Pairwise, each rank sends one message
//! and receives one in every step, so no port is fought for: a rank begins a step when its message
//! of the step before has arrived (a fence before each but the first).

use crate::collectives::prelude::*;

const SOURCE: &str =
    "Thakur, Rabenseifner and Gropp, \"Optimization of collective communication operations in MPICH\" (IJHPCA 2005)";

algorithm! {
    /// every rank sends its block to every other rank at once
    ///
    /// No forwarding and no order: the network sees all messages at once. Good on a crossbar, where messages are
    /// cheap.
    pub ALLGATHER = Allgather "linear" {
        cost: "1 round of p-1 messages, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: allgather,
        build: |shape| allgather(shape)?.expand(),
    }

    /// every rank sends each block straight to its owner, one owner after another
    ///
    /// Moves the fewest bytes for any number of ranks and forwards nothing, so it suits networks on which all ranks
    /// are equally near.
    pub REDUCE_SCATTER = ReduceScatter "pairwise" {
        cost: "p-1 rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: reduce_scatter,
        build: |shape| reduce_scatter(shape)?.expand(),
    }

    /// every rank posts a message to every other rank at once
    ///
    /// No waits and no forwarding; shows how the network shares its capacity.
    pub ALLTOALL = Alltoall "linear" {
        cost: "1 round of p-1 messages per rank, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: alltoall,
        build: |shape| alltoall(shape)?.expand(),
    }

    /// every rank exchanges with one rank after another
    ///
    /// One message per rank at a time, so ports are free of contention; the choice for large blocks.
    pub ALLTOALL_PAIRWISE = Alltoall "pairwise" {
        cost: "p-1 rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: alltoall_pairwise,
        build: |shape| alltoall_pairwise(shape)?.expand(),
    }
}

fn allgather(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::Allgather, shape, Group::cyclic(p))?;
    let data = b.relative("output");
    b.step();
    for ahead in 1..p {
        b.put(data.at(0), ahead, data.at(0));
    }
    Ok(b)
}

fn reduce_scatter(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::ReduceScatter, shape, Group::cyclic(p))?;
    let data = b.relative("output");
    for owner in 1..p {
        b.step();
        b.put(data.at(owner), owner, data.at(owner)).reduce();
    }
    Ok(b)
}

fn alltoall(shape: &Shape) -> Result<Program> {
    let mut b = Program::new(Collective::Alltoall, shape, Group::cyclic(shape.ranks))?;
    let (input, output) = own_block(&mut b);
    for ahead in 1..shape.ranks {
        b.put(input.at(ahead), ahead, output.at(0));
    }
    Ok(b)
}

fn alltoall_pairwise(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let group = match p.is_power_of_two() {
        true => Group::xor(p),
        false => Group::cyclic(p),
    };
    let mut b = Program::new(Collective::Alltoall, shape, group)?;
    let (input, output) = own_block(&mut b);
    for ahead in 1..p {
        let written = b.put(input.at(ahead), ahead, output.at(0));
        if ahead > 1 {
            written.fenced();
        }
        b.step();
    }
    Ok(b)
}

/// The buffers of an alltoall, in whose first step every rank copies its own block.
fn own_block(b: &mut Program) -> (Slot, Slot) {
    let (input, output) = (b.relative("input"), b.relative("output"));
    b.step();
    b.local(input.at(0), output.at(0));
    (input, output)
}
