//! Schedules made of a butterfly's phases; see [`super::butterfly`].
//!
//! ```text
//!   allreduce, least rounds   fold in, exchange whole vectors, fold out
//!   allreduce, least bytes    fold in, halve, double, fold out
//!   reduce_scatter            fold in, halve, fold out
//!   allgather                 fold in, double, fold out
//!   reduce                    fold in, halve, collect towards the root
//! ```
//!
//! Halving sends `reach(q, s+1)` to the partner q of step s = 0, 1, ... Doubling runs the steps
//! backwards and sends `reach(m, s+1)`. Near partners exchange the most, which a torus likes; the
//! price is that the blocks of one message are scattered, unless they are in the order of [`Butterfly::owners`]:
//! [`super::butterfly_runs`] has what goes with that order.

use super::butterfly::{Butterfly, Partners};
use super::Phase;
use crate::collectives::prelude::*;

/// Blocks that each rank answers for.
pub(super) type Owned = Vec<Vec<u32>>;

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

/// One block per rank of the core: how many, and whose.
pub(super) fn core_blocks(butterfly: &Butterfly, shape: &Shape) -> (u32, Owned) {
    let mut owned = vec![Vec::new(); shape.ranks as usize];
    for (block, &rank) in (0..).zip(&butterfly.owners()) {
        owned[rank as usize].push(block);
    }
    (butterfly.core().len() as u32, owned)
}

/// One block per rank; after `i` folds the rank that acts for `r` owns the block of `r`: entry `i`.
pub(super) fn rank_blocks(butterfly: &Butterfly, shape: &Shape) -> Vec<Owned> {
    let after = |folds| {
        let mut owned = vec![Vec::new(); shape.ranks as usize];
        for rank in 0..shape.ranks {
            owned[butterfly.home(rank, folds) as usize].push(rank);
        }
        owned
    };
    (0..=butterfly.folds()).map(after).collect()
}

/// Surplus ranks give their blocks to those who act for them.
pub(super) fn gather_in(b: &mut Builder, butterfly: &Butterfly, data: Slot, owned: &[Owned]) {
    for (fold, owned) in owned[..butterfly.folds()].iter().enumerate() {
        b.step();
        for (surplus, home) in butterfly.folded(fold) {
            b.put_blocks(surplus, data, home, data, &owned[surplus as usize]);
        }
    }
}

/// Surplus ranks get the blocks that they lack.
pub(super) fn fold_out_lacking(
    b: &mut Builder,
    butterfly: &Butterfly,
    data: Slot,
    owned: &[Owned],
) {
    fold_out(b, butterfly, data, |surplus, fold| {
        let has = &owned[fold][surplus as usize];
        let all = 0..owned[fold].len() as u32;
        all.filter(|block| !has.contains(block)).collect()
    });
}

pub(super) fn blocks_of(ranks: &[u32], owned: &Owned) -> Vec<u32> {
    let lists = ranks.iter().map(|&rank| &owned[rank as usize]);
    let mut blocks: Vec<u32> = lists.flatten().copied().collect();
    blocks.sort_unstable();
    blocks
}

pub(super) fn fold_in(b: &mut Builder, butterfly: &Butterfly, data: Slot, count: u32) {
    let all = data.range(0..count);
    for fold in 0..butterfly.folds() {
        b.step();
        for (surplus, home) in butterfly.folded(fold) {
            b.put(surplus, all, home, all).reduce();
        }
    }
}

pub(super) fn fold_out(
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
pub(super) fn pass(
    b: &mut Builder,
    butterfly: &Butterfly,
    data: Slot,
    owned: &Owned,
    phase: Phase,
) {
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
