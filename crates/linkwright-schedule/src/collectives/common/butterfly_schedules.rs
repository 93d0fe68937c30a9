//! Schedules made of a butterfly's phases; see [`super::butterfly`].
//!
//! ```text
//!   allreduce, least rounds   fold in, exchange whole vectors, fold out
//!   allreduce, least bytes    fold in, halve, double, fold out
//!   reduce_scatter            fold in, halve, fold out
//!   allgather                 fold in, double, fold out
//!   reduce                    fold in, halve, collect towards the root
//!   broadcast                 halve what the root spreads, double, fold out
//! ```
//!
//! Halving sends `reach(q, s+1)` to the partner q of step s = 0, 1, ... Doubling runs the steps
//! backwards and sends `reach(m, s+1)`. Near partners exchange the most, which a torus likes; the
//! price is that the blocks of one message are scattered, unless they are in the order of [`Butterfly::owners`]. An
//! allreduce may order them so; a reduce-scatter or allgather then owes each block one more message, between
//! the rank that owned it and the one whose it is (`_exchanged`).

use super::butterfly::{Butterfly, Partners};
use super::Phase;
use crate::builder::{Builder, Shape, Slot};
use crate::error::Result;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;

/// Blocks that each rank answers for.
type Owned = Vec<Vec<u32>>;

/// Allreduce by exchange of whole vectors.
pub fn allreduce_latency(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", 1));
    fold_in(&mut b, &butterfly, data, 1);
    for s in 0..butterfly.steps() {
        b.step();
        for &m in butterfly.core() {
            let (q, hint) = butterfly.meet(m, s);
            b.put(m, data.at(0), q, data.at(0)).reduce().hint(hint);
        }
    }
    fold_out(&mut b, &butterfly, data, |_, _| vec![0]);
    b.finish()
}

/// Allreduce by reduce-scatter and allgather over as many blocks as the core has ranks.
pub fn allreduce_bandwidth(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let (count, owned) = core_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", count));
    fold_in(&mut b, &butterfly, data, count);
    pass(&mut b, &butterfly, data, &owned, Phase::ReduceScatter);
    pass(&mut b, &butterfly, data, &owned, Phase::Allgather);
    fold_out(&mut b, &butterfly, data, |_, _| (0..count).collect());
    b.finish()
}

/// Reduce-scatter: block r ends complete at rank r.
pub fn reduce_scatter(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let owned = rank_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::ReduceScatter, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    fold_in(&mut b, &butterfly, data, shape.ranks);
    pass(
        &mut b,
        &butterfly,
        data,
        &owned[butterfly.folds()],
        Phase::ReduceScatter,
    );
    fold_out(&mut b, &butterfly, data, |surplus, fold| {
        owned[fold][surplus as usize].clone()
    });
    b.finish()
}

/// Allgather: block r of rank r ends everywhere.
pub fn allgather(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let owned = rank_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::Allgather, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    gather_in(&mut b, &butterfly, data, &owned);
    pass(
        &mut b,
        &butterfly,
        data,
        &owned[butterfly.folds()],
        Phase::Allgather,
    );
    fold_out_lacking(&mut b, &butterfly, data, &owned);
    b.finish()
}

/// Reduce to the root: reduce-scatter, then collect the blocks along the same meetings.
pub fn reduce(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let (count, owned) = core_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::Reduce, shape);
    let data = b.buffer(Buffer::vector("output", count));
    fold_in(&mut b, &butterfly, data, count);
    pass(&mut b, &butterfly, data, &owned, Phase::ReduceScatter);
    let collector = butterfly.home(shape.root, butterfly.folds());
    for s in (0..butterfly.steps()).rev() {
        let reach = butterfly.reach(s + 1);
        b.step();
        for m in butterfly.met_before(collector, s) {
            let (q, _) = butterfly.meet(m, s);
            let blocks = blocks_of(&reach[q as usize], &owned);
            b.put_blocks(q, data, m, data, &blocks)
                .hint(butterfly.meet(q, s).1);
        }
    }
    if collector != shape.root {
        let all = data.range(0..count);
        b.step();
        b.put(collector, all, shape.root, all);
    }
    b.finish()
}

/// Broadcast: scatter from the root along the meetings, then double.
pub fn broadcast(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let (count, owned) = core_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::Broadcast, shape);
    let data = b.buffer(Buffer::vector("output", count));
    let spreader = butterfly.home(shape.root, butterfly.folds());
    let all = data.range(0..count);
    if spreader != shape.root {
        b.step();
        b.put(shape.root, all, spreader, all);
    }
    for s in 0..butterfly.steps() {
        let reach = butterfly.reach(s + 1);
        b.step();
        for m in butterfly.met_before(spreader, s) {
            let (q, hint) = butterfly.meet(m, s);
            let blocks = blocks_of(&reach[q as usize], &owned);
            b.put_blocks(m, data, q, data, &blocks).hint(hint);
        }
    }
    pass(&mut b, &butterfly, data, &owned, Phase::Allgather);
    for fold in (0..butterfly.folds()).rev() {
        b.step();
        for (surplus, home) in butterfly.folded(fold) {
            if surplus != shape.root {
                b.put(home, all, surplus, all);
            }
        }
    }
    b.finish()
}

/// Reduce-scatter in which a rank owns other blocks than its own, so that messages are runs: at the end every
/// block goes to its rank.
pub fn reduce_scatter_exchanged(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let owned = shared_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::ReduceScatter, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    fold_in(&mut b, &butterfly, data, shape.ranks);
    pass(&mut b, &butterfly, data, &owned, Phase::ReduceScatter);
    b.step();
    for (owner, block) in foreign(&owned) {
        b.put(owner, data.at(block), block, data.at(block));
    }
    b.finish()
}

/// Allgather in which a rank owns other blocks than its own, so that messages are runs: at first every block
/// goes to its owner.
pub fn allgather_exchanged(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let owned = shared_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::Allgather, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    b.step();
    for (owner, block) in foreign(&owned) {
        b.put(block, data.at(block), owner, data.at(block));
    }
    pass(&mut b, &butterfly, data, &owned, Phase::Allgather);
    fold_out(&mut b, &butterfly, data, |surplus, _| {
        (0..shape.ranks).filter(|&block| block != surplus).collect()
    });
    b.finish()
}

/// Allgather in which what a rank has grows by those whom it met: near partners first, in at most two runs on
/// a ring.
pub fn allgather_near_first(shape: &Shape, partners: Partners) -> Result<Schedule> {
    let butterfly = Butterfly::new(shape, partners)?;
    let owned = rank_blocks(&butterfly, shape);
    let mut b = Builder::new(Collective::Allgather, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    gather_in(&mut b, &butterfly, data, &owned);
    for s in 0..butterfly.steps() {
        let held = butterfly.held(s);
        b.step();
        for &m in butterfly.core() {
            let (q, hint) = butterfly.meet(m, s);
            let blocks = blocks_of(&held[m as usize], &owned[butterfly.folds()]);
            b.put_blocks(m, data, q, data, &blocks).hint(hint);
        }
    }
    fold_out_lacking(&mut b, &butterfly, data, &owned);
    b.finish()
}

/// One block per rank of the core: how many, and whose.
fn core_blocks(butterfly: &Butterfly, shape: &Shape) -> (u32, Owned) {
    let mut owned = vec![Vec::new(); shape.ranks as usize];
    for (block, &rank) in (0..).zip(&butterfly.owners()) {
        owned[rank as usize].push(block);
    }
    (butterfly.core().len() as u32, owned)
}

/// One block per rank; after `i` folds the rank that acts for `r` owns the block of `r`: entry `i`.
fn rank_blocks(butterfly: &Butterfly, shape: &Shape) -> Vec<Owned> {
    let after = |folds| {
        let mut owned = vec![Vec::new(); shape.ranks as usize];
        for rank in 0..shape.ranks {
            owned[butterfly.home(rank, folds) as usize].push(rank);
        }
        owned
    };
    (0..=butterfly.folds()).map(after).collect()
}

/// The blocks of all ranks, shared out over the core in the order of its owners.
fn shared_blocks(butterfly: &Butterfly, shape: &Shape) -> Owned {
    let owners = butterfly.owners();
    let (ranks, count) = (u64::from(shape.ranks), owners.len() as u64);
    let mut owned = vec![Vec::new(); shape.ranks as usize];
    for (place, &owner) in (0u64..).zip(&owners) {
        let border = |place: u64| (ranks * place / count) as u32;
        owned[owner as usize].extend(border(place)..border(place + 1));
    }
    owned
}

/// (owner, block) of all blocks that are not the owner's own.
fn foreign(owned: &Owned) -> impl Iterator<Item = (u32, u32)> + '_ {
    let pairs = (0..)
        .zip(owned)
        .flat_map(|(owner, blocks)| blocks.iter().map(move |&block| (owner, block)));
    pairs.filter(|(owner, block)| owner != block)
}

/// Surplus ranks give their blocks to those who act for them.
fn gather_in(b: &mut Builder, butterfly: &Butterfly, data: Slot, owned: &[Owned]) {
    for (fold, owned) in owned[..butterfly.folds()].iter().enumerate() {
        b.step();
        for (surplus, home) in butterfly.folded(fold) {
            b.put_blocks(surplus, data, home, data, &owned[surplus as usize]);
        }
    }
}

/// Surplus ranks get the blocks that they lack.
fn fold_out_lacking(b: &mut Builder, butterfly: &Butterfly, data: Slot, owned: &[Owned]) {
    fold_out(b, butterfly, data, |surplus, fold| {
        let has = &owned[fold][surplus as usize];
        let all = 0..owned[fold].len() as u32;
        all.filter(|block| !has.contains(block)).collect()
    });
}

fn blocks_of(ranks: &[u32], owned: &Owned) -> Vec<u32> {
    let lists = ranks.iter().map(|&rank| &owned[rank as usize]);
    let mut blocks: Vec<u32> = lists.flatten().copied().collect();
    blocks.sort_unstable();
    blocks
}

fn fold_in(b: &mut Builder, butterfly: &Butterfly, data: Slot, count: u32) {
    let all = data.range(0..count);
    for fold in 0..butterfly.folds() {
        b.step();
        for (surplus, home) in butterfly.folded(fold) {
            b.put(surplus, all, home, all).reduce();
        }
    }
}

fn fold_out(
    b: &mut Builder,
    butterfly: &Butterfly,
    data: Slot,
    blocks: impl Fn(u32, usize) -> Vec<u32>,
) {
    for fold in (0..butterfly.folds()).rev() {
        b.step();
        for (surplus, home) in butterfly.folded(fold) {
            b.put_blocks(home, data, surplus, data, &blocks(surplus, fold));
        }
    }
}

/// Halve the blocks or, backwards, double them.
fn pass(b: &mut Builder, butterfly: &Butterfly, data: Slot, owned: &Owned, phase: Phase) {
    let last = butterfly.steps();
    for i in 0..last {
        let halving = phase == Phase::ReduceScatter;
        let s = if halving { i } else { last - 1 - i };
        let reach = butterfly.reach(s + 1);
        b.step();
        for &m in butterfly.core() {
            let (q, hint) = butterfly.meet(m, s);
            let reached = if halving { q } else { m };
            let blocks = blocks_of(&reach[reached as usize], owned);
            let mut written = b.put_blocks(m, data, q, data, &blocks);
            if halving {
                written = written.reduce();
            }
            written.hint(hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surplus_rank_gets_what_it_lacks() {
        let shape = Shape::new(5, 5);
        for partners in [Partners::Doubling, Partners::Swing] {
            // Rank 0 answers for blocks 0 and 4 and returns block 4.
            let last = |schedule: Schedule| *schedule.ops().last().unwrap();
            let op = last(reduce_scatter(&shape, partners).unwrap());
            assert_eq!((op.from, op.to, op.src, op.count), (0, 4, 4, 1));
            // Rank 4 has its own block already.
            let op = last(allgather(&shape, partners).unwrap());
            assert_eq!((op.from, op.to, op.src, op.count), (0, 4, 0, 4));
        }
    }
}
