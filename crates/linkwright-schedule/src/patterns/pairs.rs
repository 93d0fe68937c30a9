//! Pairs: rank i of the first half streams to rank i of the second half.
//!
//! ```text
//!   p = 6:   0 -> 3   1 -> 4   2 -> 5
//! ```
//!
//! With two ranks the bandwidth of one connection; with more, how it holds up when many talk at
//! once. An odd rank is idle.
//!
//! Source: the multiple-pair bandwidth test of the OSU micro-benchmarks (`osu_mbw_mr`).

use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "pairs",
    summary: "disjoint pairs stream from the first half of the ranks to the second",
    description: "With two ranks the bandwidth of one connection, with more how it holds up when many talk at once.",
    needs: "",
    source: "OSU micro-benchmarks, osu_mbw_mr",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let half = traffic.shape.ranks / 2;
    let messages: Vec<_> = (0..half).map(|r| (r, r + half)).collect();
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
    fn an_odd_rank_is_idle() {
        assert_eq!(messages(Shape::new(7, 1)), [(0, 3), (1, 4), (2, 5)]);
    }
}
