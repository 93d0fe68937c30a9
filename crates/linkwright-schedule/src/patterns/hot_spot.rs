//! Hot spot: everyone sends to one rank.
//!
//! ```text
//!   0   1   2   3  ...
//!    \  |  /  /
//!      root
//! ```
//!
//! The port of the root is the limit; what matters is whether the network carries the rest of the
//! traffic past the queue in front of it, and whether all senders get a fair share.
//!
//! Source: Pfister and Norton, "Hot spot contention and combining in multistage interconnection
//! networks" (IEEE Transactions on Computers 1985).

use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "hot_spot",
    summary: "everyone sends to the root",
    description: "Shows the port of one rank, and whether the senders share it fairly.",
    needs: "",
    source: "Pfister and Norton, IEEE Transactions on Computers 1985",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let (p, root) = (traffic.shape.ranks, traffic.shape.root);
    let messages: Vec<_> = (0..p).filter(|&r| r != root).map(|r| (r, root)).collect();
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
    fn the_root_is_hot() {
        assert_eq!(
            messages(Shape::new(4, 1).with_root(2)),
            [(0, 2), (1, 2), (3, 2)]
        );
    }
}
