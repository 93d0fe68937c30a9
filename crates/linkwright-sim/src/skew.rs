//! When ranks arrive: real programs never start a collective at the same instant.

use crate::error::SimError;
use crate::random::Random;
use linkwright_core::TimePs;

/// Arrival times of the ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Skew {
    /// All at zero.
    #[default]
    None,
    /// Each at a random time up to `most`, drawn by `seed`.
    Uniform {
        /// Latest arrival.
        most: TimePs,
        /// What the times are drawn by.
        seed: u64,
    },
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

impl Skew {
    /// The arrival of each rank; empty when all arrive at zero.
    pub fn arrivals(&self, ranks: u32) -> Result<Vec<TimePs>, SimError> {
        let option = "skew";
        let error = |problem| Err(SimError::Option { option, problem });
        match self {
            Skew::None => Ok(Vec::new()),
            Skew::Uniform { most, seed } => {
                let mut random = Random::new(*seed);
                let draw = |_| TimePs(random.below(most.0 + 1));
                Ok((0..ranks).map(draw).collect())
            }
            Skew::Late { rank, .. } if *rank >= ranks => {
                let last = ranks.saturating_sub(1);
                error(format!("rank {rank} does not exist; ranks are 0..{last}"))
            }
            Skew::Late { rank, by } => {
                let mut times = vec![TimePs::ZERO; ranks as usize];
                times[*rank as usize] = *by;
                Ok(times)
            }
            Skew::List(times) if times.len() != ranks as usize => error(format!(
                "{} arrival times for {ranks} ranks; give one for each",
                times.len()
            )),
            Skew::List(times) => Ok(times.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_gives_one_time_per_rank() {
        let ns = TimePs::from_ns;
        assert_eq!(Skew::None.arrivals(3), Ok(vec![]));
        let uniform = |seed| Skew::Uniform { most: ns(10), seed }.arrivals(100).unwrap();
        assert_eq!(uniform(1), uniform(1));
        assert_ne!(uniform(1), uniform(2));
        assert!(uniform(1).iter().all(|&t| t <= ns(10)));
        let late = |rank| Skew::Late { rank, by: ns(5) }.arrivals(3);
        assert_eq!(late(2), Ok(vec![ns(0), ns(0), ns(5)]));
        assert!(late(3).unwrap_err().to_string().contains("ranks are 0..2"));
        assert!(Skew::List(vec![ns(1)]).arrivals(2).is_err());
    }
}
