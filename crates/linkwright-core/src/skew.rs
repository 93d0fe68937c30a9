//! When ranks arrive: real programs never start a collective at the same instant.

use crate::random::Random;
use crate::units::TimePs;
use std::str::FromStr;
use thiserror::Error;

/// Arrival times of the ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Skew {
    /// All at zero.
    #[default]
    None,
    /// Each at a random time up to this.
    Uniform(TimePs),
    /// One rank late, all others at zero.
    Late {
        /// The late rank.
        rank: u32,
        /// How late.
        by: TimePs,
    },
    /// One time for each rank.
    List(Vec<TimePs>),
}

/// The latest arrival, an hour in nanoseconds: sums of such times fit into picoseconds.
const MOST_NS: f64 = 3.6e12;

/// A skew that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SkewError {
    /// A text that names no skew.
    #[error("skew `{0}` is not understood; write `none`, `uniform:2us`, `late:RANK:2us` or `list:0us,1us`, with times of at most an hour")]
    Text(String),
    /// A late rank that does not exist.
    #[error("option `skew`: rank {rank} does not exist; ranks are 0..{}", .ranks.saturating_sub(1))]
    NoRank {
        /// The late rank.
        rank: u32,
        /// How many ranks there are.
        ranks: u32,
    },
    /// A list that is not as long as there are ranks.
    #[error("option `skew`: {times} arrival times for {ranks} ranks; give one for each")]
    Count {
        /// Length of the list.
        times: usize,
        /// How many ranks there are.
        ranks: u32,
    },
}

impl Skew {
    /// Check that it suits this number of ranks.
    pub fn check(&self, ranks: u32) -> Result<(), SkewError> {
        match self {
            &Skew::Late { rank, .. } if rank >= ranks => Err(SkewError::NoRank { rank, ranks }),
            Skew::List(times) if times.len() != ranks as usize => Err(SkewError::Count {
                times: times.len(),
                ranks,
            }),
            _ => Ok(()),
        }
    }

    /// The arrival of each rank in a simulation; empty when all arrive at zero.
    pub fn arrivals(&self, ranks: u32, seed: u64) -> Result<Vec<TimePs>, SkewError> {
        self.check(ranks)?;
        let mut random = Random::new(seed);
        Ok(match self {
            Skew::None => Vec::new(),
            Skew::Uniform(most) => (0..ranks)
                .map(|_| TimePs(random.below(most.0 + 1)))
                .collect(),
            &Skew::Late { rank: late, by } => (0..ranks)
                .map(|rank| if rank == late { by } else { TimePs::ZERO })
                .collect(),
            Skew::List(times) => times.clone(),
        })
    }

    /// How late `rank` comes to a repetition of an execution, in nanoseconds; a random delay is drawn anew for each.
    ///
    /// # Panics
    /// When the skew is a list without this rank, see [`Skew::check`].
    pub fn delay_ns(&self, rank: usize, seed: u64, repetition: u64) -> f64 {
        match self {
            Skew::None => 0.0,
            Skew::Late { rank: late, by } if *late as usize == rank => by.as_ns(),
            Skew::Late { .. } => 0.0,
            Skew::List(delays) => delays[rank].as_ns(),
            Skew::Uniform(most) => {
                let of_repetition = Random::new(repetition << 20 | rank as u64).bits();
                let draw = Random::new(seed ^ of_repetition).bits();
                most.as_ns() * (draw >> 11) as f64 / (1u64 << 53) as f64
            }
        }
    }
}

impl FromStr for Skew {
    type Err = SkewError;

    /// `none`, `uniform:2us`, `late:RANK:2us` or `list:0us,1us`.
    fn from_str(text: &str) -> Result<Self, SkewError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let read = match kind {
            "none" if rest.is_empty() => Some(Skew::None),
            "uniform" => duration(rest).map(Skew::Uniform),
            "late" => rest.split_once(':').and_then(|(rank, by)| {
                let (rank, by) = (rank.parse().ok()?, duration(by)?);
                Some(Skew::Late { rank, by })
            }),
            "list" => (rest.split(',').map(duration).collect::<Option<_>>()).map(Skew::List),
            _ => None,
        };
        read.ok_or_else(|| SkewError::Text(text.to_string()))
    }
}

fn duration(text: &str) -> Option<TimePs> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (digits, scale) = units
        .iter()
        .find_map(|(unit, scale)| text.trim().strip_suffix(unit).map(|rest| (rest, scale)))?;
    let value: f64 = digits.parse().ok()?;
    let valid = (0.0..=MOST_NS).contains(&(value * scale));
    valid.then(|| TimePs((value * scale * 1e3).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_gives_one_time_per_rank() {
        let ns = TimePs::from_ns;
        assert_eq!(Skew::None.arrivals(3, 0), Ok(vec![]));
        let uniform = |seed| Skew::Uniform(ns(10)).arrivals(100, seed).unwrap();
        assert_eq!(uniform(1), uniform(1));
        assert_ne!(uniform(1), uniform(2));
        assert!(uniform(1).iter().all(|&t| t <= ns(10)));
        let late = |rank| Skew::Late { rank, by: ns(5) };
        assert_eq!(late(2).arrivals(3, 0), Ok(vec![ns(0), ns(0), ns(5)]));
        assert_eq!([1, 2].map(|rank| late(2).delay_ns(rank, 0, 7)), [0.0, 5.0]);
        let error = |skew: Skew| skew.arrivals(3, 0).unwrap_err().to_string();
        assert!(error(late(3)).contains("ranks are 0..2"));
        let short = Skew::List(vec![ns(1), ns(2)]);
        assert!(error(short).contains("2 arrival times for 3 ranks"));
    }

    #[test]
    fn texts_are_read() {
        let ns = TimePs::from_ns;
        let read = |text: &str| text.parse::<Skew>();
        assert_eq!(read("none"), Ok(Skew::None));
        assert_eq!(read("uniform:2us"), Ok(Skew::Uniform(ns(2000))));
        let (rank, by) = (3, TimePs(1_500));
        assert_eq!(read("late:3:1.5ns"), Ok(Skew::Late { rank, by }));
        assert_eq!(read("list:0us, 1us"), Ok(Skew::List(vec![ns(0), ns(1000)])));
        for text in [
            "",
            "none:1us",
            "uniform",
            "uniform:-1us",
            "late:2us",
            "list:1,2",
            "soon",
        ] {
            assert_eq!(read(text), Err(SkewError::Text(text.into())));
        }
    }
}
