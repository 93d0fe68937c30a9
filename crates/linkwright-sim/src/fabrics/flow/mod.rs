//! Messages as flows over shared links: the network inside a node, or between nodes.
//!
//! ```text
//!   GPU 0 ---+                            +--- GPU 4        a link per direction, shared
//!   GPU 1 ---+-- riser --- root ---- riser +--- GPU 5       switches forward what passes
//!                           |                               endpoints send, receive, may relay
//!                         memory
//! ```
//!
//! A message of S bytes alone on the machine takes
//!
//! ```text
//!   cut through     start + S / B + latency of the links + one packet per switch
//!   stored once     start + (S + c) / B + ...           c = min(S, chunk); see `phases`
//! ```
//!
//! with B the smallest of the links' bandwidths, what its transport can do, and the limits of
//! switches. Several messages share: `fair`, max-min (see [`fair`]), or `fifo`, one after another
//! (see [`fifo`]). Only bytes are shared; starts and latencies are not. Messages of
//! one pair on one network follow each other as on a connection: the next one moves when the one
//! before has left its source. Those of at least `turns` bytes also wait for one that comes back.
//!
//! The source is free when the last byte has left it, the data are delivered a latency later, and
//! acknowledged another latency later. The request of a get travels first; a multicast is one flow
//! per target. Start-ups are constants of the transport, not resources: a driver that handles one
//! copy after another is the path's.
//!
//! Sources: Bertsekas and Gallager, *Data Networks* (1992) for max-min; Casanova, Giersch, Legrand,
//! Quinson and Suter, "Versatile, scalable, and accurate simulation of distributed applications and
//! platforms" (JPDC 2014) for flows in place of packets.

mod branches;
mod carried;
mod cuts;
mod edges;
mod ends;
mod fair;
mod fifo;
mod file;
mod flows;
mod gates;
mod group;
mod groups;
mod job;
mod loads;
mod meeting;
mod minimal;
mod pairs;
mod phases;
mod route;
mod routes;
mod rule;
mod shared;
mod spread;
#[cfg(test)]
mod tests;
mod timing;
mod topology;
mod torus;
mod transfers;
mod trees;
mod uses;

use super::completions::Completions;
use super::slab::Slab;
use crate::error::SimError;
use crate::fabric::{
    Character, Conditions, Done, Fabric, FabricKind, LinkTable, Msg, MsgKind, Watch,
};
use crate::network::{Gates, Network, NetworkCut, PortRates, Ways, Wire, Wiring};
use crate::queue::TimeQueue;
use linkwright_core::{BytesPerSec, EndpointId, Machine, TimePs};
use pairs::Key;
use routes::Routes;
use shared::{Shared, Sharing};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use transfers::{asked, known, Connection, Remaining, Transfer, Turn, BRANCH};

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "flow",
    summary: "flows over shared links: max-min or first come first served, cut through or staged",
    description: "A graph of endpoints, switches and links. Messages are flows that share links \
                  fairly or queue for them, pass at once or are stored on the way in chunks, by the \
                  first transport that reaches their target. For the inside of a node, such as GPUs on \
                  NVLink and PCIe.",
    source: "Bertsekas and Gallager, Data Networks 1992; Casanova and others, JPDC 2014",
};

/// Whether the chunks of a transfer are one flow or a job each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkMode {
    Coalesced,
    Each,
}

/// The fabric of one machine.
pub struct Flow {
    sharing: Sharing,
    chunks: ChunkMode,
    routes: RefCell<Routes>,
    sets: Vec<Vec<EndpointId>>,
    shared: Shared,
    /// Loads of the resources; dropped when anything changes.
    table: OnceCell<LinkTable>,
    starts: TimeQueue<u32>,
    completions: Completions,
    transfers: Slab<Transfer>,
    multicasts: HashMap<u32, Remaining>,
    /// By route.
    connections: Vec<Connection>,
    turns: Vec<Turn>,
    /// By endpoint, until when its process is busy with messages.
    busy_until: Vec<TimePs>,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<Flow, SimError> {
    let described = file::read(machine)?;
    let routes = Routes::new(described.routing);
    Ok(Flow {
        table: OnceCell::new(),
        shared: Shared::new(described.sharing, &routes, Watch::default()),
        sharing: described.sharing,
        chunks: described.chunks,
        routes: RefCell::new(routes),
        sets: Vec::new(),
        starts: TimeQueue::default(),
        completions: Completions::default(),
        transfers: Slab::default(),
        multicasts: HashMap::new(),
        connections: Vec::new(),
        turns: Vec::new(),
        busy_until: Vec::new(),
    })
}

fn key(from: EndpointId, to: EndpointId, network: u8) -> Key {
    Key {
        from: from.0,
        to: to.0,
        network,
    }
}

impl Fabric for Flow {
    fn character(&self) -> Character {
        let topology = &self.routes.borrow().routing.topology;
        Character {
            multicasts_are_copies: !topology.copies() && !topology.combines(),
            combines_on_the_way: topology.combines(),
            ..Character::default()
        }
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.sets = conditions.sets.to_vec();
        let routes = self.routes.get_mut();
        routes.bundle(conditions);
        self.shared = Shared::new(self.sharing, routes, conditions.watch);
        self.table.take();
        self.starts.clear();
        self.completions.clear();
        self.transfers.clear();
        self.multicasts.clear();
        self.connections.clear();
        self.turns.clear();
        self.busy_until.clear();
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            self.completions.begin();
            if !matches!(m.kind, MsgKind::Multicast | MsgKind::Aggregate) {
                self.begin(now, m, 0, m.to);
                continue;
            }
            if let Some(branches) = self.branches(m) {
                self.begin_branches(now, m, branches);
                continue;
            }
            let set = std::mem::take(&mut self.sets[m.set as usize]);
            let remaining = Remaining {
                sending: set.len(),
                missing: set.len(),
                acknowledged: TimePs::ZERO,
            };
            self.multicasts.insert(m.op, remaining);
            for (target, &to) in (0u32..).zip(&set) {
                self.begin(now, m, target, to);
            }
            self.sets[m.set as usize] = set;
        }
    }

    fn next(&mut self) -> Option<TimePs> {
        let times = [
            self.starts.next(),
            self.shared.next(self.routes.get_mut()),
            self.completions.next(),
        ];
        times.into_iter().flatten().min()
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        self.table.take();
        loop {
            let limit = self.completions.next().map_or(until, |at| at.min(until));
            let routes = self.routes.get_mut();
            let own = [self.shared.next(routes), self.starts.next()];
            let at = match own.into_iter().flatten().min() {
                Some(at) if at <= limit => at,
                _ => return self.completions.advance(until, out),
            };
            while let Some(job) = self.shared.pop_at(at, self.routes.get_mut()) {
                self.ended(at, job);
            }
            while let Some(slot) = self.starts.pop_at(at) {
                self.started(at, slot);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.completions.in_flight()
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let each = self.chunks == ChunkMode::Each;
        let one = |to: EndpointId| {
            let mut routes = self.routes.borrow_mut();
            let route = known(&mut routes, m.from, to, m.network);
            let timing = routes.timing(route);
            timing.ahead(m.kind, m.bytes) + timing.alone(m.bytes, each) + timing.tail(m.bytes)
        };
        if let Some(branches) = self.branches(m) {
            let routes = self.routes.borrow();
            let times = branches.map(|number| {
                let branch = routes.branch(number);
                let timing = routes.timing(branch.route);
                let ahead = timing.ahead(asked(&routes, m.kind, number | BRANCH), m.bytes);
                let tails = branch.targets.iter();
                let tails = tails.map(|reached| routes.timing_number(reached.timing).tail(m.bytes));
                ahead + timing.alone(m.bytes, each) + tails.min().unwrap_or(TimePs::ZERO)
            });
            return times.min().unwrap_or(TimePs::ZERO);
        }
        match m.kind {
            MsgKind::Multicast => {
                let targets = self.sets.get(m.set as usize).into_iter().flatten();
                targets.map(|&to| one(to)).min().unwrap_or(TimePs::ZERO)
            }
            _ => one(m.to),
        }
    }

    fn links(&self) -> &LinkTable {
        self.table.get_or_init(|| {
            let routes = self.routes.borrow();
            self.shared.loads(&routes.routing.topology.resource_names)
        })
    }
}

impl Network for Flow {
    fn wiring(&self) -> Wiring {
        self.routes.borrow().routing.topology.wiring()
    }

    fn hops(&self, from: EndpointId, to: EndpointId, network: u8) -> u32 {
        let mut routes = self.routes.borrow_mut();
        let route = known(&mut routes, from, to, network);
        routes.timing(route).hops
    }

    fn wire(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<Wire> {
        let mut routes = self.routes.borrow_mut();
        let route = routes.find(key(from, to, network))?;
        let timing = routes.timing(route);
        let (start, rate, latency) = (timing.start, timing.whole, timing.latency);
        let chooses = routes.is_spread(route);
        let uses = routes.uses(routes.one_way(route)).iter();
        Some(Wire {
            start,
            rate,
            latency,
            uses: uses
                .map(|one| (one.resource() as u32, one.weight() as u32))
                .collect(),
            chooses,
        })
    }

    fn start_up(&self, m: &Msg) -> TimePs {
        let to = match m.kind {
            MsgKind::Multicast | MsgKind::Aggregate => {
                let targets = self.sets.get(m.set as usize);
                targets.and_then(|all| all.first().copied()).unwrap_or(m.to)
            }
            _ => m.to,
        };
        let mut routes = self.routes.borrow_mut();
        let route = routes.find(key(m.from, to, m.network));
        route.map_or(TimePs::ZERO, |route| routes.timing(route).lead(m.bytes))
    }

    fn ends(&self, from: EndpointId, to: EndpointId, network: u8) -> (TimePs, TimePs) {
        let mut routes = self.routes.borrow_mut();
        let route = routes.find(key(from, to, network));
        route.map_or((TimePs::ZERO, TimePs::ZERO), |route| {
            let timing = routes.timing(route);
            (timing.least_lead(), timing.latency)
        })
    }

    fn capacities(&self) -> Vec<u64> {
        self.routes.borrow().routing.topology.capacity.clone()
    }

    fn no_route(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<String> {
        (self.routes.borrow_mut()).problem(key(from, to, network))
    }

    fn port(&self, endpoint: EndpointId, networks: &[u8]) -> PortRates {
        let mut routes = self.routes.borrow_mut();
        let classes = routes.routing.classes(networks);
        let carried = routes.carried(networks);
        let rate = |out| {
            let topology = &routes.routing.topology;
            let rate = topology.port(endpoint.0, (&classes, &carried), out);
            (rate > 0).then_some(BytesPerSec(rate as f64))
        };
        PortRates {
            out: rate(true),
            into: rate(false),
        }
    }

    fn cuts(&self, places: &[EndpointId], networks: &[u8]) -> Vec<NetworkCut> {
        let mut routes = self.routes.borrow_mut();
        let carried = routes.carried(networks);
        cuts::of((&routes.routing, &carried), places, networks)
    }

    fn borders(
        &self,
        places: &[EndpointId],
        networks: &[u8],
        insides: Vec<Vec<bool>>,
    ) -> Vec<NetworkCut> {
        let mut routes = self.routes.borrow_mut();
        let carried = routes.carried(networks);
        cuts::with((&routes.routing, &carried), places, networks, insides)
    }

    fn narrowest(&self, places: &[EndpointId], networks: &[u8], inside: &[bool]) -> Vec<String> {
        let mut routes = self.routes.borrow_mut();
        let carried = routes.carried(networks);
        cuts::narrowest((&routes.routing, &carried), places, networks, inside)
    }

    fn ways(&self, nodes: &[EndpointId], networks: &[u8]) -> Option<Ways> {
        self.routes.borrow_mut().ways(nodes, networks)
    }

    fn gates(&self, nodes: &[EndpointId], networks: &[u8]) -> Option<Vec<Gates>> {
        self.routes.borrow_mut().gates(nodes, networks)
    }

    fn aggregates(&self, sources: &[EndpointId], targets: &[EndpointId], network: u8) -> bool {
        let mut routes = self.routes.borrow_mut();
        routes.aggregation(sources, targets, network).is_some()
    }
}
