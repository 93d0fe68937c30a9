//! Bine trees on all ports of a torus at once.
//!
//! ```text
//!   8 x 8, from the root   copy 0   x+3  y+3  x-1  y-1  x+1  y+1
//!                          copy 1   y+3  x+3  y-1  x-1  y+1  x+1
//!                          copy 2   x-3  y-3  x+1  y+1  x-1  y-1      mirrors copy 0
//!                          copy 3   y-3  x-3  y+1  x+1  y-1  x-1      mirrors copy 1
//! ```
//!
//! Each of the 2D copies carries 1/(2D) of the vector along a tree of its own: the meetings of
//! [`super::swing_multiport`] from the farthest on; see `common/ports.rs`. The reduce is the broadcast backwards.

use crate::collectives::common::butterfly::Partners::Swing;
use crate::collectives::common::line::Line;
use crate::collectives::common::ports::{Pace, Ports};
use crate::collectives::prelude::*;

const SOURCE: &str =
    "De Sensi and others, \"Bine trees: enhancing collective operations by optimizing communication locality\" (SC \
     2025), section on tori";

algorithm! {
    /// bine trees on all ports of a torus at once
    ///
    /// On a torus of D dimensions, 2D bine trees carry 1/(2D) of the vector each, starting along different axes and
    /// in both directions. Places beyond a power of two hang from a neighbour, axis by axis. Without a grid the
    /// ranks are one ring.
    pub BROADCAST = Broadcast "bine_multiport" {
        cost:
            "log2 p rounds of up to 2D messages, S log2(p) bytes from the root; a round more for each axis off powers \
             of two",
        source: SOURCE,
        build: |shape| ports(shape)?.broadcast_whole(shape),
    }

    /// bine trees on all ports of a torus at once, towards the root
    ///
    /// On a torus of D dimensions, 2D bine trees carry 1/(2D) of the vector each, starting along different axes and
    /// in both directions. Places beyond a power of two hang from a neighbour, axis by axis. Without a grid the
    /// ranks are one ring.
    pub REDUCE = Reduce "bine_multiport" {
        cost:
            "log2 p rounds of up to 2D messages, S log2(p) bytes into the root; a round more for each axis off powers \
             of two",
        source: SOURCE,
        build: |shape| ports(shape)?.reduce_whole(shape),
    }
}

fn ports(shape: &Shape) -> Result<Ports> {
    let line = |side, _| Line::folding(side, |m, i, members| Swing.of(m, i, members));
    Ports::new(shape, line, Pace::InTurns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;

    #[test]
    fn right_on_tori_of_three_dimensions_from_any_root() {
        for sides in [[2, 3, 4], [3, 3, 3], [1, 5, 2]] {
            let p = sides.iter().product();
            for root in 0..p {
                let shape = Shape::new(p, 13).with_sides(&sides).with_root(root);
                for algorithm in [&BROADCAST, &REDUCE] {
                    verify(&(algorithm.build)(&shape).unwrap()).unwrap();
                }
            }
        }
    }

    #[test]
    fn the_root_begins_on_all_ports() {
        let schedule = (BROADCAST.build)(&Shape::new(64, 64).with_sides(&[4, 4, 4])).unwrap();
        let first: Vec<_> = schedule
            .ops()
            .iter()
            .take_while(|op| op.step == schedule.ops()[0].step)
            .collect();
        assert_eq!(first.len(), 6);
        assert!(first.iter().all(|op| op.from == 0));
    }
}
