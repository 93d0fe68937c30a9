//! Random patterns: destinations are drawn at random.
//!
//! ```text
//!   random_permutation   p = 5, say   0 -> 3   1 -> 4   2 -> 0   3 -> 2   4 -> 1
//!   uniform_random       p = 4, say   0 -> 2, 3, 3   1 -> 0, 2, 3   2 -> 0, 0, 1   3 -> 1, 0, 2
//! ```
//!
//! In a permutation every port carries the same load, so any slowness is the network's: the fair
//! test of a topology. All permutations in which no rank sends to itself are equally likely; others
//! are drawn again, which takes e = 2.7 draws on average.
//!
//! Uniform traffic, in which every message goes to a freshly drawn rank, is what analytic network
//! models assume: balanced on average, but not at any moment. No rank sends to itself.
//!
//! Source: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2.

use super::pattern::{Pattern, DALLY_TOWLES};
use super::random::Random;
use super::traffic::Traffic;
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry of pattern/random_permutation.
pub static PERMUTATION: Pattern = Pattern {
    name: "random_permutation",
    summary: "every rank sends to one rank and receives from one, drawn at random",
    description: "Every port carries the same load, so any slowness is the network's.",
    needs: "",
    source: DALLY_TOWLES,
    messages: |traffic| traffic.shape.ranks.into(),
    build: permutation,
};

/// Registry entry of pattern/uniform_random.
pub static UNIFORM: Pattern = Pattern {
    name: "uniform_random",
    summary: "every message goes to a randomly drawn rank",
    description: "Balanced on average but not at any moment; the traffic that analytic network \
                 models assume.",
    needs: "",
    source: DALLY_TOWLES,
    messages: |traffic| traffic.shape.ranks.into(),
    build: uniform,
};

fn permutation(traffic: &Traffic) -> Result<Schedule> {
    PERMUTATION.check(traffic)?;
    let mut random = Random::new(traffic.seed);
    let mut targets: Vec<u32> = (0..traffic.shape.ranks).collect();
    while (0..).zip(&targets).any(|(rank, &target)| rank == target) {
        random.shuffle(&mut targets);
    }
    PERMUTATION.each(traffic, |r| Some((r, targets[r as usize])))
}

fn uniform(traffic: &Traffic) -> Result<Schedule> {
    UNIFORM.check(traffic)?;
    let p = traffic.shape.ranks;
    let mut random = Random::new(traffic.seed);
    traffic.rounds(|| {
        let target = |from: u32| (from + 1 + random.below(p - 1)) % p;
        (0..p).zip((0..p).map(target)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;

    fn received(build: fn(&Traffic) -> Result<Schedule>, ranks: u32, count: u32) -> Vec<u32> {
        let traffic = Traffic {
            count,
            ..Traffic::new(Shape::new(ranks, 1))
        };
        let mut received = vec![0; ranks as usize];
        for op in build(&traffic).unwrap().ops() {
            received[op.to as usize] += 1;
        }
        received
    }

    #[test]
    fn everyone_receives_once_per_round_of_a_permutation() {
        assert_eq!(received(permutation, 50, 3), [3; 50]);
    }

    #[test]
    fn all_targets_are_about_equally_likely() {
        // 1000 in the mean, with a standard deviation of 30.
        let received = received(uniform, 10, 1000);
        assert!(
            received.iter().all(|n| (880..1120).contains(n)),
            "{received:?}"
        );
    }
}
