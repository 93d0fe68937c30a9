//! PAT, parallel aggregated trees: every block goes along a binomial tree of its own, far branches first.
//!
//! ```text
//!   p = 8, the block of rank 0     0 -> 4     0 -> 2, 4 -> 6     0 -> 1, 2 -> 3, 4 -> 5, 6 -> 7
//!   the block of rank r            the same, r further on; all blocks that go one way share a message
//!
//!   allgather        way 4, 2, 1:  rank r sends to r + way the blocks of r - x, x = 0, 2 way, 4 way, ...
//!   reduce_scatter   backwards:    way 1, 2, 4, sums flow up the trees
//! ```
//!
//! The rounds and bytes of Bruck's algorithm, for any number of ranks, with its ways in reverse: one block goes
//! far and many go near, which spares the upper levels of a fat tree. NCCL uses it with one GPU per node; for
//! nodes of several, [`super::hierarchical_blocks`] has the same rounds between nodes.
//!
//! NCCL bounds its buffers: it sends large blocks in pieces along their trees, one part of the branches after
//! another. Slices (transform `pipeline`) come near to that; here a message takes all blocks that go its way.
//!
//! The same allgather has been published for MPI as Sparbit, stripe parallel binomial trees.

use crate::collectives::prelude::*;

const SOURCE: &str =
    "Jeaugey, \"PAT: a new algorithm for all-gather and reduce-scatter operations at scale\" (2025); Loch and \
     Koslovski, \"Sparbit: a new logarithmic-cost and data locality-aware MPI allgather algorithm\" (SBAC-PAD 2021)";

algorithm! {
    /// every block goes along a shifted binomial tree, far branches first
    ///
    /// NCCL's parallel aggregated trees: few rounds for any number of ranks, and most bytes go near. For small
    /// blocks on many nodes of one GPU. MPI knows it as Sparbit.
    pub ALLGATHER = Allgather "pat" {
        cost: "ceil(log2 p) rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: allgather,
        build: |shape| allgather(shape)?.expand(),
    }

    /// every block is summed up along a shifted binomial tree, near branches first
    ///
    /// NCCL's parallel aggregated trees: few rounds for any number of ranks, and most bytes go near. For small
    /// blocks on many nodes of one GPU.
    pub REDUCE_SCATTER = ReduceScatter "pat" {
        cost: "ceil(log2 p) rounds, S (p-1)/p bytes per rank",
        source: SOURCE,
        program: reduce_scatter,
        build: |shape| reduce_scatter(shape)?.expand(),
    }
}

/// The ways of an allgather over `p` ranks, with how far behind the sender the owners of the blocks are.
pub(super) fn rounds(p: u32) -> Vec<(u32, Vec<u32>)> {
    let ways = (0..p.next_power_of_two().ilog2()).rev().map(|k| 1 << k);
    let round = |way: u32| (way, (0..p - way).step_by(2 * way as usize).collect());
    ways.map(round).collect()
}

fn allgather(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::Allgather, shape, Group::cyclic(p))?;
    let data = b.relative("output");
    for (way, behind) in rounds(p) {
        b.step();
        b.put_blocks(data, way, data, &ahead(p, behind, 0));
    }
    Ok(b)
}

fn reduce_scatter(shape: &Shape) -> Result<Program> {
    let p = shape.ranks;
    let mut b = Program::new(Collective::ReduceScatter, shape, Group::cyclic(p))?;
    let data = b.relative("output");
    for (way, behind) in rounds(p).into_iter().rev() {
        b.step();
        // Back goes what the allgather would have brought: the sender sees it `way` further behind.
        b.put_blocks(data, p - way, data, &ahead(p, behind, way))
            .reduce();
    }
    Ok(b)
}

/// The blocks of ranks that are `behind` and `way` more, in the coordinates of a program, ascending.
fn ahead(p: u32, behind: Vec<u32>, way: u32) -> Vec<u32> {
    let mut blocks: Vec<u32> = behind.iter().map(|x| (p - x - way) % p).collect();
    blocks.sort_unstable();
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_messages_are_small() {
        assert_eq!(
            rounds(8),
            [(4, vec![0]), (2, vec![0, 4]), (1, vec![0, 2, 4, 6])]
        );
        // Of 6 ranks, two are not 4 further on from anyone but through the end of the ring.
        assert_eq!(rounds(6), [(4, vec![0]), (2, vec![0]), (1, vec![0, 2, 4])]);
    }
}
