//! Double binary tree: two trees over the nodes carry half of the vector each, up to their roots and back.
//!
//! ```text
//!   between nodes   [`super::common::binary`]: who is a leaf of one tree is inside the other
//!   inside a node   a chain that begins at the GPU which talks to the network
//!
//!        node 2        node 0        node 1             rows of the grid are nodes, columns their GPUs;
//!      0--1--2--3 <--- 0--1--2--3    0--1--2--3         without a grid, every rank is a node
//!      ^---------------------------- 0
//! ```
//!
//! A node of several GPUs has several rails: on rail r the chains begin at GPU r, so that every GPU talks to
//! the network for its part of the vector. A rail for each GPU is the default on several nodes, one rail on a
//! single node; given rings, there is a rail for each, and its chains follow the order of the ring in a node.
//!
//! Latency grows with log2 of the nodes, and no rank sends more than 2 S, about the least possible: the
//! algorithm suits middling sizes on many nodes. The vector should be cut into slices (`pipeline`), which
//! then flow up and down at once: each stream has its own lane.

use crate::collectives::common::binary;
use crate::collectives::common::forest::{self, First, Lanes, Tree};
use crate::collectives::common::nodes::{Chains, Nodes};
use crate::collectives::prelude::*;

algorithm! {
    /// two complementary binary trees over the nodes, a chain inside each node
    ///
    /// NCCL's Tree. Each tree carries half of the vector up to its root and back; who is a leaf of one is inside
    /// the other. Few rounds and few bytes: for middling sizes on many nodes, cut into slices. With a grid, rows
    /// are nodes, and there is a rail for each GPU of a node, or for each given ring.
    pub ALGORITHM = Allreduce "double_binary_tree" {
        cost: "2 (log2(nodes) + GPUs of a node - 1) rounds, at most 2 S bytes per rank between nodes",
        source:
            "Jeaugey, \"Massively scale your deep learning training with NCCL 2.4\" (NVIDIA, 2019); Sanders, Speck \
             and Träff, \"Two-tree algorithms for full bandwidth broadcast, reduction and scan\" (Parallel Computing \
             2009)",
        build: build,
    }
}

fn build(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let rails = Nodes::each(shape).chains(shape);
    let chunks = 2 * rails.len() as u32;
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", chunks));
    let trees: Vec<Tree> = (0..chunks)
        .map(|chunk| tree(&rails[chunk as usize / 2], chunk))
        .collect();
    let mut lanes = Lanes::new(shape.ranks);
    forest::up(&mut b, data, chunks, &trees, First::Added, &mut lanes);
    forest::down(&mut b, data, &trees, &mut lanes);
    b.finish()
}

/// The tree of `chunk` over the nodes: the first one for even chunks, the second for odd ones.
pub(super) fn tree(rail: &Chains, chunk: u32) -> Tree {
    let (mut ranks, mut parents) = (Vec::new(), Vec::new());
    let mut heads = vec![0; rail.len()];
    for (node, parent) in binary::tree(rail.len() as u32, chunk as usize % 2) {
        let head = ranks.len() as u32;
        heads[node as usize] = head;
        parents.push(heads[parent as usize]);
        parents.extend((1..rail[node as usize].len() as u32).map(|k| head + k - 1));
        ranks.extend(&rail[node as usize]);
    }
    Tree {
        ranks,
        parents,
        chunk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transforms::{pipeline, unfuse};
    use crate::verify;

    #[test]
    fn every_gpu_is_the_head_of_its_rail() {
        let schedule = build(&Shape::new(12, 96).with_grid(4, 3)).unwrap();
        let between = |op: &&crate::ir::Op| op.is_message() && op.from / 4 != op.to / 4;
        let crossing: Vec<_> = schedule.ops().iter().filter(between).collect();
        // 2 trees of 2 branches, up and down, on 4 rails, each on one GPU of every node.
        assert_eq!(crossing.len(), 4 * 2 * 2 * 2);
        assert!(crossing
            .iter()
            .all(|op| op.from % 4 == op.to % 4 && op.src / 2 == op.from % 4));
    }

    #[test]
    fn chains_follow_given_rings() {
        let rings = vec![vec![2, 0, 1, 4, 5, 3]];
        let schedule = build(&Shape::new(6, 12).with_grid(3, 2).with_rings(rings)).unwrap();
        let messages = schedule.ops().iter().filter(|op| op.is_message());
        let mut pairs: Vec<_> = messages.map(|op| (op.from, op.to)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let there = [(0, 2), (1, 0), (5, 4), (3, 5), (2, 4)];
        let mut due = Vec::from(there.map(|(a, b)| (b, a)));
        due.extend(there);
        due.sort_unstable();
        assert_eq!(pairs, due);
    }

    #[test]
    fn right_with_rings_in_slices_and_unfused() {
        let orders = vec![vec![2, 0, 1, 4, 5, 3], vec![1, 2, 0, 5, 3, 4]];
        let shape = Shape::new(6, 240).with_grid(3, 2).with_rings(orders);
        let sliced = pipeline(&build(&shape).unwrap(), 5).unwrap();
        verify(&sliced).unwrap();
        verify(&unfuse(&sliced).unwrap()).unwrap();
    }
}
