//! Counts of every algorithm, each derived by hand: rounds, messages, bytes and notices.

use super::*;
use crate::aggregations::gather_and_put;
use crate::ir::{Op, OpKind};
use crate::own_scratch::own_scratch;
use crate::verify::verify;
use std::collections::BTreeSet;

type Row = (&'static str, Shape, usize, usize, (u64, u64), usize);

/// Key, shape, rounds with data, messages, least and most bytes that leave a rank, notices.
///
/// Vectors of 640 elements have S = 2560 bytes and, over 64 ranks, blocks of 40: S (p-1)/p = 2520.
/// Where blocks are halved, each message but a rank's first waits for a notice that the partner has
/// read what it replaces: 5 x 64 over 64 ranks.
fn table() -> Vec<Row> {
    let line = Shape::new;
    let grid = |c: u32, r: u32, n: u64| Shape::new(c * r, n).with_grid(c, r);
    let two_rings = vec![vec![0, 1, 2, 3], vec![0, 3, 2, 1]];
    let two_rings = Shape::new(4, 10).with_root(2).with_rings(two_rings);
    #[rustfmt::skip] // one line a row
    let rows = vec![
        ("allreduce/ring", line(64, 640), 2 * 63, 126 * 64, (5040, 5040), 0),
        ("allreduce/hamiltonian_ring", grid(8, 8, 640), 126, 126 * 64, (5040, 5040), 0),
        ("allreduce/hamiltonian_rings", grid(8, 8, 640), 126, 126 * 64 * 2, (5040, 5040), 0),
        ("allreduce/hamiltonian_rings_bidirectional", grid(8, 8, 2560), 126, 126 * 64 * 4, (20160, 20160), 0),
        ("allreduce/recursive_doubling_latency", line(64, 640), 6, 6 * 64, (6 * 2560, 6 * 2560), 320),
        ("allreduce/recursive_doubling_latency", grid(8, 8, 640), 6, 6 * 64, (6 * 2560, 6 * 2560), 320),
        // Three surplus ranks fold: two rounds of 3 messages besides 3 of 8.
        ("allreduce/recursive_doubling_latency", line(11, 1), 3 + 2, 24 + 6, (4, 16), 16),
        // A fold along either axis, before and after the 2 x 2 core.
        ("allreduce/recursive_doubling_latency", grid(3, 3, 1), 2 + 4, 8 + 2 * (3 + 2), (4, 16), 5),
        ("allreduce/recursive_doubling_bandwidth", line(64, 640), 12, 12 * 64, (5040, 5040), 320),
        ("allreduce/recursive_doubling_bandwidth", grid(8, 8, 640), 12, 12 * 64, (5040, 5040), 320),
        ("allreduce/swing_latency", grid(8, 8, 640), 6, 6 * 64, (6 * 2560, 6 * 2560), 320),
        ("allreduce/swing_bandwidth", line(64, 640), 12, 12 * 64, (5040, 5040), 320),
        ("allreduce/swing_bandwidth", grid(8, 8, 640), 12, 12 * 64, (5040, 5040), 320),
        ("allreduce/bine_bandwidth", line(64, 640), 12, 12 * 64, (5040, 5040), 320),
        ("allreduce/bine_bandwidth", grid(8, 8, 640), 12, 12 * 64, (5040, 5040), 320),
        // Four copies at a time, and no notice.
        ("allreduce/swing_multiport_latency", grid(8, 8, 640), 6, 6 * 64 * 4, (6 * 2560, 6 * 2560), 0),
        ("allreduce/swing_multiport_bandwidth", grid(8, 8, 2560), 12, 12 * 64 * 4, (20160, 20160), 0),
        // Along each of 3 lines a pair exchanges, and the third place with both: 2 + 4 messages a step.
        ("allreduce/swing_multiport_bandwidth", grid(3, 3, 36), 4, 4 * 4 * 3 * 6, (256, 256), 0),
        ("allreduce/mirrored_doubling_latency", grid(8, 8, 640), 6, 6 * 64 * 4, (6 * 2560, 6 * 2560), 0),
        // Folds of 3 + 2 places in and out, and two exchanges among 4. Parts have 36 bytes: (1, 2)
        // is surplus once in each of four copies, (0, 0) acts for two and exchanges twice in each.
        ("allreduce/mirrored_doubling_latency", grid(3, 3, 36), 2 + 4, 4 * (2 * 5 + 2 * 4), (144, 576), 0),
        ("allreduce/mirrored_doubling_bandwidth", grid(8, 8, 2560), 12, 12 * 64 * 4, (20160, 20160), 0),
        ("allreduce/bucket_multiport", grid(8, 8, 2560), 28, 28 * 64 * 4, (20160, 20160), 0),
        ("allreduce/bucket_multiport", grid(4, 3, 96), 10, 10 * 12 * 4, (704, 704), 0),
        // Barriers order everything between ranks, here and among all pairs.
        ("allreduce/shared_memory", line(64, 640), 1 + 64 + 2, 64 + 64 * 64 + 64 + 64, (2600, 2600), 0),
        ("allreduce/all_pairs", line(8, 64), 7 + 1, 2 * 8 * 7, (2 * 7 * 32, 2 * 7 * 32), 0),
        ("allreduce/one_shot", line(8, 64), 1, 8 * 7, (7 * 256, 7 * 256), 0),
        ("allreduce/two_shot", line(8, 64), 2, 2 * 8 * 7, (2 * 7 * 32, 2 * 7 * 32), 0),
        // Three of a row, then the other row, in sixths of 96 bytes: 2 (2 x 2 + 1) of them.
        ("allreduce/two_shot", grid(3, 2, 24), 4, 2 * 6 * (2 + 1), (2 * 5 * 16, 2 * 5 * 16), 0),
        ("allreduce/reduce_broadcast", line(1, 100), 0, 0, (0, 0), 0),
        ("allreduce/reduce_broadcast", line(2, 100), 2, 2, (400, 400), 0),
        ("allreduce/reduce_broadcast", line(5, 100), 6, 8, (400, 3 * 400), 2),
        ("allreduce/reduce_broadcast", line(64, 100), 12, 126, (400, 6 * 400), 31),
        // Of each tree, a rank sends S/2 to its parent and to each child: 2 of them where it is inside.
        ("allreduce/double_binary_tree", line(8, 640), 2 * 3, 2 * 2 * 7, (2560, 2 * 2560), 0),
        // A chain of 4 below each head: 1 + 3 rounds. Over the 4 rails, a rank sends 4 + 4 + 4 + 2 eighths.
        ("allreduce/double_binary_tree", grid(4, 2, 640), 2 * 4, 4 * 2 * 2 * 7, (4480, 4480), 0),
        // S (n+1)/n in a node of n, and a part for the network, whose initiators two other nodes of a rail tell.
        ("allreduce/nvls", line(1, 64), 0, 0, (0, 0), 0),
        ("allreduce/nvls", line(8, 64), 2, 2 * 8, (256 + 32, 256 + 32), 0),
        ("allreduce/nvls", grid(4, 3, 12), 3, 12 + 4 + 12, (48 + 12 + 12, 48 + 12 + 12), 8),
        ("allreduce/one_shot_multimem", line(8, 64), 1, 8, (8 * 256, 8 * 256), 0),
        // Halves of 12 bytes: 2 levels of trees over 3 nodes, whose heads send 3, 2 and 3.
        ("allreduce/nvls_tree", grid(4, 3, 24), 2 + 4, 24 + 8 * 2 * 2 + 24, (96 + 24 + 24, 96 + 24 + 36), 0),
        ("allreduce/collnet_direct", grid(4, 3, 12), 3, 36 + 4 + 36, (36 + 12 + 36, 36 + 12 + 36), 8),
        ("allreduce/collnet_chain", grid(4, 3, 12), 3 + 1 + 3, 36 + 4 + 36, (36 + 12 + 36, 36 + 12 + 36), 8),
        ("allreduce/collnet_chain", line(5, 10), 1, 1, (40, 40), 0),
        // 2 S (p-1)/p with S = 25600 B, then 9600 B.
        ("allreduce/hierarchical", grid(4, 16, 6400), 3 + 8 + 3, 14 * 64, (50400, 50400), 4 * 64),
        ("allreduce/hierarchical", grid(4, 6, 2400), 3 + 10 + 3, 16 * 24, (18400, 18400), 24),
        ("reduce_scatter/ring", line(64, 640), 63, 63 * 64, (2520, 2520), 0),
        ("reduce_scatter/recursive_halving", line(64, 640), 6, 6 * 64, (2520, 2520), 320),
        ("reduce_scatter/recursive_halving", grid(8, 8, 640), 6, 6 * 64, (2520, 2520), 320),
        ("reduce_scatter/recursive_halving", line(5, 5), 1 + 2 + 1, 1 + 8 + 1, (16, 20), 5),
        ("reduce_scatter/swing", line(64, 640), 6, 6 * 64, (2520, 2520), 320),
        ("reduce_scatter/swing", grid(8, 8, 640), 6, 6 * 64, (2520, 2520), 320),
        ("reduce_scatter/swing", line(5, 5), 1 + 2 + 1, 1 + 8 + 1, (16, 20), 5),
        // All but four ranks own a block of another.
        ("reduce_scatter/bine", line(64, 640), 6 + 1, 6 * 64 + 60, (2520, 2560), 320 + 9),
        ("reduce_scatter/bine", line(5, 5), 1 + 2 + 1, 1 + 8 + 4, (16, 20), 5),
        // All but the first contribution wait until the owner has the one before.
        ("reduce_scatter/pairwise", line(33, 330), 32, 33 * 32, (32 * 40, 32 * 40), 33 * 31),
        // All but a rank's first message wait until what arrived before has been added.
        ("reduce_scatter/pat", line(64, 640), 6, 6 * 64, (2520, 2520), 320),
        ("reduce_scatter/pat", line(5, 5), 3, 3 * 5, (4 * 4, 4 * 4), 10),
        // Once round 4 with bundles of 3 blocks of 4 bytes, then two rounds over 3 nodes: 1 + 1 blocks.
        ("reduce_scatter/hierarchical", grid(4, 3, 12), 3 + 2, 12 * (3 + 2), (44, 44), 2 * 12),
        ("reduce_scatter/nvls", line(64, 640), 1, 64, (2560, 2560), 0),
        // Blocks of 4 bytes: a source of 4 x 3 aggregations, then two steps of the ring.
        ("reduce_scatter/nvls", grid(4, 3, 12), 3 + 2, 36 + 24, (48 + 8, 48 + 8), 0),
        // Between the axes each rank tells the one before it on x that what it had has gone along y.
        ("reduce_scatter/bucket", grid(4, 3, 120), 3 + 2, 5 * 12, (11 * 40, 11 * 40), 12),
        ("allgather/ring", line(64, 640), 63, 63 * 64, (2520, 2520), 0),
        ("allgather/recursive_doubling", line(64, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/recursive_doubling", grid(8, 8, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/recursive_doubling", line(5, 5), 1 + 2 + 1, 1 + 8 + 1, (4, 36), 0),
        ("allgather/swing", line(64, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/swing", grid(8, 8, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/swing", line(5, 5), 1 + 2 + 1, 1 + 8 + 1, (4, 36), 0),
        ("allgather/bine", line(64, 640), 1 + 6, 60 + 6 * 64, (2520, 2560), 0),
        ("allgather/bine_two_runs", line(64, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/bine_two_runs", grid(8, 8, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/bine_two_runs", line(5, 5), 1 + 2 + 1, 1 + 8 + 1, (4, 36), 0),
        // Three steps along x with a block, two along y with four: 3 + 2 x 4 blocks of 40 bytes.
        ("allgather/bucket", grid(4, 3, 120), 3 + 2, 5 * 12, (11 * 40, 11 * 40), 0),
        ("allgather/bucket", line(5, 50), 4, 4 * 5, (4 * 40, 4 * 40), 0),
        ("allgather/bruck", line(1, 10), 0, 0, (0, 0), 0),
        ("allgather/bruck", line(2, 20), 1, 2, (40, 40), 0),
        ("allgather/bruck", line(5, 50), 3, 3 * 5, (4 * 40, 4 * 40), 0),
        ("allgather/bruck", line(33, 330), 6, 6 * 33, (32 * 40, 32 * 40), 0),
        ("allgather/bruck", line(64, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/neighbor_exchange", line(64, 640), 32, 32 * 64, (2520, 2520), 0),
        ("allgather/linear", line(33, 330), 1, 33 * 32, (32 * 40, 32 * 40), 0),
        ("allgather/pat", line(64, 640), 6, 6 * 64, (2520, 2520), 0),
        ("allgather/pat", line(5, 5), 3, 3 * 5, (4 * 4, 4 * 4), 0),
        ("allgather/hierarchical", grid(4, 3, 12), 2 + 3, 12 * (2 + 3), (44, 44), 0),
        ("allgather/nvls", line(64, 640), 1, 64, (40, 40), 0),
        ("allgather/nvls", grid(4, 3, 12), 3, 24 + 36, (8 + 12, 8 + 12), 0),
        ("broadcast/linear", line(64, 10).with_root(3), 1, 63, (0, 63 * 40), 0),
        ("broadcast/binomial", line(1, 10), 0, 0, (0, 0), 0),
        ("broadcast/binomial", line(2, 10).with_root(1), 1, 1, (0, 40), 0),
        ("broadcast/binomial", line(5, 10).with_root(4), 3, 4, (0, 3 * 40), 0),
        ("broadcast/binomial", line(64, 10).with_root(63), 6, 63, (0, 6 * 40), 0),
        // Leaves send only in the ring.
        ("broadcast/scatter_allgather", line(64, 640).with_root(5), 6 + 63, 63 + 63 * 64, (2520, 5040), 28),
        ("broadcast/bine", line(64, 10).with_root(63), 6, 63, (0, 6 * 40), 0),
        ("broadcast/bine", line(5, 10).with_root(4), 3, 4, (0, 3 * 40), 0),
        // The root scatters and doubles: 2 x 2520. Leaves of the tree only double.
        ("broadcast/bine_bandwidth", line(64, 640).with_root(5), 12, 63 + 6 * 64, (2520, 5040), 0),
        // Rank 0 acts for the root: blocks of 8 and three of 4 bytes; it scatters 8 + 4 and doubles 8 + 12.
        ("broadcast/bine_bandwidth", line(5, 5).with_root(4), 1 + 2 + 2, 1 + 3 + 8, (12, 32), 0),
        // Four trees with a quarter of 10240 bytes each; a rank sends to at most 6 in each.
        ("broadcast/bine_multiport", grid(8, 8, 2560), 6, 63 * 4, (0, 6 * 10240), 0),
        ("broadcast/binary_tree", line(11, 10).with_root(3), 3, 10, (0, 80), 0),
        // Seven others in trees of three levels below the root. Halves of 20 bytes; nobody sends more than two.
        ("broadcast/two_tree", line(8, 10).with_root(3), 1 + 3, 2 * 7, (20, 40), 0),
        ("broadcast/multicast", line(64, 10).with_root(3), 1, 1, (0, 40), 0),
        ("broadcast/ring", line(64, 10).with_root(3), 63, 63, (0, 40), 0),
        ("broadcast/ring", two_rings.clone(), 3, 6, (20, 40), 0),
        // Quarters of 4 bytes: the root hands out 3, sends 2 on its rail and 3 round its node.
        ("broadcast/hierarchical", grid(4, 3, 4).with_root(5), 1 + 2 + 3, 3 + 4 * 2 + 12 * 3 - 3, (8, 32), 0),
        ("reduce/linear", line(64, 10).with_root(3), 1, 63, (0, 40), 0),
        ("reduce/binomial", line(1, 10), 0, 0, (0, 0), 0),
        ("reduce/binomial", line(2, 10).with_root(1), 1, 1, (0, 40), 0),
        ("reduce/binomial", line(5, 10).with_root(4), 3, 4, (0, 40), 2),
        ("reduce/binomial", line(64, 10).with_root(63), 6, 63, (0, 40), 31),
        // The root sends only while halving, its first partner also half of the vector back.
        ("reduce/reduce_scatter_gather", line(64, 640).with_root(9), 12, 6 * 64 + 63, (2520, 2520 + 1280), 320),
        ("reduce/reduce_scatter_gather", line(5, 5), 1 + 2 + 2, 1 + 8 + 3, (12, 24), 5),
        ("reduce/reduce_scatter_gather", line(5, 5).with_root(4), 1 + 2 + 2 + 1, 1 + 8 + 3 + 1, (20, 32), 5),
        ("reduce/bine", line(64, 10).with_root(63), 6, 63, (0, 40), 31),
        ("reduce/bine", line(5, 10).with_root(4), 3, 4, (0, 40), 2),
        ("reduce/bine_bandwidth", line(64, 640).with_root(9), 12, 6 * 64 + 63, (2520, 2520 + 1280), 320),
        ("reduce/bine_multiport", grid(8, 8, 2560), 6, 63 * 4, (0, 10240), 0),
        ("reduce/binary_tree", line(11, 10).with_root(3), 3, 10, (0, 40), 0),
        ("reduce/two_tree", line(8, 10).with_root(3), 3 + 1, 2 * 7, (0, 40), 0),
        // Row 0: 3 to rank 0. Rows 1 and 2: 4 each to ranks 1 and 2, which send one each.
        ("reduce/by_rows", grid(4, 3, 1), 2, 3 + 4 + 4 + 2, (0, 8), 0),
        // 7 to rank 0, 8 to each of ranks 1..8, which send one each.
        ("reduce/by_rows", grid(8, 8, 5), 2, 7 + 7 * 8 + 7, (0, 40), 0),
        ("reduce/ring", line(64, 10).with_root(3), 63, 63, (0, 40), 0),
        ("reduce/ring", two_rings, 3, 6, (0, 40), 0),
        ("reduce/hierarchical", grid(4, 3, 4).with_root(5), 3 + 2 + 1, 12 * 3 + 4 * 2 + 3, (12, 16), 4 + 4),
        ("gather/linear", line(64, 640).with_root(3), 1, 63, (0, 40), 0),
        ("gather/linear", line(19_456, 19_456), 1, 19_455, (0, 4), 0),
        // The farthest relay brings 32 blocks.
        ("gather/binomial", line(64, 640).with_root(3), 6, 63, (0, 32 * 40), 0),
        ("gather/bine", line(64, 640).with_root(3), 6, 63, (0, 32 * 40), 0),
        // The pair of the root, and of place 3, whose subtree is all others but the root's.
        ("gather/bine", line(5, 5).with_root(3), 3, 4, (0, 2 * 4), 0),
        ("scatter/linear", line(64, 640).with_root(3), 1, 63, (0, 2520), 0),
        ("scatter/binomial", line(64, 640).with_root(3), 6, 63, (0, 2520), 0),
        ("scatter/bine", line(64, 640).with_root(3), 6, 63, (0, 2520), 0),
        ("alltoall/linear", line(33, 330), 1, 33 * 32, (32 * 40, 32 * 40), 0),
        ("alltoall/pairwise", line(32, 320), 31, 32 * 31, (31 * 40, 31 * 40), 0),
        ("alltoall/pairwise", line(33, 330), 32, 33 * 32, (32 * 40, 32 * 40), 0),
        // Half of the vector in every round.
        ("alltoall/bruck", line(64, 640), 6, 6 * 64, (6 * 1280, 6 * 1280), 320),
        // Ways 1, 2, 3, 4 of p = 5: 1 + 1 + 2 + 1 moves.
        ("alltoall/bruck", line(5, 5), 3, 3 * 5, (5 * 4, 5 * 4), 5),
        // To each of 3 others a block and 2 for its rail, then 4 to each of 2 nodes; blocks of 4 bytes.
        ("alltoall/rails", grid(4, 3, 12), 2, 12 * (2 * 3 + 2), (4 * (9 + 8), 4 * (9 + 8)), 0),
        // Each half of 48 bytes goes along x but for a quarter, and along y but for a third.
        ("alltoall/by_axis", grid(4, 3, 24), 2, 12 * 2 * (3 + 2), (2 * (36 + 32), 2 * (36 + 32)), 0),
        ("alltoall/by_shifts", grid(4, 3, 12), 1, 12 * 11, (11 * 4, 11 * 4), 0),
        // Those over two links in two rounds, those over one ahead, those back. 4 notices: the links of the first round are
        // free; 2: to half of the ranks, what they were told before says so; 4: ports out of ranks are free.
        ("alltoall/by_rounds", line(4, 12), 4, 3 * 12, (3 * 12, 3 * 12), 4 + 2 + 4),
        // As alltoall, where there is as much for all: blocks of 40 bytes.
        ("alltoallv/linear", line(33, 330), 1, 33 * 32, (32 * 40, 32 * 40), 0),
        ("alltoallv/pairwise", line(32, 320), 31, 32 * 31, (31 * 40, 31 * 40), 0),
        // Blocks of 4 bytes: 4 for each of 2 nodes over the rail, and 3 to others of the node from it and from each of them.
        ("alltoallv/rails", grid(4, 3, 12), 2, 12 * (2 + 3 * 3), (4 * (8 + 9), 4 * (8 + 9)), 0),
        // Every block is a piece of its own: 8 messages over the rail.
        ("alltoallv/rails_chunked", grid(4, 3, 12), 2, 12 * (8 + 3 * 3), (4 * (8 + 9), 4 * (8 + 9)), 0),
        ("dispatch/direct", line(8, 64), 1, 8 * 7, (7 * 32, 7 * 32), 0),
        ("dispatch/rails", grid(4, 3, 12), 2, 12 * (2 + 3 * 3), (4 * (8 + 9), 4 * (8 + 9)), 0),
        ("dispatch/rails_chunked", grid(4, 3, 12), 2, 12 * (8 + 3 * 3), (4 * (8 + 9), 4 * (8 + 9)), 0),
        ("dispatch/low_latency", line(8, 64), 1, 8 * 7, (7 * 32, 7 * 32), 0),
        ("combine/direct", line(8, 64), 1, 8 * 7, (7 * 32, 7 * 32), 0),
        ("combine/rails", grid(4, 3, 12), 2, 12 * (2 + 3 * 3), (4 * (8 + 9), 4 * (8 + 9)), 0),
        // Each of the 4 parts is added up, and leaves, in a round of its own.
        ("combine/rails_chunked", grid(4, 3, 12), 1 + 4, 12 * (8 + 3 * 3), (4 * (8 + 9), 4 * (8 + 9)), 0),
        ("combine/low_latency", line(8, 64), 1, 8 * 7, (7 * 32, 7 * 32), 0),
        ("barrier/dissemination", line(1, 100), 0, 0, (0, 0), 0),
        ("barrier/dissemination", line(2, 100), 1, 2, (0, 0), 0),
        ("barrier/dissemination", line(5, 100), 3, 3 * 5, (0, 0), 0),
        ("barrier/dissemination", line(64, 100), 6, 6 * 64, (0, 0), 0),
        ("barrier/linear", line(64, 100), 2, 126, (0, 0), 0),
    ];
    rows
}

#[test]
fn every_algorithm_takes_the_rounds_and_bytes_that_it_states() {
    let table = table();
    let mut wrong = Vec::new();
    for (key, shape, due_rounds, due_messages, bytes, due_notices) in &table {
        let schedule = build(key, shape).unwrap();
        let found = (
            rounds(&schedule),
            messages(&schedule),
            bytes_sent(&schedule),
            notices(&schedule),
        );
        if found != (*due_rounds, *due_messages, *bytes, *due_notices) {
            wrong.push(format!("{key} {shape:?}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for algorithm in REGISTRY {
        let key = algorithm.key();
        assert!(table.iter().any(|row| row.0 == key), "{key} has no row");
    }
}

#[test]
fn direct_exchanges_in_one_step_wait_for_nothing() {
    for key in ["allgather/linear", "alltoall/linear"] {
        assert_eq!(build(key, &Shape::new(33, 330)).unwrap().edge_count(), 0);
    }
}

#[test]
fn what_the_network_combines_ranks_can_combine() {
    let mut keys = BTreeSet::new();
    for algorithm in REGISTRY {
        for (columns, rows) in [(4, 3), (3, 2), (1, 4), (4, 1)] {
            let shape = Shape::new(columns * rows, 25).with_grid(columns, rows);
            let Ok(schedule) = (algorithm.build)(&shape) else {
                continue;
            };
            if schedule.has(OpKind::Aggregate) {
                keys.insert(algorithm.key());
                let lowered = gather_and_put(&schedule).unwrap();
                verify(&lowered).unwrap();
                verify(&own_scratch(&lowered).unwrap()).unwrap();
            }
        }
    }
    let due = [
        "allreduce/collnet_chain",
        "allreduce/collnet_direct",
        "allreduce/nvls",
        "allreduce/nvls_tree",
        "allreduce/one_shot_multimem",
        "reduce_scatter/nvls",
    ];
    assert_eq!(keys, BTreeSet::from(due.map(String::from)));
}

/// Steps in which data travel.
fn rounds(schedule: &Schedule) -> usize {
    let steps: BTreeSet<u32> = transfers(schedule).map(|op| op.step).collect();
    steps.len()
}

/// Bytes that leave a rank, least and most over all ranks; a multicast counts once, and an aggregation for each
/// of its sources, the target among them.
fn bytes_sent(schedule: &Schedule) -> (u64, u64) {
    let mut sent = vec![0; (schedule.ranks + schedule.memories) as usize];
    for op in transfers(schedule) {
        for &source in schedule.sources(op) {
            sent[source as usize] += schedule.op_bytes(op);
        }
    }
    let sent = &sent[..schedule.ranks as usize];
    (*sent.iter().min().unwrap(), *sent.iter().max().unwrap())
}

/// Messages with data or tokens.
fn messages(schedule: &Schedule) -> usize {
    transfers(schedule).count()
}

/// Messages without data that the hazards demand.
fn notices(schedule: &Schedule) -> usize {
    let ops = schedule.ops().iter();
    ops.filter(|op| op.kind == OpKind::Notice).count()
}

fn transfers(schedule: &Schedule) -> impl Iterator<Item = &Op> {
    let moves = |op: &&Op| op.is_message() && op.kind != OpKind::Notice;
    schedule.ops().iter().filter(moves)
}
