//! Swing on all ports of a torus at once.
//!
//! ```text
//!   8 x 8, an even rank   copy 0   x+1  y+1  x-1  y-1  x+3  y+3
//!                         copy 1   y+1  x+1  y-1  x-1  y+3  x+3
//!                         copy 2   x-1  y-1  x+1  y+1  x-3  y-3      mirrors copy 0
//!                         copy 3   y-1  x-1  y+1  x+1  y-3  x-3      mirrors copy 1
//! ```
//!
//! One copy of [`super::swing`] uses one port of a rank in each step. The 2D copies work on 1/(2D) of the
//! vector each; see `common/ports.rs`. Along an axis without a power of two, blocks go as `common/line.rs`
//! says, at no cost in bytes; whole vectors fold.

use crate::collectives::algorithm::algorithm;
use crate::collectives::common::butterfly::Partners::Swing;
use crate::collectives::common::line::Line;
use crate::collectives::common::ports::{Pace, Ports};

const SOURCE: &str =
    "De Sensi, Bonato, Saam and Hoefler, \"Swing: short-cutting rings for higher bandwidth allreduce\" (NSDI 2024)";

algorithm! {
    /// Swing of whole vectors on all ports of a torus at once
    ///
    /// On a torus of D dimensions, 2D copies of Swing exchange 1/(2D) of the vector each, starting along different
    /// axes and in both directions. Places beyond a power of two fold into a neighbour, axis by axis. Contributions
    /// land in scratch of their own, so that small messages wait for nothing but data. Without a grid the ranks are
    /// one ring.
    pub LATENCY = Allreduce "swing_multiport_latency" {
        cost:
            "log2(p) rounds of 2D messages, S log2(p) bytes per rank; two rounds more for each axis off powers of two",
        source: SOURCE,
        build: |shape| {
            let line = |side, _| Line::folding(side, |m, i, members| Swing.of(m, i, members));
            Ports::new(shape, line, Pace::InTurns)?.allreduce_whole(shape)
        },
    }

    /// Swing of blocks on all ports of a torus at once
    ///
    /// On a torus of D dimensions, 2D copies of Swing reduce and gather the blocks of 1/(2D) of the vector each,
    /// starting along different axes and in both directions. Moves the fewest bytes possible for any sides: what a
    /// partner has is not sent again, and the last of an odd number of places exchanges blocks with each of the
    /// others. Without a grid the ranks are one ring.
    pub BANDWIDTH = Allreduce "swing_multiport_bandwidth" {
        cost:
            "2 log2(p) rounds of 2D messages, 2 S (p-1)/p bytes per rank; off powers of two, the logarithms of all \
             sides are rounded up",
        source: SOURCE,
        build: |shape| Ports::new(shape, |side, _| Line::swing(side), Pace::InTurns)?.allreduce_blocks(shape),
    }
}
