//! NVLS: the switch of a node combines what it reads and copies what is written (NVLink SHARP).
//!
//! ```text
//!   rows of the grid are nodes, columns their GPUs; GPU g of each node is the head of part g
//!
//!   allreduce        1  head g reads part g of all GPUs of its node, combined by the switch
//!                    2  several nodes: the network combines part g of all heads g, for all of them
//!                    3  head g writes part g once; the switch copies it to all GPUs of the node
//!   reduce_scatter   1, then once round the ring of heads g
//!   allgather        once round the ring of heads g, and 3 for each block that comes by
//! ```
//!
//! In a node of n GPUs, each sends S for step 1 and S/n for step 3, (n+1)/n S in all, where a ring sends nearly
//! 2 S, and the number of hops does not grow with n. It needs a switch that combines and copies, and for an
//! allreduce on several nodes a network that combines, such as InfiniBand with SHARP; `nvls_tree` does without
//! that. Without a grid, all ranks are one node. Each step has its own lane, so that slices (`pipeline`) overlap.
//!
//! The allreduce is also known as the two-shot multimem allreduce. Its one-shot form, in which every GPU reads the
//! whole vector combined, has one latency and a barrier for n times the reading:
//! nothing may be overwritten before everyone has read it.

use crate::collectives::common::nodes::Nodes;
use crate::collectives::common::ring::sent;
use crate::collectives::common::Phase;
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Klenk, Jiang, Thorson and Dennison, \"An in-network architecture for accelerating shared-memory multiprocessor \
     collectives\" (ISCA 2020), for the switch; NVIDIA, NCCL 2.17, src/transport/nvls.cc, for heads";

algorithm! {
    /// the switch combines each part for its head, and copies it to all from there
    ///
    /// Reduction and multicast inside the switch (NVLink SHARP), also known as two-shot multimem: nearly half of a
    /// ring's bytes, and hops that do not grow with the ranks. With a grid, rows are nodes, between which the
    /// network combines.
    pub ALLREDUCE = Allreduce "nvls" {
        cost: "2 rounds, S (n+1)/n bytes per rank in a node of n; with several nodes 1 round and S/n more",
        source: SOURCE,
        build: allreduce,
    }

    /// every rank reads the vector of all ranks, combined by the switch
    ///
    /// One latency and a barrier, for p times the reading: for the smallest vectors in a node whose switch
    /// combines.
    pub ONE_SHOT = Allreduce "one_shot_multimem" {
        cost: "1 round and 1 barrier, S p bytes per rank",
        source: "PyTorch, symmetric memory, multimem one-shot allreduce",
        build: one_shot,
    }

    /// the switch combines each block for its rank
    ///
    /// Reduction inside the switch (NVLink SHARP). With a grid, rows are nodes: what the switches combine goes once
    /// round a ring on each rail.
    pub REDUCE_SCATTER = ReduceScatter "nvls" {
        cost: "1 round of S bytes per rank; with several nodes rows-1 rounds and S (rows-1)/p bytes more",
        source: SOURCE,
        build: reduce_scatter,
    }

    /// every rank writes its block once, and the switch copies it to all
    ///
    /// Multicast inside the switch (NVLink SHARP). With a grid, rows are nodes: blocks go once round a ring on each
    /// rail, and each GPU multicasts those that come by.
    pub ALLGATHER = Allgather "nvls" {
        cost: "1 round of S/p bytes per rank; with several nodes S/n, in rows-1 rounds more",
        source: SOURCE,
        build: allgather,
    }
}

fn allreduce(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let nodes = Nodes::one(shape);
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", nodes.columns));
    b.step();
    for rank in 0..shape.ranks {
        combine(&mut b, data, nodes, rank, rank % nodes.columns, 0);
    }
    b.step();
    for column in (0..nodes.columns).filter(|_| nodes.rows > 1) {
        let (rail, part) = (nodes.rail(column), data.at(column));
        b.aggregate(&rail, part, &rail, part).lane(1);
    }
    b.step();
    for rank in 0..shape.ranks {
        copy(&mut b, data, nodes, rank, rank % nodes.columns, 2);
    }
    b.finish()
}

/// `rank` reads `chunk` of its node, combined.
pub(super) fn combine(b: &mut Builder, data: Slot, nodes: Nodes, rank: u32, chunk: u32, lane: u8) {
    if nodes.columns > 1 {
        let (node, part) = (nodes.node(rank / nodes.columns), data.at(chunk));
        b.aggregate(&node, part, &[rank], part).lane(lane);
    }
}

/// `rank` writes `chunk` to its node.
pub(super) fn copy(b: &mut Builder, data: Slot, nodes: Nodes, rank: u32, chunk: u32, lane: u8) {
    if nodes.columns > 1 {
        let part = data.at(chunk);
        b.multicast(rank, part, &nodes.others(rank), part)
            .lane(lane);
    }
}

fn one_shot(shape: &Shape) -> Result<Schedule> {
    let everyone: Vec<u32> = (0..shape.ranks).collect();
    let mut b = Builder::new(Collective::Allreduce, shape);
    let vector = b.buffer(Buffer::vector("output", 1)).at(0);
    let sum = b.buffer(Buffer::vector("sum", 1)).at(0);
    b.step();
    for rank in 0..shape.ranks {
        b.aggregate(&everyone, vector, &[rank], sum);
    }
    b.barrier(&everyone);
    for rank in 0..shape.ranks {
        b.local(rank, sum, vector);
    }
    b.finish()
}

fn reduce_scatter(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let nodes = Nodes::one(shape);
    let (columns, rows) = (nodes.columns, nodes.rows);
    let mut b = Builder::new(Collective::ReduceScatter, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    let arrived = b.buffer(Buffer {
        mul: rows,
        blocks: rows,
        ..Buffer::block("from_rail", shape.ranks)
    });
    // In the order in which the ring takes them, the own block last.
    for s in 0..rows {
        b.step();
        for rank in 0..shape.ranks {
            let node = (rank / columns + sent(rows, s, Phase::ReduceScatter)) % rows;
            combine(
                &mut b,
                data,
                nodes,
                rank,
                node * columns + rank % columns,
                0,
            );
        }
    }
    for s in 0..rows - 1 {
        b.step();
        for rank in 0..shape.ranks {
            let node = (rank / columns + sent(rows, s, Phase::ReduceScatter)) % rows;
            let block = data.at(node * columns + rank % columns);
            b.put(
                rank,
                block,
                (rank + columns) % shape.ranks,
                arrived.at(node),
            )
            .lane(1);
        }
        b.step();
        for rank in 0..shape.ranks {
            let node = (rank / columns + sent(rows, s + 1, Phase::ReduceScatter)) % rows;
            let block = data.at(node * columns + rank % columns);
            b.local(rank, arrived.at(node), block).reduce().lane(2);
        }
    }
    b.finish()
}

fn allgather(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let nodes = Nodes::one(shape);
    let (columns, rows) = (nodes.columns, nodes.rows);
    let mut b = Builder::new(Collective::Allgather, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    for s in 0..rows {
        b.step();
        for rank in 0..shape.ranks {
            let node = (rank / columns + sent(rows, s, Phase::Allgather)) % rows;
            let block = node * columns + rank % columns;
            if s + 1 < rows {
                let next = (rank + columns) % shape.ranks;
                b.put(rank, data.at(block), next, data.at(block)).lane(0);
            }
            copy(&mut b, data, nodes, rank, block, 1);
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::OpKind;
    use crate::transforms::pipeline;
    use crate::verify;

    #[test]
    fn one_message_up_and_one_down_for_each_head() {
        let schedule = allreduce(&Shape::new(8, 64)).unwrap();
        let count = |kind| schedule.ops().iter().filter(|op| op.kind == kind).count();
        let kinds = [
            OpKind::Aggregate,
            OpKind::Multicast,
            OpKind::Notice,
            OpKind::Put,
        ];
        assert_eq!(kinds.map(count), [8, 8, 0, 0]);
        // A head's write waits for its read alone.
        assert_eq!(schedule.edge_count(), 8);
    }

    #[test]
    fn right_in_slices() {
        for algorithm in [&ALLREDUCE, &ONE_SHOT, &REDUCE_SCATTER, &ALLGATHER] {
            let schedule = (algorithm.build)(&Shape::new(12, 240).with_grid(4, 3)).unwrap();
            verify(&pipeline(&schedule, 5).unwrap()).unwrap();
        }
    }
}
