//! Random permutation: everyone sends to one rank and receives from one, drawn at random.
//!
//! ```text
//!   p = 5, say   0 -> 3   1 -> 4   2 -> 0   3 -> 2   4 -> 1
//! ```
//!
//! Every port carries the same, so what is slow is the network between: the fair test of a
//! topology. All permutations without a rank that sends to itself are equally likely; drawn again
//! until there is none, which takes e = 2.7 draws in the mean.
//!
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2.

use super::random::Random;
use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "random_permutation",
    summary: "everyone sends to one rank and receives from one, drawn at random",
    description: "Every port carries the same, so what is slow is the network between them.",
    needs: "",
    source:
        "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let mut random = Random::new(traffic.seed);
    let mut targets: Vec<u32> = (0..traffic.shape.ranks).collect();
    while (0..).zip(&targets).any(|(rank, &target)| rank == target) {
        random.shuffle(&mut targets);
    }
    let messages: Vec<_> = (0..).zip(targets).collect();
    traffic.repeated(&messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;

    #[test]
    fn everyone_sends_and_receives_once_per_round() {
        let traffic = Traffic {
            count: 3,
            seed: 11,
            ..Traffic::new(Shape::new(50, 1))
        };
        let schedule = build(&traffic).unwrap();
        let mut received = [0; 50];
        schedule
            .ops()
            .iter()
            .for_each(|op| received[op.to as usize] += 1);
        assert_eq!(received, [3; 50]);
    }
}
