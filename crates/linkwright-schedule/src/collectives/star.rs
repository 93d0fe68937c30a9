//! Star: everything goes straight between the root and everyone else.
//!
//! ```text
//!   broadcast   root -> root+1, root+2, ... root-1      the vector, all in one step
//!   multicast   root ==> everyone else                  one operation, the network copies
//!   scatter     root -> r                               block r
//!   gather      r -> root                               block r
//!   reduce      r -> root                               to a place of its own there
//!               then root: sum += place of root+1, root+2, ... root-1
//!   barrier     1, 2, ... p-1 -> 0, then 0 -> 1, 2, ... p-1      tokens
//! ```
//!
//! One round in which the port of the root carries everything, S (p-1) bytes of whole vectors or
//! S (p-1)/p bytes of blocks. For whole vectors it is the baseline that the trees improve. Blocks
//! move once and the port is never idle: nothing is faster for large ones, but for small ones the
//! root pays for p-1 messages. Gather is scatter reversed, reduce is broadcast reversed: the root,
//! which sent p-1 vectors, now needs room for as many, and does all the arithmetic.
//!
//! Where the machine multicasts, S bytes leave the root once, whatever p is. Where it does not, the
//! executor sends p-1 messages and it is the linear broadcast. The barrier is the counter that
//! everyone increments, written as messages.

use crate::collectives::prelude::*;

const OVERVIEW: &str =
    "Chan, Heimlich, Purkayastha and van de Geijn, \"Collective communication: theory, practice, and experience\" \
     (Concurrency and Computation: Practice and Experience 2007)";

algorithm! {
    /// the root sends its vector to every other rank
    ///
    /// No forwarding: the root's port carries everything. The baseline, and suitable for few ranks.
    pub BROADCAST = Broadcast "linear" {
        cost: "1 round of p-1 messages, S (p-1) bytes from the root",
        source: OVERVIEW,
        build: broadcast,
    }

    /// one multicast from the root to all other ranks
    ///
    /// Lets the network copy; without hardware multicast it is the linear broadcast.
    pub MULTICAST = Broadcast "multicast" {
        cost: "1 round of 1 message, S bytes from the root",
        source: "Ni and McKinley, \"A survey of wormhole routing techniques in direct networks\" (IEEE Computer 1993)",
        build: multicast,
    }

    /// every rank sends its vector to the root, which adds them one by one
    ///
    /// No forwarding: the root's port and arithmetic do all the work. The baseline, and suitable for few ranks.
    pub REDUCE = Reduce "linear" {
        cost: "1 round of p-1 messages, S (p-1) bytes into the root, p-1 additions there",
        source: OVERVIEW,
        build: reduce,
    }

    /// every rank sends its block straight to the root
    ///
    /// Every byte moves once; the root's port and its cost per message are the limit.
    pub GATHER = Gather "linear" {
        cost: "1 round of p-1 messages, S (p-1)/p bytes into the root",
        source: OVERVIEW,
        build: gather,
    }

    /// the root sends every rank its block directly
    ///
    /// Every byte moves once; the root's port and its cost per message are the limit.
    pub SCATTER = Scatter "linear" {
        cost: "1 round of p-1 messages, S (p-1)/p bytes from the root",
        source: OVERVIEW,
        build: scatter,
    }

    /// every rank reports to rank 0, which tells all
    ///
    /// Two rounds through one rank: the baseline, and suitable for few ranks.
    pub BARRIER = Barrier "linear" {
        cost: "2 rounds of p-1 empty messages at rank 0",
        source:
            "Hensgen, Finkel and Manber, \"Two algorithms for barrier synchronization\" (International Journal of \
             Parallel Programming 1988)",
        build: barrier,
    }
}

/// Everyone but the root, in the order in which it deals with them.
fn others(shape: &Shape) -> impl Iterator<Item = u32> {
    let (p, root) = (shape.ranks, shape.root);
    (1..p).map(move |ahead| (root + ahead) % p)
}

fn broadcast(shape: &Shape) -> Result<Schedule> {
    let mut b = Builder::new(Collective::Broadcast, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    b.step();
    for r in others(shape) {
        b.put(shape.root, vector, r, vector);
    }
    b.finish()
}

fn multicast(shape: &Shape) -> Result<Schedule> {
    let root = shape.root;
    let mut b = Builder::new(Collective::Broadcast, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    let others: Vec<u32> = (0..shape.ranks).filter(|&r| r != root).collect();
    if !others.is_empty() {
        b.step();
        b.multicast(root, vector, &others, vector);
    }
    b.finish()
}

fn reduce(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Reduce, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    if p < 2 {
        return b.finish();
    }
    let places = b.buffer(Buffer {
        mul: p - 1,
        ..Buffer::vector("scratch", p - 1).only_at(root)
    });
    b.step();
    for (place, r) in (0..).zip(others(shape)) {
        b.put(r, vector, root, places.at(place));
    }
    for place in 0..p - 1 {
        b.step();
        b.local(root, places.at(place), vector).reduce();
    }
    b.finish()
}

fn gather(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Gather, shape);
    let own = b.buffer(Buffer::block("input", p)).at(0);
    let all = b.buffer(Buffer::vector("output", p).only_at(root));
    b.step();
    b.local(root, own, all.at(root));
    for r in others(shape) {
        b.put(r, own, root, all.at(r));
    }
    b.finish()
}

fn scatter(shape: &Shape) -> Result<Schedule> {
    let (p, root) = (shape.ranks, shape.root);
    let mut b = Builder::new(Collective::Scatter, shape);
    let all = b.buffer(Buffer::vector("input", p).only_at(root));
    let own = b.buffer(Buffer::block("output", p)).at(0);
    b.step();
    b.local(root, all.at(root), own);
    for r in others(shape) {
        b.put(root, all.at(r), r, own);
    }
    b.finish()
}

fn barrier(shape: &Shape) -> Result<Schedule> {
    let p = shape.ranks;
    let mut b = Builder::new(Collective::Barrier, shape);
    let tokens = b.buffer(Buffer::vector("output", p).empty());
    let all = tokens.range(0..p);
    b.step();
    for r in 1..p {
        b.put(r, tokens.at(r), 0, tokens.at(r));
    }
    b.step();
    for r in 1..p {
        b.put(0, all, r, all);
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_multicast_reaches_everyone_else() {
        let schedule = multicast(&Shape::new(64, 10).with_root(3)).unwrap();
        assert_eq!(schedule.targets(&schedule.ops()[0]).len(), 63);
    }

    #[test]
    fn the_root_of_a_reduce_adds() {
        let schedule = reduce(&Shape::new(64, 10).with_root(3)).unwrap();
        assert_eq!(schedule.ops().len(), 63 + 63);
    }
}
