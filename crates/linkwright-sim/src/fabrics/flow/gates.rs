//! Links that carry the bytes of a message for each of its targets by themselves.
//!
//! ```text
//!   plain            every link of the way
//!   switches copy    0 -> A -> b -> 1      the links behind the last switch that copies, on any way of this source:
//!                              |-> R -> 2  before it, one byte may be on its way to many
//!
//!                    0 to 1: b -> 1        0 to 2: R -> 2
//! ```
//!
//! A multicast follows the ways of its source to each target. So does what a source hands to a switch that combines, to
//! have it sent to many: it goes there once, and from there to each.

use super::pairs::Key;
use super::routes::Routes;
use super::uses::Use;
use crate::network::{Gate, Gates};
use linkwright_core::EndpointId;
use rustc_hash::FxHashSet;

/// Route and links of a pair.
struct Pair {
    ends: (usize, usize),
    key: Key,
    route: u32,
}

impl Routes {
    /// Those of all pairs of `nodes` on `networks`; `None` where messages choose their way.
    pub fn gates(&mut self, nodes: &[EndpointId], networks: &[u8]) -> Option<Vec<Gates>> {
        let carried = self.carried(networks);
        let pairs = self.pairs(nodes, networks)?;
        let own = self.own(&pairs)?;
        let mut crowds = vec![0u64; self.routing.topology.capacity.len()];
        for used in own.iter().flatten() {
            crowds[used.resource()] += used.weight();
        }
        let gates = |(pair, own): (&Pair, &Vec<Use>)| self.gates_of(pair, own, (&carried, &crowds));
        pairs.iter().zip(&own).map(gates).collect()
    }

    fn pairs(&mut self, nodes: &[EndpointId], networks: &[u8]) -> Option<Vec<Pair>> {
        let mut pairs = Vec::new();
        for (from, a) in nodes.iter().enumerate() {
            for (to, b) in nodes.iter().enumerate().filter(|&(to, _)| to != from) {
                for &network in networks {
                    let (from_node, to_node) = (a.0, b.0);
                    let key = Key {
                        from: from_node,
                        to: to_node,
                        network,
                    };
                    let Some(route) = self.find(key) else {
                        continue;
                    };
                    if self.is_spread(route) {
                        return None;
                    }
                    pairs.push(Pair {
                        ends: (from, to),
                        key,
                        route,
                    });
                }
            }
        }
        Some(pairs)
    }

    /// What each message uses for each target by itself; `None` where the order of its links is not known.
    fn own(&self, pairs: &[Pair]) -> Option<Vec<Vec<Use>>> {
        let topology = &self.routing.topology;
        let used = |pair: &Pair| {
            let passes = self.timing(pair.route).passes;
            self.uses(self.span(pair.route, 0, passes - 1))
        };
        if !topology.copies() && !topology.combines() {
            return Some(pairs.iter().map(|pair| used(pair).to_vec()).collect());
        }
        let split = |pair: &Pair| {
            self.joins(used(pair))
                .map(|joins| used(pair).split_at(joins))
        };
        let split: Vec<(&[Use], &[Use])> = pairs.iter().map(split).collect::<Option<_>>()?;
        let way = |pair: &Pair, used: &Use| (pair.key.from, pair.key.network, used.resource());
        let shared: FxHashSet<_> = (pairs.iter().zip(&split))
            .flat_map(|(pair, (before, _))| before.iter().map(move |used| way(pair, used)))
            .collect();
        let own = |(pair, (_, behind)): (&Pair, &(&[Use], &[Use]))| {
            let alone = behind
                .iter()
                .filter(|used| !shared.contains(&way(pair, used)));
            alone.copied().collect()
        };
        Some(pairs.iter().zip(&split).map(own).collect())
    }

    fn gates_of(
        &self,
        pair: &Pair,
        own: &[Use],
        (carried, crowds): (&[u64], &[u64]),
    ) -> Option<Gates> {
        let topology = &self.routing.topology;
        let gate = |used: &Use| {
            let (resource, weight) = (used.resource(), used.weight().max(1));
            let rate = carried.get(resource).copied();
            Gate {
                link: resource as u32,
                rate: rate.unwrap_or(topology.capacity[resource]).div_ceil(weight),
            }
        };
        let gates: Vec<Gate> = own.iter().map(gate).collect();
        let share = |gate: &&Gate| gate.rate / crowds[gate.link as usize].max(1);
        let busiest = *gates.iter().min_by_key(share)?;
        let narrowest = *gates.iter().min_by_key(|gate| gate.rate)?;
        let is_link = |gate: &&Gate| (gate.link as usize) < topology.links.len();
        let links = || gates.iter().filter(is_link);
        let leaving = links().find(|gate| topology.begins[gate.link as usize] == pair.key.from);
        let entering = links().find(|gate| topology.links[gate.link as usize].to == pair.key.to);
        Some(Gates {
            from: pair.ends.0,
            to: pair.ends.1,
            first: leaving.copied().unwrap_or(narrowest),
            narrowest,
            busiest,
            last: entering.copied().unwrap_or(narrowest),
        })
    }

    /// How many links of a way there are before the last switch that copies or combines; `None` where their order is not
    /// known.
    fn joins(&self, used: &[Use]) -> Option<usize> {
        let topology = &self.routing.topology;
        let end = |used: &Use| topology.links.get(used.resource()).map(|link| link.to);
        let begin = |used: &Use| topology.begins.get(used.resource()).copied();
        let follows = |two: &[Use]| end(&two[0]).is_some() && end(&two[0]) == begin(&two[1]);
        let in_order = used.windows(2).all(follows) && used.iter().all(|used| used.weight() == 1);
        let joins = |used: &Use| {
            end(used).is_some_and(|node| topology.joins(node, false) || topology.joins(node, true))
        };
        in_order.then(|| used.iter().rposition(joins).map_or(0, |last| last + 1))
    }
}
