//! Complement: rank r sends to p-1-r.
//!
//! ```text
//!   p = 6:   0 <-> 5   1 <-> 4   2 <-> 3       on a grid: to the opposite place
//! ```
//!
//! Everything crosses the middle, so it measures the bisection. For powers of two it flips all
//! bits of the rank, hence the name. The middle of an odd number of ranks is idle.
//!
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2.

use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "complement",
    summary: "rank r sends to rank p-1-r, across the middle",
    description: "Everything crosses the middle, so it measures the bisection of the network.",
    needs: "",
    source:
        "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let p = traffic.shape.ranks;
    let messages: Vec<_> = (0..p)
        .map(|r| (r, p - 1 - r))
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
    fn all_bits_flip() {
        for (from, to) in messages(Shape::new(16, 1)) {
            assert_eq!(to, !from & 15);
        }
        assert_eq!(messages(Shape::new(3, 1)), [(0, 2), (2, 0)]);
    }
}
