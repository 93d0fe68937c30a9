//! Hierarchical broadcast and reduce: a part of the vector on each rail.
//!
//! ```text
//!   rows of the grid are nodes, columns their GPUs, which have a NIC each: GPU c of all nodes is rail c
//!
//!   broadcast   1  the root hands part c of its vector to GPU c of its node
//!               2  part c along rail c, a binomial tree over the nodes
//!               3  allgather round a ring inside every node
//!   reduce      the same backwards, adding
//! ```
//!
//! S/columns bytes pass each NIC instead of S through one. The three phases have lanes of their own, so that
//! slices (transform `pipeline`) overlap.

use crate::collectives::common::ring::sent;
use crate::collectives::common::tree::binomial;
use crate::collectives::common::Phase;
use crate::collectives::prelude::*;

const SOURCE: &str =
    "Jia and others, \"Highly scalable deep learning training system with mixed-precision\" (2018), section 3.3, for \
     rails; Thakur, Rabenseifner and Gropp, \"Optimization of collective communication operations in MPICH\" (IJHPCA \
     2005), for the tree";

algorithm! {
    /// parts of the vector along the columns of a grid, then round its rows
    ///
    /// Rows are nodes. Every GPU of the root's node sends its part along its rail, and rings inside the nodes put
    /// the parts together: all NICs work.
    pub BROADCAST = Broadcast "hierarchical" {
        cost: "columns-1 + log2 rows rounds after the root's columns-1 messages; S log2(rows) / columns bytes per NIC",
        nodes: Needed,
        source: SOURCE,
        build: |shape| build(&BROADCAST, shape),
    }

    /// round the rows of a grid, then part by part along its columns to the root's row
    ///
    /// Rows are nodes. Rings inside the nodes leave each GPU a part, which it sends along its rail; the root
    /// collects the parts of its node: all NICs work.
    pub REDUCE = Reduce "hierarchical" {
        cost: "columns-1 + log2 rows rounds before the columns-1 messages to the root; S/columns bytes per NIC",
        nodes: Needed,
        source: SOURCE,
        build: |shape| build(&REDUCE, shape),
    }
}

fn build(algorithm: &Algorithm, shape: &Shape) -> Result<Schedule> {
    let (columns, rows) = algorithm.nodes_of(shape)?;
    let mut b = Builder::new(algorithm.collective, shape);
    let data = b.buffer(Buffer::vector("output", columns));
    let nodes = Nodes {
        columns,
        rows,
        root: shape.root,
        data,
    };
    if algorithm.collective.reduces() {
        nodes.round(&mut b, Phase::ReduceScatter);
        nodes.along(&mut b, Phase::ReduceScatter);
        nodes.at_the_root(&mut b, Phase::ReduceScatter);
    } else {
        nodes.at_the_root(&mut b, Phase::Allgather);
        nodes.along(&mut b, Phase::Allgather);
        nodes.round(&mut b, Phase::Allgather);
    }
    b.finish()
}

/// GPUs of a node, nodes, and the vector in a part per GPU.
struct Nodes {
    columns: u32,
    rows: u32,
    root: u32,
    data: Slot,
}

impl Nodes {
    /// The root hands the parts to its node, or backwards collects them.
    fn at_the_root(&self, b: &mut Builder, phase: Phase) {
        let first = self.root - self.root % self.columns;
        b.step();
        for (column, gpu) in (first..first + self.columns)
            .enumerate()
            .filter(|pair| pair.1 != self.root)
        {
            let part = self.data.at(column as u32);
            match phase {
                Phase::Allgather => b.put(self.root, part, gpu, part),
                Phase::ReduceScatter => b.put(gpu, part, self.root, part),
            };
        }
    }

    /// Every part along its rail, from the root's node or to it.
    fn along(&self, b: &mut Builder, phase: Phase) {
        let mut tree = binomial(self.rows, self.root / self.columns);
        if phase == Phase::ReduceScatter {
            tree.reverse();
        }
        for round in tree {
            b.step();
            for branch in round {
                for column in 0..self.columns {
                    let part = self.data.at(column);
                    let rank = |node: u32| node * self.columns + column;
                    let (parent, child) = (rank(branch.parent), rank(branch.child));
                    match phase {
                        Phase::Allgather => b.put(parent, part, child, part).lane(1),
                        Phase::ReduceScatter => b.put(child, part, parent, part).reduce().lane(1),
                    };
                }
            }
        }
    }

    /// Round the ring of every node; what the root has it need not be told.
    fn round(&self, b: &mut Builder, phase: Phase) {
        let p = self.columns;
        for s in 0..p - 1 {
            b.step();
            for from in 0..p * self.rows {
                let (node, k) = (from / p, from % p);
                let (to, part) = (
                    node * p + (k + 1) % p,
                    self.data.at((k + sent(p, s, phase)) % p),
                );
                match phase {
                    Phase::ReduceScatter => b.put(from, part, to, part).reduce().lane(2),
                    Phase::Allgather if to == self.root => continue,
                    Phase::Allgather => b.put(from, part, to, part).lane(2),
                };
            }
        }
    }
}
