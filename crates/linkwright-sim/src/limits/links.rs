//! Which of the links that a message passes stands for it, by numbers from 0; where a fabric knows none, ports do.

use super::arrival::Table;
use super::problem::Site;
use crate::fabric::{Fabric, Gate, Gates, PortRates};
use linkwright_core::{BytesPerSec, EndpointId};
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

impl<F: Fabric + ?Sized> Site<'_, F> {
    /// Ports in place of links; `None` where a rate is not known.
    pub(super) fn ports_as_gates(&self, nodes: &[EndpointId], table: &Table) -> Option<Vec<Gates>> {
        let ports = (0u32..).zip(
            nodes
                .iter()
                .map(|&node| self.fabric.port(node, self.networks)),
        );
        let gate = |link, rate: Option<BytesPerSec>| {
            let rate = rate?.0.ceil() as u64;
            Some(Gate { link, rate })
        };
        let count = nodes.len() as u32;
        let out = |(node, port): (u32, PortRates)| gate(node, port.out);
        let into = |(node, port): (u32, PortRates)| gate(count + node, port.into);
        let out: Vec<Gate> = ports.clone().map(out).collect::<Option<_>>()?;
        let into: Vec<Gate> = ports.map(into).collect::<Option<_>>()?;
        // Of a message for many, one copy may leave.
        let copies = self.fabric.multicasts_are_copies();
        let pairs = (0..nodes.len()).flat_map(|from| (0..nodes.len()).map(move |to| (from, to)));
        let gates = |(from, to): (usize, usize)| {
            let (out, into) = (out[from], into[to]);
            let first = if copies { out } else { into };
            Gates {
                from,
                to,
                first,
                narrowest: first,
                busiest: into,
                last: into,
            }
        };
        let routes = |&(from, to): &(usize, usize)| table.around(from, to).is_some();
        Some(pairs.filter(routes).map(gates).collect())
    }
}
