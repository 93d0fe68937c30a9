//! Mirrored recursive doubling: recursive doubling on all ports of a torus at once.
//!
//! ```text
//!   ring of 8   rank 0   copy 0   +1  +2  +4        goes ahead where bit i of the place is 0
//!                        copy 1   -1  -2  -4        goes back there
//!               rank 5   copy 0   -1  +2  -4
//!                        copy 1   +1  -2  +4
//! ```
//!
//! A mirror image of the pairs would not do: 1 meets 3, and their images 7 and 5 meet, too, so both copies
//! would take the same links. The mirrored copy has partners of its own, as far away on the other side.
//!
//! One copy of [`super::recursive_doubling`] uses one port of a rank in each step. The 2D copies work on
//! 1/(2D) of the vector each; see `common/ports.rs`. Along an axis without a power of two, the places that
//! are too many fold into a neighbour; see `common/line.rs`.

use crate::collectives::algorithm::algorithm;
use crate::collectives::common::butterfly::Partners::Doubling;
use crate::collectives::common::line::Line;
use crate::collectives::common::ports::{Pace, Ports};

const SOURCE: &str =
    "De Sensi, Bonato, Saam and Hoefler, \"Swing: short-cutting rings for higher bandwidth allreduce\" (NSDI 2024), \
     which compares with it";

algorithm! {
    /// recursive doubling of whole vectors on all ports of a torus at once
    ///
    /// On a torus of D dimensions, 2D copies of recursive doubling exchange 1/(2D) of the vector each, starting
    /// along different axes and in both directions. Places beyond a power of two fold into a neighbour, axis by
    /// axis. Contributions land in scratch of their own, so that small messages wait for nothing but data. Without
    /// a grid the ranks are one ring.
    pub LATENCY = Allreduce "mirrored_doubling_latency" {
        cost:
            "log2(p) rounds of 2D messages, S log2(p) bytes per rank; two rounds more for each axis off powers of two",
        source: SOURCE,
        build: |shape| {
            Ports::new(shape, line, Pace::InTurns)?.allreduce_whole(shape)
        },
    }

    /// halve and double on all ports of a torus at once
    ///
    /// On a torus of D dimensions, 2D copies of recursive halving and doubling work on 1/(2D) of the vector each,
    /// starting along different axes and in both directions. Places beyond a power of two fold into a neighbour,
    /// axis by axis. Without a grid the ranks are one ring.
    pub BANDWIDTH = Allreduce "mirrored_doubling_bandwidth" {
        cost:
            "2 log2(p) rounds of 2D messages, 2 S (p-1)/p bytes per rank; two rounds and up to 2 S more for each axis \
             off powers of two",
        source: SOURCE,
        build: |shape| {
            Ports::new(shape, line, Pace::InTurns)?.allreduce_blocks(shape)
        },
    }
}

/// A line, and the one that becomes the mirrored line.
fn line(side: u32, mirrored: bool) -> Line {
    Line::folding(side, |member, i, members| match mirrored {
        true => opposite(member, i, members),
        false => Doubling.of(member, i, members),
    })
}

/// Whom a member of the mirrored line meets, as seen in the mirror: as far ahead as its image goes back.
fn opposite(member: u32, i: u32, members: u32) -> u32 {
    let ahead = (members - member) >> i & 1 == 0;
    match ahead {
        true => (member + (1 << i)) % members,
        false => (member + members - (1 << i)) % members,
    }
}
