//! Which participant sits where.
//!
//! Ranks go to rank endpoints, memories of the schedule to memory endpoints of the machine, in
//! order. A placement moves ranks only; a memory is where it is.

use crate::error::SimError;
use linkwright_core::random::Random;
use linkwright_core::{EndpointId, Machine};

/// How ranks are placed on the rank endpoints of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Rank `r` at endpoint `r`.
    #[default]
    Identity,
    /// Rank `r` at the endpoint with the r-th number.
    List(Vec<u32>),
    /// All rank endpoints shuffled by this seed, of which the first are used.
    Shuffle(u64),
}

impl Placement {
    /// Endpoints of all participants, ranks first.
    pub fn place(
        &self,
        machine: &Machine,
        ranks: u32,
        memories: u32,
    ) -> Result<Vec<EndpointId>, SimError> {
        let there = machine.ranks();
        enough(
            machine,
            "ranks",
            ranks,
            there,
            "use fewer ranks or a larger machine",
        )?;
        let cure = "choose a machine with memories or an algorithm without";
        enough(machine, "memories", memories, machine.memories(), cure)?;
        let mut endpoints: Vec<u32> = match self {
            Placement::Identity => (0..ranks).collect(),
            Placement::List(list) => {
                check_list(list, ranks, there)?;
                list.clone()
            }
            Placement::Shuffle(seed) => shuffled(there as u32, *seed),
        };
        endpoints.truncate(ranks as usize);
        endpoints.extend((there as u32..).take(memories as usize));
        Ok(endpoints.into_iter().map(EndpointId).collect())
    }
}

fn enough(
    machine: &Machine,
    what: &'static str,
    wanted: u32,
    there: usize,
    cure: &'static str,
) -> Result<(), SimError> {
    if wanted as usize <= there {
        return Ok(());
    }
    Err(SimError::TooFewEndpoints {
        what,
        wanted: wanted as usize,
        there,
        machine: machine.name().to_string(),
        cure,
    })
}

fn check_list(list: &[u32], ranks: u32, there: usize) -> Result<(), SimError> {
    let option = "placement";
    let error = |problem| Err(SimError::Option { option, problem });
    if list.len() != ranks as usize {
        let places = list.len();
        return error(format!(
            "{places} places for {ranks} ranks; give one for each"
        ));
    }
    let mut taken = vec![false; there];
    for &endpoint in list {
        match taken.get_mut(endpoint as usize) {
            None => {
                let last = there - 1;
                return error(format!(
                    "endpoint {endpoint} does not exist; they are 0..{last}"
                ));
            }
            Some(true) => {
                return error(format!(
                    "endpoint {endpoint} is named twice; name each once"
                ));
            }
            Some(free) => *free = true,
        }
    }
    Ok(())
}

/// 0..n in random order (Fisher and Yates).
fn shuffled(n: u32, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut list: Vec<u32> = (0..n).collect();
    for i in (1..list.len()).rev() {
        list.swap(i, random.below(i as u64 + 1) as usize);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_is_a_permutation_that_the_seed_decides() {
        let mut a = shuffled(50, 3);
        assert_eq!(a, shuffled(50, 3));
        assert_ne!(a, shuffled(50, 4));
        a.sort_unstable();
        assert_eq!(a, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn lists_are_checked() {
        let problem = |list: &[u32]| check_list(list, 3, 4).unwrap_err().to_string();
        assert!(problem(&[0, 1]).contains("2 places for 3 ranks"));
        assert!(problem(&[0, 1, 4]).contains("endpoint 4 does not exist; they are 0..3"));
        assert!(problem(&[0, 1, 0]).contains("endpoint 0 is named twice"));
        assert_eq!(check_list(&[3, 1, 0], 3, 4), Ok(()));
    }
}
