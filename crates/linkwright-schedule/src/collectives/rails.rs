//! Alltoall over rails: what goes to one rail of another node is collected on the GPU of that rail.
//!
//! ```text
//!   rows of the grid are nodes, columns their GPUs, which have a NIC each: GPU c of all nodes is rail c
//!
//!   1  GPU g hands GPU c of its node the blocks for all GPUs c of other nodes     inside the node
//!   2  GPU c sends node m the blocks that all GPUs of its node have for GPU c there: one message
//! ```
//!
//! A GPU sends one message to each other node instead of one to each other GPU, and all of them stay on its own
//! rail, which crosses no spine; the price is a second way inside the node. Known from NCCL as PXN, proxies that
//! cross NVLink. Blocks for the own node go straight.

use crate::collectives::prelude::*;

algorithm! {
    /// blocks gather on the GPU of their rail, then cross to the other nodes in one message each
    ///
    /// Few messages between nodes, each on its own rail (PXN): for clusters whose GPUs have a NIC each, and for
    /// small blocks. Rows of the grid are nodes.
    pub ALLTOALL = Alltoall "rails" {
        cost:
            "2 rounds of columns-1 and rows-1 messages; S (rows-1)/rows bytes per rank between nodes and as many more \
             inside",
        nodes: Needed,
        source: "NVIDIA, \"Doubling all2all performance with NVIDIA Collective Communication Library 2.12\" (2022)",
        build: build,
    }
}

/// GPUs of a node, nodes, and the buffers; `rail` has the blocks that a rank is to send over its rail, node by node.
struct Nodes {
    columns: u32,
    rows: u32,
    input: Slot,
    output: Slot,
    rail: Slot,
}

fn build(shape: &Shape) -> Result<Schedule> {
    let (columns, rows) = ALLTOALL.nodes_of(shape)?;
    let p = shape.ranks;
    let mut b = Builder::new(Collective::Alltoall, shape);
    let nodes = Nodes {
        columns,
        rows,
        input: b.buffer(Buffer::vector("input", p)),
        output: b.buffer(Buffer::vector("output", p)),
        rail: b.buffer(Buffer::vector("rail", p)),
    };
    b.step();
    for ahead in 0..columns {
        nodes.inside(&mut b, ahead);
    }
    b.step();
    for ahead in 1..rows {
        nodes.between(&mut b, ahead);
    }
    b.finish()
}

impl Nodes {
    /// Every GPU hands the one `ahead` of it the block for itself, and those for its rail.
    fn inside(&self, b: &mut Builder, ahead: u32) {
        for from in 0..self.columns * self.rows {
            let (node, gpu) = (from / self.columns, from % self.columns);
            let to_gpu = (gpu + ahead) % self.columns;
            let to = node * self.columns + to_gpu;
            let others = (0..self.rows).filter(|&other| other != node);
            let relayed: Vec<_> = others
                .map(|other| (other * self.columns + to_gpu, other * self.columns + gpu, 1))
                .collect();
            if ahead == 0 {
                b.local(from, self.input.at(from), self.output.at(from));
                b.local_runs(from, self.input, self.rail, &relayed);
            } else {
                b.put(from, self.input.at(to), to, self.output.at(from));
                b.put_runs(from, self.input, to, self.rail, &relayed);
            }
        }
    }

    /// Every GPU sends the node `ahead` what was collected for its rail there.
    fn between(&self, b: &mut Builder, ahead: u32) {
        for from in 0..self.columns * self.rows {
            let (node, gpu) = (from / self.columns, from % self.columns);
            let to_node = (node + ahead) % self.rows;
            let collected = self.rail.chunks(to_node * self.columns, self.columns);
            let placed = self.output.chunks(node * self.columns, self.columns);
            b.put(from, collected, to_node * self.columns + gpu, placed)
                .lane(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_exchange_along_rails_only() {
        let schedule = build(&Shape::new(12, 12).with_grid(4, 3)).unwrap();
        let between = |op: &&crate::ir::Op| op.is_message() && op.from / 4 != op.to / 4;
        let crossing: Vec<_> = schedule.ops().iter().filter(between).collect();
        assert_eq!(crossing.len(), 12 * 2);
        assert!(crossing
            .iter()
            .all(|op| op.from % 4 == op.to % 4 && op.count == 4));
    }
}
