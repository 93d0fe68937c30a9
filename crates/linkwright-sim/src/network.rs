//! The links and routes of a fabric, described without moving anything.
//!
//! ```text
//!   limits      ports, cuts, gates, ways: what no schedule can beat
//!   synthesis   wires and their rates: where a schedule should send
//!   the engine  which pairs have a route, and how long it is
//!   pictures    the wiring: nodes, edges, and the ends of each link of the table
//! ```
//!
//! The answers describe one machine and do not change while messages move. A fabric implements what it knows; each
//! default means "not known", and the limits that would follow from it are omitted.

use crate::msg::{Msg, MsgKind};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, TimePs};
use rustc_hash::FxHashSet;

/// The links and routes of a fabric.
pub trait Network {
    /// Nodes, edges, and the ends of each link of [`crate::fabric::Fabric::links`].
    fn wiring(&self) -> Wiring {
        Wiring::default()
    }

    /// Links crossed from `from` to `to` by a message on `network`.
    fn hops(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> u32 {
        1
    }

    /// Why no message can go from `from` to `to` on `network`, and the cure; `None` if one can.
    /// Called for every pair of a schedule before it runs.
    fn no_route(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> Option<String> {
        None
    }

    /// Whether a message on `network` can combine the data of `sources` in flight to `targets`. Only such aggregations
    /// are offered.
    fn aggregates(&self, _sources: &[EndpointId], _targets: &[EndpointId], _network: u8) -> bool {
        false
    }

    /// How messages go from `from` to `to` on `network`; `None` if they cannot, or if the fabric has no links.
    fn wire(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> Option<Wire> {
        None
    }

    /// Bytes per second of each link of [`Network::wire`].
    fn capacities(&self) -> Vec<u64> {
        Vec::new()
    }

    /// How long the initiator of `m` is busy before its first byte moves, which is part of the time of `m`. Zero if the
    /// fabric itself serializes the messages of an initiator.
    fn start_up(&self, _m: &Msg) -> TimePs {
        TimePs::ZERO
    }

    /// Minimum times of any message with data from `from` to `to`: before its first byte enters a port or crosses a
    /// cut, and between its last byte and its delivery. Zero if unknown.
    fn ends(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> (TimePs, TimePs) {
        (TimePs::ZERO, TimePs::ZERO)
    }

    /// Minimum time from offer to delivery of any message with data from `from` to `to`, multicasts included; `None` if
    /// it is that of an empty put or get.
    fn least(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> Option<TimePs> {
        None
    }

    /// The ports of `endpoint` for messages on any of `networks`.
    fn port(&self, _endpoint: EndpointId, _networks: &[u8]) -> PortRates {
        PortRates::default()
    }

    /// Potentially narrow cuts of the endpoints at `places`, for messages on any of `networks`. All other endpoints may
    /// relay what crosses, so a cut includes every route through them.
    fn cuts(&self, _places: &[EndpointId], _networks: &[u8]) -> Vec<NetworkCut> {
        Vec::new()
    }

    /// Cuts with these `insides`, each a side of the endpoints at `places`; none where links are not known.
    fn borders(
        &self,
        _places: &[EndpointId],
        _networks: &[u8],
        _insides: Vec<Vec<bool>>,
    ) -> Vec<NetworkCut> {
        Vec::new()
    }

    /// Names of the links that limit the rate out of the endpoints `inside` those at `places`.
    fn narrowest(&self, _places: &[EndpointId], _networks: &[u8], _inside: &[bool]) -> Vec<String> {
        Vec::new()
    }

    /// Every route of messages between the endpoints at `nodes` on any of `networks`, and the capacities of links.
    /// `None` if messages choose their route, if data is copied or combined in flight, or if links are not the only
    /// limit.
    fn ways(&self, _nodes: &[EndpointId], _networks: &[u8]) -> Option<Ways> {
        None
    }

    /// The bottlenecks that messages between all pairs of `nodes` on any of `networks` pass; `None` if unknown, or if
    /// messages choose their route.
    fn gates(&self, _nodes: &[EndpointId], _networks: &[u8]) -> Option<Vec<Gates>> {
        None
    }
}

/// A network about which nothing is known.
pub struct Unknown;

impl Network for Unknown {}

/// A network as nodes and edges. Endpoints of the machine are the first nodes, switches follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// Nodes that are not endpoints of the machine.
    pub switches: Vec<Switch>,
    /// Links in both directions.
    pub edges: Vec<Edge>,
    /// Source and target node of each link of [`crate::fabric::Fabric::links`], equal for a port of a node; `None` if
    /// it is not at a node.
    pub places: Vec<Option<(u32, u32)>>,
    /// The nodes around a ring bus, in order.
    pub ring: Vec<u32>,
}

impl Wiring {
    /// `sides` ports for each of `endpoints` endpoints, grouped by side, with no edges between them.
    pub(crate) fn of_ports(endpoints: usize, sides: usize) -> Self {
        let each = (0..sides).flat_map(|_| 0..endpoints as u32);
        Wiring {
            places: each.map(|node| Some((node, node))).collect(),
            ..Wiring::default()
        }
    }

    /// The wiring of `places` with endpoints at `sites` and a switch at every other place, and of `links` from place to
    /// place; an edge joins any two places that a link joins. `switch` describes the switch at a place.
    pub(crate) fn between(
        places: usize,
        sites: impl Iterator<Item = usize>,
        switch: impl Fn(usize) -> Switch,
        links: impl Iterator<Item = (usize, usize)>,
    ) -> Self {
        let mut nodes = vec![None; places];
        let seated = (0u32..).zip(sites);
        let endpoints = seated.map(|(node, site)| nodes[site] = Some(node)).count() as u32;
        let free: Vec<usize> = (0..places)
            .filter(|&place| nodes[place].is_none())
            .collect();
        (endpoints..)
            .zip(&free)
            .for_each(|(node, &place)| nodes[place] = Some(node));
        let places: Vec<_> = links.map(|(from, to)| nodes[from].zip(nodes[to])).collect();
        let joined = places.iter().flatten().filter(|(from, to)| from != to);
        let mut known = FxHashSet::default();
        let edges = joined.map(|&(from, to)| (from.min(to), from.max(to)));
        let edges = edges.filter(|&ends| known.insert(ends)).map(|(a, b)| Edge {
            class: "link".into(),
            a,
            b,
            rate: None,
        });
        Wiring {
            edges: edges.collect(),
            switches: free.into_iter().map(switch).collect(),
            places,
            ring: Vec::new(),
        }
    }
}

/// A node that is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Column and row, on a grid.
    pub at: Option<(u32, u32)>,
}

/// A link in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Its class of links.
    pub class: String,
    /// Node at one end.
    pub a: u32,
    /// Node at the other end.
    pub b: u32,
    /// Bytes per second in each direction, net of framing, if the machine file states them.
    pub rate: Option<u64>,
}

/// Maximum rates at which an endpoint sends and receives through all its links; `None` if the fabric knows no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortRates {
    /// Maximum send rate.
    pub out: Option<BytesPerSec>,
    /// Maximum receive rate.
    pub into: Option<BytesPerSec>,
}

/// A subset of the endpoints, and the maximum rates across its border.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkCut {
    /// For each endpoint asked for, whether it is inside.
    pub inside: Vec<bool>,
    /// Maximum rate out.
    pub out: BytesPerSec,
    /// Maximum rate in.
    pub into: BytesPerSec,
}

/// How messages of a pair of endpoints go, for a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Time before the first byte moves.
    pub start: TimePs,
    /// Maximum bytes per second of one message.
    pub rate: u64,
    /// From the departure of the last byte to its arrival.
    pub latency: TimePs,
    /// Links of the route, and how often each byte crosses them.
    pub uses: Vec<(u32, u32)>,
    /// Whether messages may take other links than these.
    pub chooses: bool,
}

impl Wire {
    /// Derive a wire from `quiet`, the time of a put alone on the machine: an empty put gives the latency, and the
    /// additional time of `whole` bytes gives the rate.
    pub(crate) fn measured(
        quiet: impl Fn(&Msg) -> TimePs,
        (from, to, network): (EndpointId, EndpointId, u8),
        whole: u64,
        uses: Vec<(u32, u32)>,
    ) -> Self {
        let time = |bytes| {
            let put = Msg {
                network,
                ..Msg::new(0, MsgKind::Put, from, to, bytes)
            };
            quiet(&put)
        };
        let (latency, moving) = (time(0), time(whole).saturating_sub(time(0)));
        Wire {
            start: TimePs::ZERO,
            rate: (whole as f64 * 1e12 / moving.0.max(1) as f64) as u64,
            latency,
            uses,
            chooses: false,
        }
    }

    /// How long a message of `bytes` takes alone, its start and latency included.
    pub fn alone(&self, bytes: u64) -> TimePs {
        self.start + BytesPerSec(self.rate as f64).time(Bytes(bytes)) + self.latency
    }
}

/// All routes of messages between some endpoints of a fabric in which links are the only limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// How many endpoints were asked for.
    pub nodes: usize,
    /// Bytes per second of each link. If the messages of a pair are serialized, their joint rate counts as a link, too.
    pub capacities: Vec<u64>,
    /// The routes.
    pub all: Vec<Way>,
}

/// The route of messages from one endpoint to another on one of the networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the sender among the endpoints asked for.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Links, and how often each byte crosses them.
    pub uses: Vec<(u32, u32)>,
}

/// A link, or another resource that messages compete for, with its rate in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its number.
    pub link: u32,
    /// Bytes per second.
    pub rate: u64,
}

/// The bottlenecks that each byte of a message passes once for each target, even if switches copy data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Index of the sender among the endpoints asked for.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// The link out of the sender, or the narrowest bottleneck if that link also serves other targets.
    pub first: Gate,
    /// The narrowest bottleneck.
    pub narrowest: Gate,
    /// The bottleneck with the smallest share for each pair whose messages pass it.
    pub busiest: Gate,
    /// The link into the receiver.
    pub last: Gate,
}
