//! What uneven exchanges force through the links into and out of each part of a machine.
//!
//! ```text
//!   node 0   0 1 --- NIC ===\\            counts of ranks 0 and 1 for 4 and 5 pass the NICs of nodes 0 and 2, whatever
//!   node 1   2 3 --- NIC ==== switch     the algorithm: each rank may relay, but only over these links
//!   node 2   4 5 --- NIC ===//           bytes for 4 and 5 from elsewhere / rate of the NICs of node 2
//! ```
//!
//! Even collectives load all parts alike, so that few cuts tell them all. Here the fullest part decides: every instance
//! of every level of the machine file, and of few ranks each one by itself. Its rate is the maximum flow across its
//! border, so several NICs count together, as data may change from one to another inside.

use super::arrival;
use super::demand::Demand;
use super::problem::{named, Site};
use super::Limit;
use crate::fabric::Fabric;
use crate::network::NetworkCut;
use linkwright_core::EndpointId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Links that are named.
const NAMED: usize = 2;

impl<F: Fabric + ?Sized> Site<'_, F> {
    /// The borders of parts of the machine, for an uneven exchange.
    pub(super) fn borders(&self) -> Arc<Vec<NetworkCut>> {
        let uneven = matches!(self.demand, Demand::Exchange { .. });
        if !uneven || self.character.endpoints_alike {
            return Arc::default();
        }
        let borders = || (self.network).borders(self.places(), self.networks, self.parts());
        self.memo.get(self.places_and(&[u32::MAX]), borders)
    }

    /// Of an uneven exchange, what crosses `cut` behind the first byte that can.
    pub(super) fn behind_first(
        &self,
        nodes: &[EndpointId],
        cut: Option<(&Limit, &NetworkCut)>,
    ) -> Option<Limit> {
        let uneven = matches!(self.demand, Demand::Exchange { .. });
        let (limit, cut) = cut.filter(|_| uneven && nodes.len() <= arrival::MOST)?;
        let table = self.table(nodes);
        table.across(&limit.what, cut, (limit.bytes, limit.rate?))
    }

    /// The places in each part that has some but not all of them.
    fn parts(&self) -> Vec<Vec<bool>> {
        let (places, nearness) = (self.places(), &self.setup.nearness);
        let mut parts: BTreeMap<(usize, usize), Vec<bool>> = BTreeMap::new();
        for (at, place) in places.iter().enumerate() {
            let instances = nearness.instances(place.index()).enumerate();
            let alone = (usize::MAX, at);
            let few = places.len() <= arrival::MOST;
            for part in instances.chain(few.then_some(alone)) {
                let part = parts.entry(part);
                part.or_insert_with(|| vec![false; places.len()])[at] = true;
            }
        }
        let mut parts: Vec<Vec<bool>> = parts.into_values().collect();
        parts.retain(|inside| inside.contains(&false));
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// What must leave the ranks `inside`, or enter the others where they are fewer, and over which links.
    pub(super) fn named_border(&self, inside: &[bool]) -> String {
        let others: Vec<bool> = inside.iter().map(|is| !is).collect();
        let count = |side: &[bool]| side.iter().filter(|&&is| is).count();
        let what = match count(&others) < count(inside) {
            true => named("into", &others),
            false => named("out of", inside),
        };
        let side: Vec<u32> = inside.iter().map(|&is| u32::from(is)).collect();
        let key = self.places_and(&[&[u32::MAX; 2], &side[..]].concat());
        let links = || (self.network).narrowest(self.places(), self.networks, inside);
        let links = self.memo.get(key, links);
        let first = links[..links.len().min(NAMED)].join(", ");
        match links.len() {
            0 => what,
            1 => format!("{what}, over {first}"),
            2 => format!("{what}, over both {first}"),
            count => format!("{what}, over {count} links: {first}, ..."),
        }
    }
}
