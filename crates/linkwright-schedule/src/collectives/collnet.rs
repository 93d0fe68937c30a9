//! CollNet: the network combines what the heads of the nodes send, and returns it to them.
//!
//! ```text
//!   rows of the grid are nodes, columns their GPUs; without a grid every rank is a node
//!
//!   collnet_direct   1  in every node, part g of everyone straight to GPU g, which adds
//!                    2  the network combines part g of all GPUs g, for all of them
//!                    3  in every node, GPU g sends part g straight to everyone
//!   collnet_chain    the same, but in 1 and 3 along a chain that ends and begins at the head of its rail;
//!                    rails as in [`super::double_binary_tree`]
//! ```
//!
//! The network sees each part once up and once down per node, S bytes in all, where a ring has nearly 2 S, and the
//! rounds between nodes do not grow with them. It needs switches that combine, such as InfiniBand with SHARP.
//! Every stream has its own lane, so that slices (`pipeline`) overlap.

use crate::collectives::common::direct::{self, Cut, Group};
use crate::collectives::common::forest::{self, First, Lanes};
use crate::collectives::common::nodes::{chain, Nodes};
use crate::collectives::prelude::*;

algorithm! {
    /// parts straight to their heads, combined by the network, straight to everyone
    ///
    /// Reduction inside the network (SHARP) between nodes, exchanges between all pairs inside them. Few rounds, and
    /// half of a ring's bytes between nodes.
    pub DIRECT = Allreduce "collnet_direct" {
        cost: "3 rounds, S/columns bytes between nodes and 2 S (columns-1)/columns inside per rank",
        source:
            "Graham and others, \"Scalable Hierarchical Aggregation Protocol (SHArP): a hardware architecture for \
             efficient data reduction\" (COMHPC 2016); NVIDIA, NCCL 2.14",
        build: direct,
    }

    /// chains inside the nodes, whose heads the network combines
    ///
    /// Reduction inside the network (SHARP) between nodes, a chain inside each node, in turn for every rail. Half
    /// of a ring's bytes between nodes; to be cut into slices. Given rings, there is a rail for each.
    pub CHAIN = Allreduce "collnet_chain" {
        cost: "2 columns - 1 rounds, S/columns bytes between nodes and 2 S (columns-1)/columns inside per rank",
        source:
            "Graham and others, \"Scalable Hierarchical Aggregation Protocol (SHArP): a hardware architecture for \
             efficient data reduction\" (COMHPC 2016); NVIDIA, NCCL 2.6",
        build: chains,
    }
}

/// Most GPUs of a node for which contributions have places that suit vectors of any length. They have as many
/// chunks as GPUs squared; beyond, a schedule resized to a vector that does not divide is refused.
const RESIZABLE: u32 = 16;

fn direct(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let nodes = Nodes::each(shape);
    let mut b = Builder::new(Collective::Allreduce, shape);
    let cut = Cut {
        data: b.buffer(Buffer::vector("output", nodes.columns)),
        chunks: nodes.columns,
        even: nodes.columns > RESIZABLE && shape.elements % u64::from(nodes.columns) == 0,
    };
    let group = |row: u32| Group {
        members: nodes.node(row),
        blocks: (0..nodes.columns)
            .map(|column| column..column + 1)
            .collect(),
    };
    let groups: Vec<Group> = (0..nodes.rows).map(group).collect();
    let mut lanes = Lanes::new(shape.ranks);
    direct::reduce(&mut b, cut, "from_node", &groups, &mut lanes);
    let heads = (0..nodes.columns).map(|column| nodes.rail(column));
    between(&mut b, cut.data, heads, &mut lanes);
    direct::spread(&mut b, cut, &groups, &mut lanes);
    b.finish()
}

fn chains(shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let rails = Nodes::each(shape).chains(shape);
    let chunks = rails.len() as u32;
    let mut b = Builder::new(Collective::Allreduce, shape);
    let data = b.buffer(Buffer::vector("output", chunks));
    let trees: Vec<_> = (0..chunks)
        .zip(&rails)
        .flat_map(|(chunk, rail)| rail.iter().map(move |ranks| chain(ranks, chunk)))
        .collect();
    let mut lanes = Lanes::new(shape.ranks);
    forest::up(&mut b, data, chunks, &trees, First::Added, &mut lanes);
    let heads = rails
        .iter()
        .map(|rail| rail.iter().map(|chain| chain[0]).collect());
    between(&mut b, data, heads, &mut lanes);
    forest::down(&mut b, data, &trees, &mut lanes);
    b.finish()
}

/// The network combines chunk i of the i-th of `heads`.
fn between(b: &mut Builder, data: Slot, heads: impl Iterator<Item = Vec<u32>>, lanes: &mut Lanes) {
    b.step();
    for (chunk, heads) in (0..).zip(heads).filter(|rail| rail.1.len() > 1) {
        let part = data.at(chunk);
        b.aggregate(&heads, part, &heads, part)
            .lane(lanes.next(heads[0]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::OpKind;
    use crate::transforms::{pipeline, resized};
    use crate::verify;

    #[test]
    fn direct_exchanges_can_be_resized() {
        let schedule = direct(&Shape::new(16, 1024).with_grid(8, 2)).unwrap();
        for elements in [0, 2, 1023] {
            verify(&resized(&schedule, elements, 4).unwrap()).unwrap();
        }
    }

    #[test]
    fn the_network_combines_once_a_rail() {
        for algorithm in [&DIRECT, &CHAIN] {
            let schedule = (algorithm.build)(&Shape::new(12, 240).with_grid(4, 3)).unwrap();
            let combined = |op: &&crate::ir::Op| op.kind == OpKind::Aggregate;
            assert_eq!(schedule.ops().iter().filter(combined).count(), 4);
            let put = schedule.ops().iter().filter(|op| op.kind == OpKind::Put);
            assert!(put.clone().all(|op| op.from / 4 == op.to / 4));
            verify(&pipeline(&schedule, 5).unwrap()).unwrap();
        }
    }
}
