//! Tornado: everyone sends not quite half way round the ring, along every axis.
//!
//! ```text
//!   ring of k:   x -> x + ceil(k/2) - 1      k = 8: +3      k = 7: +3
//! ```
//!
//! All shortest ways turn the same way round, so half of a ring's links carry everything and the
//! others nothing: the worst case of shortest routes on rings and tori.
//!
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2.

use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "tornado",
    summary: "everyone sends just short of half way round every axis",
    description: "All shortest ways turn the same way, so half of the links of a ring or torus \
                  are idle: the worst case of shortest routes.",
    needs: "an axis of three or more ranks",
    source:
        "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let p = traffic.shape.ranks;
    let (columns, rows) = traffic.shape.grid.unwrap_or((p, 1));
    let shift = |k: u32| k.div_ceil(2) - 1;
    if shift(columns) + shift(rows) == 0 {
        return Err(PATTERN.waive(format!(
            "{columns}x{rows} ranks have no way of less than half round; use an axis of 3 or more"
        )));
    }
    let target = |r: u32| {
        let (x, y) = (r % columns + shift(columns), r / columns + shift(rows));
        y % rows * columns + x % columns
    };
    let messages: Vec<_> = (0..p).map(|r| (r, target(r))).collect();
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
    fn just_short_of_half_way() {
        assert_eq!(messages(Shape::new(8, 1))[6], (6, 1));
        assert_eq!(messages(Shape::new(7, 1))[0], (0, 3));
        assert_eq!(
            messages(Shape::new(64, 1).with_grid(8, 8))[0],
            (0, 3 * 8 + 3)
        );
    }

    #[test]
    fn two_ranks_are_waived() {
        assert!(build(&Traffic::new(Shape::new(2, 1))).is_err());
    }
}
