//! One to many: the root sends to everyone else, one message each in turn.
//!
//! ```text
//!        root
//!      /  |  \  \
//!     0   1   2   3  ...
//! ```
//!
//! The port of the root and its cost per message are the limit: how fast can one rank feed many?
//!
//! Source: the one-to-all case of the "TT-Metalium data movement tests".

use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "one_to_many",
    summary: "the root sends to everyone else in turn",
    description: "Shows how fast one rank can feed many: its port and its cost per message.",
    needs: "",
    source: "TT-Metalium data movement tests, one to all",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let (p, root) = (traffic.shape.ranks, traffic.shape.root);
    let messages: Vec<_> = (0..p).filter(|&r| r != root).map(|r| (root, r)).collect();
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
    fn the_root_feeds_all() {
        assert_eq!(
            messages(Shape::new(4, 1).with_root(2)),
            [(2, 0), (2, 1), (2, 3)]
        );
    }
}
