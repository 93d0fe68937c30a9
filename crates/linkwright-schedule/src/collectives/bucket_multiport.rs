//! Bucket: rings along one axis of a torus after the other, on all ports at once.
//!
//! ```text
//!   4 x 4, copy 0   reduce_scatter   3 steps along x   everyone has 4 of 16 blocks: those of its column
//!                                    3 steps along y   everyone has its own block
//!                   allgather        the same backwards
//! ```
//!
//! Every message goes to a neighbour, and no two of the 2D copies (see `common/ports.rs`) share a link while
//! the sides are equal. A ring of p ranks needs 2(p-1) steps for the same bytes; with rings along the axes
//! there are only as many as the sides are long.

use crate::collectives::algorithm::algorithm;
use crate::collectives::common::line::Line;
use crate::collectives::common::ports::{Pace, Ports};

algorithm! {
    /// rings along one axis of a torus after the other, on all ports at once
    ///
    /// Reduce-scatter and allgather go round the rings of each axis in turn. On a torus of D dimensions, 2D copies
    /// on 1/(2D) of the vector each start along different axes and in both directions, so every link carries the
    /// fewest bytes possible. The rounds grow with the sides: for large messages. Without a grid the ranks are one
    /// ring.
    pub ALLREDUCE = Allreduce "bucket_multiport" {
        cost: "2 (sum of all sides - D) rounds of 2D messages, 2 S (p-1)/p bytes per rank",
        source:
            "Jain and Sabharwal, \"Optimal bucket algorithms for large MPI collectives on torus interconnects\" (ICS \
             2010); Sack and Gropp, \"Collective algorithms for multiported torus networks\" (ACM TOPC 2015)",
        build: |shape| Ports::new(shape, |side, _| Line::ring(side), Pace::AxisByAxis)?.allreduce_blocks(shape),
    }
}
