//! Hierarchical allreduce: inside the nodes, across them, inside again.
//!
//! ```text
//!   rows are nodes, columns the devices of a node; the vector in as many blocks as columns
//!
//!   1  reduce-scatter round a ring in every node     column c holds block c of its node
//!   2  allreduce of block c along column c           all columns at once, each on its own
//!   3  allgather round a ring in every node          everyone holds everything
//! ```
//!
//! What leaves a node is S instead of the S x columns that its devices began with, and every device sends its
//! share of it, so a node with a port for each device uses all of them. Along a column of 2^k nodes pieces halve
//! from partner to partner and come back doubling, near partners first; any other number of nodes goes round a ring.
//!
//! ```text
//!   node n keeps, of halves in step i, the lower where bit i of n is 0      partner n XOR 2^i
//! ```
//!
//! so that what is sent is one run of memory.

use crate::collectives::prelude::*;
use std::ops::Range;

algorithm! {
    /// within the rows of a grid, along its columns, within the rows again
    ///
    /// Rows are nodes. A ring within every node leaves each device one block, the devices of a column reduce it
    /// across the nodes, and a second ring spreads it. Few bytes between nodes, and few rounds.
    pub ALGORITHM = Allreduce "hierarchical" {
        cost: "2(columns-1) + 2 log2 rows rounds, 2 S (p-1)/p bytes per rank",
        nodes: Needed,
        source:
            "Jia and others, \"Highly scalable deep learning training system with mixed-precision\" (2018), section \
             3.3, for the three phases; Thakur, Rabenseifner and Gropp, \"Optimization of collective communication \
             operations in MPICH\" (IJHPCA 2005), for the second",
        build: build,
    }
}

/// Devices of a node, nodes, and the buffer in columns x rows pieces.
struct Nodes {
    columns: u32,
    rows: u32,
    data: Slot,
}

fn build(shape: &Shape) -> Result<Schedule> {
    let (columns, rows) = ALGORITHM.nodes_of(shape)?;
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", columns * rows));
    let nodes = Nodes {
        columns,
        rows,
        data,
    };
    nodes.inside(&mut b, true);
    match rows.is_power_of_two() {
        true => nodes.halve_and_double(&mut b),
        false => nodes.rings_across(&mut b),
    }
    nodes.inside(&mut b, false);
    b.finish()
}

impl Nodes {
    /// Pieces of block `column`.
    fn send(
        &self,
        b: &mut Builder,
        from: u32,
        to: u32,
        column: u32,
        pieces: Range<u32>,
        add: bool,
    ) {
        let first = column * self.rows;
        let chunks = self.data.range(first + pieces.start..first + pieces.end);
        let written = b.put(from, chunks, to, chunks);
        if add {
            written.reduce();
        }
    }

    /// Once round the ring of every node: reduce-scatter, or allgather of what that leaves.
    fn inside(&self, b: &mut Builder, add: bool) {
        let p = self.columns;
        for s in 0..p - 1 {
            b.step();
            for node in 0..self.rows {
                for k in 0..p {
                    let block = (k + p - s - u32::from(add)) % p;
                    let (from, to) = (node * p + k, node * p + (k + 1) % p);
                    self.send(b, from, to, block, 0..self.rows, add);
                }
            }
        }
    }

    /// The pieces that are a node's own before step `step` of halving.
    fn own(&self, node: u32, step: u32) -> Range<u32> {
        let start = (0..step)
            .map(|i| (node >> i & 1) * (self.rows >> (i + 1)))
            .sum::<u32>();
        start..start + (self.rows >> step)
    }

    fn halve_and_double(&self, b: &mut Builder) {
        let steps = self.rows.ilog2();
        let halving = (0..steps).map(|step| (step, true));
        for (step, add) in halving.chain((0..steps).rev().map(|step| (step, false))) {
            b.step();
            for node in 0..self.rows {
                let partner = node ^ 1 << step;
                let keeper = if add { partner } else { node };
                for column in 0..self.columns {
                    let rank = |node: u32| node * self.columns + column;
                    let pieces = self.own(keeper, step + 1);
                    self.send(b, rank(node), rank(partner), column, pieces, add);
                }
            }
        }
    }

    fn rings_across(&self, b: &mut Builder) {
        let p = self.rows;
        for (add, s) in [true, false]
            .iter()
            .flat_map(|&add| (0..p - 1).map(move |s| (add, s)))
        {
            b.step();
            for node in 0..p {
                let piece = (node + p - s - u32::from(add)) % p;
                for column in 0..self.columns {
                    let rank = |node: u32| node % p * self.columns + column;
                    self.send(b, rank(node), rank(node + 1), column, piece..piece + 1, add);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ScheduleError;
    use crate::verify;

    #[test]
    fn right_for_any_grid() {
        for (columns, rows) in [
            (1, 1),
            (1, 8),
            (8, 1),
            (2, 2),
            (3, 4),
            (4, 8),
            (8, 4),
            (5, 3),
            (3, 7),
        ] {
            for elements in [0, 5, 1000] {
                let shape = Shape::new(columns * rows, elements).with_grid(columns, rows);
                verify(&build(&shape).unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn a_line_is_waived() {
        let waived = build(&Shape::new(8, 8)).unwrap_err();
        assert!(matches!(waived, ScheduleError::Waived { .. }));
        assert!(waived.to_string().contains("use a grid"), "{waived}");
    }
}
