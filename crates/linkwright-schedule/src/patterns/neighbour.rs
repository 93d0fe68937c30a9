//! Neighbour: everyone sends to the next rank; on a grid to the next along either axis.
//!
//! ```text
//!   line   r -> r+1        grid   (x, y) -> (x+1, y) and (x, y+1)        closed to rings
//! ```
//!
//! The kindest traffic, and that of stencils: no link is shared on a ring or a torus. Both ways on
//! a grid is the exchange of halos with four neighbours.
//!
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2.

use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "neighbour",
    summary: "everyone sends to the next rank, on a grid along either axis",
    description:
        "The kindest traffic, that of stencils; both ways on a grid it is a halo exchange.",
    needs: "",
    source:
        "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let p = traffic.shape.ranks;
    let (columns, rows) = traffic.shape.grid.unwrap_or((p, 1));
    let mut messages = Vec::new();
    for r in 0..p {
        let (x, y) = (r % columns, r / columns);
        if columns > 1 {
            messages.push((r, y * columns + (x + 1) % columns));
        }
        if rows > 1 {
            messages.push((r, (y + 1) % rows * columns + x));
        }
    }
    traffic.repeated(&messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;

    fn messages(shape: Shape) -> Vec<(u32, u32)> {
        let schedule = build(&Traffic::new(shape)).unwrap();
        schedule.ops().iter().map(|op| (op.from, op.to)).collect()
    }

    #[test]
    fn rings_close() {
        assert_eq!(messages(Shape::new(3, 1)), [(0, 1), (1, 2), (2, 0)]);
        let grid = messages(Shape::new(6, 1).with_grid(3, 2));
        assert_eq!(grid[4..6], [(2, 0), (2, 5)]);
        assert_eq!(grid.len(), 12);
    }
}
