//! Uniform random: every message goes to a rank drawn anew.
//!
//! ```text
//!   p = 4, say   0 -> 2, 3, 3   1 -> 0, 2, 3   2 -> 0, 0, 1   3 -> 1, 0, 2
//! ```
//!
//! The traffic that analytic models of networks assume: in the mean balanced, at any moment not.
//! Nobody sends to itself.
//!
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2.

use super::random::Random;
use super::{Pattern, Traffic};
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry.
pub static PATTERN: Pattern = Pattern {
    name: "uniform_random",
    summary: "every message goes to a rank drawn anew",
    description:
        "In the mean balanced, at any moment not; what analytic models of networks assume.",
    needs: "",
    source:
        "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2",
    build,
};

fn build(traffic: &Traffic) -> Result<Schedule> {
    traffic.check(&PATTERN)?;
    let p = traffic.shape.ranks;
    let mut random = Random::new(traffic.seed);
    traffic.rounds(|_| {
        let target = |from: u32| (from + 1 + random.below(p - 1)) % p;
        (0..p).zip((0..p).map(target)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;

    #[test]
    fn all_targets_are_about_equally_likely() {
        let traffic = Traffic {
            count: 1000,
            ..Traffic::new(Shape::new(10, 1))
        };
        let schedule = build(&traffic).unwrap();
        let mut received = [0; 10];
        schedule
            .ops()
            .iter()
            .for_each(|op| received[op.to as usize] += 1);
        // 1000 in the mean, with a standard deviation of 30.
        assert!(
            received.iter().all(|n| (880..1120).contains(n)),
            "{received:?}"
        );
    }
}
