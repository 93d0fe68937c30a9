//! What all pairs together can carry over each link.
//!
//! Messages of one pair follow each other, so a pair moves no more than one message may. A link of one pair, such as
//! NVLink, carries no more than that, whatever its own rate.

use super::pairs::Key;
use super::routes::Routes;
use crate::network::{Way, Ways};
use linkwright_core::EndpointId;
use std::sync::Arc;

/// Most endpoints of which all pairs are looked at.
const MOST: u32 = 72;

impl Routes {
    /// By link, the most bytes per second that messages on `networks` carry. It is the rate of the link where that is
    /// all that is known: on large machines, and where messages may leave their connection.
    pub fn carried(&mut self, networks: &[u8]) -> Arc<[u64]> {
        if let Some(known) = self.carried.get(networks) {
            return known.clone();
        }
        let found: Arc<[u64]> = self.work_out(networks).into();
        self.carried.insert(networks.to_vec(), found.clone());
        found
    }

    fn work_out(&mut self, networks: &[u8]) -> Vec<u64> {
        let topology = &self.routing.topology;
        let links = topology.links.len();
        let (capacity, endpoints) = (topology.capacity[..links].to_vec(), topology.endpoints);
        if endpoints > MOST || !self.is_plain() {
            return capacity;
        }
        let mut all = vec![0u64; links];
        let pairs = (0..endpoints).flat_map(|from| (0..endpoints).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            for &network in networks {
                let key = Key { from, to, network };
                let Some(route) = self.find(key) else {
                    continue;
                };
                if self.is_spread(route) {
                    return capacity;
                }
                let (passes, most) = (self.timing(route).passes, self.timing(route).whole);
                // Passes of two messages of a pair may meet.
                let most = if passes == 1 { most } else { u64::MAX };
                let span = self.span(route, 0, passes - 1);
                for used in self.uses(span) {
                    if let Some(link) = all.get_mut(used.resource()) {
                        *link = link.saturating_add(most.saturating_mul(used.weight()));
                    }
                }
            }
        }
        let least = capacity.into_iter().zip(all);
        least.map(|(own, together)| own.min(together)).collect()
    }

    /// Whether nothing copies or combines data on their way, and no run can add routes.
    fn is_plain(&self) -> bool {
        let topology = &self.routing.topology;
        let branches = topology.copies() || topology.combines();
        // Of channels there may be more in another run.
        let channels = self.routing.transports.iter().any(|t| t.channel.is_some());
        !branches && !channels
    }

    /// The ways between `nodes` on `networks`; `None` where one of them is not fixed.
    pub fn ways(&mut self, nodes: &[EndpointId], networks: &[u8]) -> Option<Ways> {
        if !self.is_plain() {
            return None;
        }
        let mut ways = Ways {
            nodes: nodes.len(),
            capacities: self.routing.topology.capacity.clone(),
            all: Vec::new(),
        };
        let all = 0..nodes.len();
        let pairs = all
            .clone()
            .flat_map(|from| all.clone().map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            for &network in networks {
                let key = Key {
                    from: nodes[from].0,
                    to: nodes[to].0,
                    network,
                };
                let Some(route) = self.find(key) else {
                    continue;
                };
                if self.is_spread(route) {
                    return None;
                }
                let (passes, most) = (self.timing(route).passes, self.timing(route).whole);
                let used = self.uses(self.span(route, 0, passes - 1)).iter();
                let mut uses: Vec<(u32, u32)> = used
                    .map(|used| (used.resource() as u32, used.weight() as u32))
                    .collect();
                // Passes of two messages of a pair may meet.
                if passes == 1 {
                    uses.push((ways.capacities.len() as u32, 1));
                    ways.capacities.push(most);
                }
                ways.all.push(Way { from, to, uses });
            }
        }
        Some(ways)
    }
}
