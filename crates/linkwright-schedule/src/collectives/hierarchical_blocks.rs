//! Hierarchical allgather and reduce-scatter: along the rails between nodes, round a ring inside each node.
//!
//! ```text
//!   rows of the grid are nodes, columns their GPUs, which have a NIC each: GPU c of all nodes is rail c
//!
//!   allgather        1  along rail c, every node's block c     the rounds of [`super::pat`]
//!                    2  round the node, what its rails brought: GPU c passes on the blocks c of all nodes
//!   reduce_scatter   the same backwards, adding
//! ```
//!
//! All NICs of a node work, and a block crosses to each other node once: S (rows-1)/p bytes per rank between
//! nodes, the least possible. Rail and ring have lanes of their own.

use crate::collectives::common::ring::sent;
use crate::collectives::common::Phase;
use crate::collectives::pat;
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Jia and others, \"Highly scalable deep learning training system with mixed-precision\" (2018), section 3.3, \
     whose allreduce is the one and then the other; Jeaugey, \"PAT: a new algorithm for all-gather and reduce-scatter \
     operations at scale\" (2025)";

algorithm! {
    /// along the columns of a grid, then round its rows
    ///
    /// Rows are nodes. Every GPU collects the blocks of its rail, then a ring inside every node passes them on. Few
    /// bytes and few rounds between nodes, on all NICs.
    pub ALLGATHER = Allgather "hierarchical" {
        cost: "ceil(log2 rows) + columns-1 rounds, S (p-1)/p bytes per rank",
        nodes: Needed,
        source: SOURCE,
        build: |shape| build(&ALLGATHER, shape),
    }

    /// round the rows of a grid, then along its columns
    ///
    /// Rows are nodes. A ring inside every node leaves each GPU the sums for its rail, which it sends along. Few
    /// bytes and few rounds between nodes, on all NICs.
    pub REDUCE_SCATTER = ReduceScatter "hierarchical" {
        cost: "columns-1 + ceil(log2 rows) rounds, S (p-1)/p bytes per rank",
        nodes: Needed,
        source: SOURCE,
        build: |shape| build(&REDUCE_SCATTER, shape),
    }
}

fn build(algorithm: &Algorithm, shape: &Shape) -> Result<Schedule> {
    let (columns, rows) = algorithm.nodes_of(shape)?;
    let mut b = Builder::new(algorithm.collective, shape);
    let data = b.buffer(Buffer::vector("output", shape.ranks));
    let nodes = Nodes {
        columns,
        rows,
        data,
    };
    if algorithm.collective.reduces() {
        nodes.round(&mut b, Phase::ReduceScatter);
        nodes.along(&mut b, Phase::ReduceScatter);
    } else {
        nodes.along(&mut b, Phase::Allgather);
        nodes.round(&mut b, Phase::Allgather);
    }
    b.finish()
}

/// GPUs of a node, nodes, and the vector in a block per rank.
struct Nodes {
    columns: u32,
    rows: u32,
    data: Slot,
}

impl Nodes {
    /// Send the blocks of GPU `column` of `nodes`.
    fn send(
        &self,
        b: &mut Builder,
        (from, to): (u32, u32),
        column: u32,
        nodes: &[u32],
        phase: Phase,
        lane: u8,
    ) {
        let blocks: Vec<u32> = nodes
            .iter()
            .map(|node| node * self.columns + column)
            .collect();
        let written = b
            .put_blocks(from, self.data, to, self.data, &blocks)
            .lane(lane);
        if phase == Phase::ReduceScatter {
            written.reduce();
        }
    }

    /// Along every rail.
    fn along(&self, b: &mut Builder, phase: Phase) {
        let mut rounds = pat::rounds(self.rows);
        // Backwards, a node returns what the allgather would have brought it.
        let adds = phase == Phase::ReduceScatter;
        if adds {
            rounds.reverse();
        }
        for (way, behind) in rounds {
            b.step();
            for node in 0..self.rows {
                let ahead = (node + way) % self.rows;
                let mut owners: Vec<u32> = behind
                    .iter()
                    .map(|x| (node + self.rows - x) % self.rows)
                    .collect();
                owners.sort_unstable();
                let (from, to) = if adds { (ahead, node) } else { (node, ahead) };
                for column in 0..self.columns {
                    let ends = (from * self.columns + column, to * self.columns + column);
                    self.send(b, ends, column, &owners, phase, 0);
                }
            }
        }
    }

    /// Round the ring of every node.
    fn round(&self, b: &mut Builder, phase: Phase) {
        let p = self.columns;
        let all: Vec<u32> = (0..self.rows).collect();
        for s in 0..p - 1 {
            b.step();
            for node in 0..self.rows {
                for k in 0..p {
                    let ends = (node * p + k, node * p + (k + 1) % p);
                    self.send(b, ends, (k + sent(p, s, phase)) % p, &all, phase, 1);
                }
            }
        }
    }
}
