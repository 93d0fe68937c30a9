//! [`super::growth`] on a machine: over the links that its fabric names, or over the ports of ranks.

use super::arrival::Table;
use super::demand::Whole;
use super::growth::Growths;
use super::problem::{halves, moved, Site};
use super::Limit;
use crate::fabric::Fabric;
use crate::network::{Gate, Gates, PortRates};
use linkwright_core::{BytesPerSec, EndpointId};

impl<F: Fabric + ?Sized> Site<'_, F> {
    /// What can spread only from those who have it.
    pub(super) fn growth(&self, nodes: &[EndpointId], table: &Table) -> Option<Limit> {
        let Whole {
            collective,
            ranks,
            root,
            bytes,
        } = self.demand.collective()?;
        if self.character.endpoints_alike || self.places().len() != ranks as usize {
            return None;
        }
        let [high, low] = halves(self.handling);
        let more = [collective as u32, root, high, low];
        let growths = self.kept_for(nodes, &more, || {
            let gates = (self.network.gates(nodes, self.networks))
                .or_else(|| self.ports_as_gates(nodes, table))
                .unwrap_or_default();
            let combined = self.character.combines_on_the_way;
            let how = (combined, self.handling);
            Growths::new(table, &gates, (collective, root as usize), how)
        });
        growths.largest(moved(collective, ranks, bytes))
    }

    /// Ports in place of links; `None` where a rate is not known.
    fn ports_as_gates(&self, nodes: &[EndpointId], table: &Table) -> Option<Vec<Gates>> {
        let ports = (0u32..).zip(
            nodes
                .iter()
                .map(|&node| self.network.port(node, self.networks)),
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
        let copies = self.character.multicasts_are_copies;
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
