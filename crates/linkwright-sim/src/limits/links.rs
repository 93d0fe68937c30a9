//! Which of the links that a message passes stands for it, by numbers from 0.

use crate::network::{Gate, Gates};
use rustc_hash::FxHashMap;

/// Which link of a message counts, with numbers from 0.
pub(super) struct Links {
    /// Rate of each link.
    pub rates: Vec<u64>,
    /// The ends of all messages.
    pub pairs: Vec<(usize, usize)>,
    /// For each way to choose, the link of each message.
    pub picks: Vec<Vec<u32>>,
}

impl Links {
    /// Those of all messages.
    pub fn new(gates: &[Gates]) -> Self {
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut rates: Vec<u64> = Vec::new();
        let mut number = |gate: Gate| {
            let next = numbers.len() as u32;
            let number = *numbers.entry(gate.link).or_insert(next);
            match rates.get_mut(number as usize) {
                Some(rate) => *rate = gate.rate.max(*rate),
                None => rates.push(gate.rate),
            }
            number
        };
        let choices: [fn(&Gates) -> Gate; 4] =
            [|g| g.first, |g| g.narrowest, |g| g.busiest, |g| g.last];
        let mut picks: Vec<Vec<u32>> = Vec::new();
        for (place, choice) in choices.iter().enumerate() {
            let known =
                |earlier: &fn(&Gates) -> Gate| gates.iter().all(|g| earlier(g) == choice(g));
            if !choices[..place].iter().any(known) {
                picks.push(gates.iter().map(|gates| number(choice(gates))).collect());
            }
        }
        Links {
            rates,
            pairs: gates.iter().map(|gates| (gates.from, gates.to)).collect(),
            picks,
        }
    }
}
