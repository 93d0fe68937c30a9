//! Bucket on one port: rings along one axis of a torus after the other.
//!
//! ```text
//!   4 x 4   allgather        3 steps along x   everyone has the blocks of its row
//!                            3 steps along y   four blocks a message: everyone has all
//!           reduce_scatter   the same backwards
//! ```
//!
//! One of the copies of [`super::bucket_multiport`]: all messages go to neighbours, in as many rounds as the sides
//! are long.

use crate::collectives::common::axis::{axes, Axis};
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Jain and Sabharwal, \"Optimal bucket algorithms for large MPI collectives on torus interconnects\" (ICS 2010)";

algorithm! {
    /// blocks go round the rings of one axis of a torus after the other
    ///
    /// The rounds grow with the sides instead of the ranks. Without a grid the ranks are one ring.
    pub ALLGATHER = Allgather "bucket" {
        cost: "sum of all sides - D rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        build: allgather,
    }

    /// sums go round the rings of one axis of a torus after the other
    ///
    /// The rounds grow with the sides instead of the ranks. Without a grid the ranks are one ring.
    pub REDUCE_SCATTER = ReduceScatter "bucket" {
        cost: "sum of all sides - D rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        build: reduce_scatter,
    }
}

fn allgather(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let mut b = Builder::new(Collective::Allgather, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    for axis in &axes(shape) {
        for step in 0..axis.side - 1 {
            b.step();
            for rank in 0..shape.ranks {
                let blocks = axis.blocks(rank, axis.at(rank) + axis.side - step);
                b.put_blocks(rank, data, axis.next(rank), data, &blocks);
            }
        }
    }
    b.finish()
}

fn reduce_scatter(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let mut b = Builder::new(Collective::ReduceScatter, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    for axis in axes(shape).iter().rev() {
        for step in 0..axis.side - 1 {
            b.step();
            for rank in 0..shape.ranks {
                let blocks = axis.blocks(rank, axis.at(rank) + axis.side - 1 - step);
                let put = b.put_blocks(rank, data, axis.next(rank), data, &blocks);
                put.reduce();
            }
        }
    }
    b.finish()
}

impl Axis {
    fn next(&self, rank: u32) -> u32 {
        self.moved(rank, self.at(rank) + 1)
    }

    /// The blocks of all ranks that differ from `rank` along earlier axes and are at `place` along this one.
    fn blocks(&self, rank: u32, place: u32) -> Vec<u32> {
        let first = self.moved(rank, place) / self.stride * self.stride;
        (first..first + self.stride).collect()
    }
}
