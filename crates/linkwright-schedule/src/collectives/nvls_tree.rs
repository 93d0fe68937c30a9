//! NVLS tree: the switches combine and copy inside the nodes, double binary trees connect the nodes.
//!
//! ```text
//!   rows of the grid are nodes, columns their GPUs; GPU g of each node is the head of part g
//!
//!   1  head g reads part g of all GPUs of its node, combined by the switch
//!   2  the heads g of all nodes: two complementary binary trees, each with half of the part, up and down
//!   3  head g writes part g once; the switch copies it to all GPUs of the node
//! ```
//!
//! What [`super::nvls`] does where the network cannot combine: each part has its own rail, so all NICs work.
//! Each stream has its own lane, so that slices (`pipeline`) go up, down and out at once.

use crate::collectives::common::forest::{self, First, Lanes, Tree};
use crate::collectives::common::nodes::Nodes;
use crate::collectives::double_binary_tree::tree;
use crate::collectives::nvls::{combine, copy};
use crate::collectives::prelude::*;

algorithm! {
    /// switches combine inside the nodes, double binary trees between them
    ///
    /// Reduction and multicast inside the switch of each node, and two trees over the nodes for each part of the
    /// vector, on its own rail. For several nodes whose network does not combine; to be cut into slices.
    pub ALGORITHM = Allreduce "nvls_tree" {
        cost: "2 log2(rows) + 2 rounds; S (n+1)/n bytes per rank inside a node of n, at most 2 S/n between nodes",
        nodes: Needed,
        source: "NVIDIA, NCCL 2.18, NVLSTree",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    if shape.grid.is_empty() {
        return Err(ALGORITHM.waive(
            "ranks in a line are one node; use allreduce/nvls, or a grid, such as 8x4 for four nodes of eight",
        ));
    }
    let nodes = Nodes::one(shape);
    let chunks = 2 * nodes.columns;
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", chunks));
    let mut lanes = Lanes::new(shape.ranks);
    let halves = |rank: u32| [0, 1].map(|half| 2 * (rank % nodes.columns) + half);
    b.step();
    for rank in 0..shape.ranks {
        for half in halves(rank) {
            combine(&mut b, data, nodes, rank, half, lanes.next(rank));
        }
    }
    let trees: Vec<Tree> = (0..chunks)
        .map(|chunk| {
            let heads = nodes.rail(chunk / 2).into_iter();
            tree(&heads.map(|head| vec![head]).collect(), chunk)
        })
        .collect();
    forest::up(&mut b, data, chunks, &trees, First::Beside, &mut lanes);
    forest::down(&mut b, data, &trees, &mut lanes);
    b.step();
    for rank in 0..shape.ranks {
        for half in halves(rank) {
            copy(&mut b, data, nodes, rank, half, lanes.next(rank));
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transforms::pipeline;
    use crate::verify;

    #[test]
    fn right_in_slices() {
        let schedule = build(&Shape::new(12, 240).with_grid(4, 3)).unwrap();
        verify(&pipeline(&schedule, 5).unwrap()).unwrap();
    }
}
