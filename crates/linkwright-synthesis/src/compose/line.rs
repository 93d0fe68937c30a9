//! Exchanges of the members of one line, as an allgather: who gives whom whose blocks, step by step.
//!
//! ```text
//!   ring of 4, ahead    step 0   0 -> 1 {0}   1 -> 2 {1}   ...      doubling   step 0   0 <-> 1
//!                       step 1   0 -> 1 {3}   1 -> 2 {0}   ...                 step 1   0 <-> 2 {0 1}
//!                       step 2   0 -> 1 {2}   ...
//! ```
//!
//! Every block reaches every member once, so the same messages backwards, with sums in place of copies, are a
//! reduce-scatter.

use super::recipe::{Primitive, Way};
use linkwright_schedule::error::ScheduleError;

/// `from` gives `to` the blocks of these members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub from: u32,
    pub to: u32,
    pub blocks: Vec<u32>,
    /// Whether it goes towards higher places.
    pub ahead: bool,
}

/// The steps of an allgather of `n` members.
pub fn steps(primitive: Primitive, n: u32, way: Way) -> Result<Vec<Vec<Passage>>, ScheduleError> {
    let needs = |what: &str| ScheduleError::Waived {
        algorithm: "composition".into(),
        reason: format!("{n} members of a line; this exchange needs {what}"),
    };
    match primitive {
        _ if n == 1 => Ok(Vec::new()),
        Primitive::Direct | Primitive::Multicast => Ok(vec![direct(n, way)]),
        Primitive::Ring => Ok(ring(n, way)),
        Primitive::Doubling if !n.is_power_of_two() => Err(needs("a power of two")),
        Primitive::Swing if n % 2 == 1 => Err(needs("an even number")),
        Primitive::Doubling => Ok(meet(n, way, |m, round| m ^ (1 << round))),
        Primitive::Swing => Ok(meet(n, way, |m, round| {
            swing(n, m, n.next_power_of_two().ilog2() - 1 - round)
        })),
    }
}

/// Whether what goes `distance` places ahead of `n` goes ahead, the member being even or not.
fn goes_ahead(n: u32, distance: u32, way: Way, even: bool) -> bool {
    match way {
        Way::Ahead => true,
        Way::Back => false,
        Way::Both => 2 * distance < n || 2 * distance == n && even,
    }
}

/// Each to its successor first, so that not all begin with the same member.
fn direct(n: u32, way: Way) -> Vec<Passage> {
    let pairs = (1..n).flat_map(|distance| (0..n).map(move |from| (distance, from)));
    let passage = |(distance, from): (u32, u32)| {
        let distance = if way == Way::Back {
            n - distance
        } else {
            distance
        };
        Passage {
            from,
            to: (from + distance) % n,
            blocks: vec![from],
            ahead: goes_ahead(n, distance, way, from % 2 == 0),
        }
    };
    pairs.map(passage).collect()
}

/// Both ways, what is half way round comes from below.
fn ring(n: u32, way: Way) -> Vec<Vec<Passage>> {
    let rounds = match way {
        Way::Both => (n / 2, (n - 1) / 2),
        Way::Ahead => (n - 1, 0),
        Way::Back => (0, n - 1),
    };
    let step = |s: u32| {
        let ahead = (0..n).filter(|_| s < rounds.0).map(|from| Passage {
            from,
            to: (from + 1) % n,
            blocks: vec![(from + n - s) % n],
            ahead: true,
        });
        let back = (0..n).filter(|_| s < rounds.1).map(|from| Passage {
            from,
            to: (from + n - 1) % n,
            blocks: vec![(from + s) % n],
            ahead: false,
        });
        ahead.chain(back).collect()
    };
    (0..rounds.0.max(rounds.1)).map(step).collect()
}

/// The partner of `m` at the distance (1 - (-2)^(i+1)) / 3 of Swing: up for even members, down for odd ones.
fn swing(n: u32, m: u32, i: u32) -> u32 {
    let distance = (1 - (-2_i64).pow(i + 1)) / 3;
    let signed = if m % 2 == 0 { distance } else { -distance };
    (i64::from(m) + signed).rem_euclid(i64::from(n)) as u32
}

/// Meetings in pairs: each gives what the other lacks. `Back` sees the line in a mirror.
fn meet(n: u32, way: Way, partner: impl Fn(u32, u32) -> u32) -> Vec<Vec<Passage>> {
    let mirror = |m: u32| if way == Way::Back { (n - m) % n } else { m };
    let mut has: Vec<Vec<bool>> = (0..n).map(|m| (0..n).map(|b| b == m).collect()).collect();
    let mut steps = Vec::new();
    for round in 0..n.next_power_of_two().ilog2() {
        let passage = |m: u32| {
            let from = mirror(m);
            let to = mirror(partner(m, round));
            let passes = |&b: &u32| has[from as usize][b as usize] && !has[to as usize][b as usize];
            let distance = (to + n - from) % n;
            Passage {
                from,
                to,
                blocks: (0..n).filter(passes).collect(),
                ahead: goes_ahead(
                    n,
                    distance,
                    Way::Both,
                    (from % 2 == 0) != (way == Way::Back),
                ),
            }
        };
        let step: Vec<Passage> = (0..n)
            .map(passage)
            .filter(|p| !p.blocks.is_empty())
            .collect();
        for passage in &step {
            for &block in &passage.blocks {
                has[passage.to as usize][block as usize] = true;
            }
        }
        steps.push(step);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes is there and lacks, and in the end all have all.
    #[test]
    fn every_block_comes_once() {
        use Primitive::{Direct, Doubling, Multicast, Ring, Swing};
        for n in 1..=24 {
            for (primitive, way) in [Direct, Doubling, Multicast, Ring, Swing]
                .into_iter()
                .flat_map(|p| [Way::Ahead, Way::Back, Way::Both].map(|way| (p, way)))
            {
                let Ok(steps) = steps(primitive, n, way) else {
                    continue;
                };
                let mut has: Vec<Vec<u32>> = (0..n).map(|m| vec![m]).collect();
                for step in steps {
                    let before = has.clone();
                    for passage in step {
                        for block in passage.blocks {
                            assert!(before[passage.from as usize].contains(&block));
                            assert!(
                                !has[passage.to as usize].contains(&block),
                                "{primitive:?} {n} {way:?}"
                            );
                            has[passage.to as usize].push(block);
                        }
                    }
                }
                assert!(
                    has.iter().all(|blocks| blocks.len() == n as usize),
                    "{primitive:?} {n} {way:?}"
                );
            }
        }
    }

    #[test]
    fn a_two_way_ring_of_eight_takes_four_steps() {
        let steps = steps(Primitive::Ring, 8, Way::Both).unwrap();
        assert_eq!(
            steps.iter().map(Vec::len).collect::<Vec<_>>(),
            [16, 16, 16, 8]
        );
    }
}
