//! Schedules of a butterfly whose messages are runs of blocks; see [`super::butterfly_schedules`].
//!
//! ```text
//!   broadcast        scatter from the root along the meetings, double, fold out
//!   reduce_scatter   fold in, halve what the ranks own in an order of runs, each block to its rank
//!   allgather        each block to the one who owns it in that order, double, fold out
//!   allgather        near partners first: what they hold are neighbours
//! ```
//!
//! An allreduce, broadcast or reduce may number its blocks in the order of [`Butterfly::owners`]. In a
//! reduce-scatter or allgather block r is that of rank r, so in that order each block moves once more,
//! between the rank that owns it and the one whose it is.

use super::butterfly::{Butterfly, Partners};
use super::butterfly_schedules::{
    blocks_of, core_blocks, fold_in, fold_out, fold_out_lacking, gather_in, pass, rank_blocks,
    Owned,
};
use super::Phase;
use crate::collectives::prelude::*;

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
