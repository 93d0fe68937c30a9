//! Transpose: the place (x, y) of a matrix of ranks sends to the place (y, x) of its transpose.
//!
//! ```text
//!   c columns, r rows:   rank y c + x sends to rank x r + y
//!
//!   0 1 2        0 -> 0 (idle)   1 -> 2   2 -> 4
//!   3 4 5        3 -> 1          4 -> 3   5 -> 5 (idle)
//! ```
//!
//! The traffic of matrix transposes and of Fourier transforms. With routes that go along one axis
//! first all ways turn on the diagonal, which makes it the hard case of such networks. Without a
//! grid the squarest one of as many ranks is taken.
//!
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2.

use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "transpose",
    summary: "place (x, y) of the grid sends to place (y, x) of its transpose",
    description: "The traffic of matrix transposes; routes along one axis first all turn on the \
                  diagonal. Without a grid the squarest one is taken.",
    needs: "ranks that form a grid with more than one row",
    source:
        "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let p = traffic.shape.ranks;
    let squarest = || {
        let rows = (1..=p.isqrt()).rev().find(|rows| p % rows == 0);
        rows.map_or((p, 1), |rows| (p / rows, rows))
    };
    let (columns, rows) = traffic.shape.grid.unwrap_or_else(squarest);
    if columns == 1 || rows == 1 {
        return Err(PATTERN.waive(format!(
            "the transpose of {columns}x{rows} ranks moves nothing; use a grid with columns and rows"
        )));
    }
    let messages: Vec<_> = (0..p)
        .map(|r| (r, r % columns * rows + r / columns))
        .filter(|(from, to)| from != to)
        .collect();
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
    fn square_and_oblong() {
        assert_eq!(messages(Shape::new(4, 1)), [(1, 2), (2, 1)]);
        let oblong = messages(Shape::new(6, 1).with_grid(3, 2));
        assert_eq!(oblong, [(1, 2), (2, 4), (3, 1), (4, 3)]);
    }

    #[test]
    fn a_line_is_waived() {
        assert!(build(&Traffic::new(Shape::new(7, 1))).is_err());
    }
}
