//! What a fabric tells of its links and routes, without moving anything.
//!
//! ```text
//!   limits      ports, cuts, gates, ways: what no schedule can beat
//!   synthesis   wires and what they carry: where a schedule should send
//!   the engine  which pairs have a route, and how long it is
//!   pictures    the wiring: nodes, edges, and where each link of the table is
//! ```
//!
//! All of it is about one machine and does not change while messages move. A fabric answers what it knows; each default
//! says that it is not known, and the limits that would follow from it are then left out.

use crate::msg::{Msg, MsgKind};
use linkwright_core::{Bytes, BytesPerSec, EndpointId, TimePs};
use rustc_hash::FxHashSet;

/// The links and routes of a fabric.
pub trait Network {
    /// Nodes, edges, and where each link of [`crate::fabric::Fabric::links`] is.
    fn wiring(&self) -> Wiring {
        Wiring::default()
    }

    /// Links crossed from `from` to `to` by a message on `network`.
    fn hops(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> u32 {
        1
    }

    /// Why no message gets from `from` to `to` on `network`, and the cure; `None` where one does.
    /// Asked for every pair of a schedule before it runs.
    fn no_route(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> Option<String> {
        None
    }

    /// Whether data of `sources` can be combined on the way to `targets`, by a message on `network`. Only such
    /// aggregations are offered.
    fn aggregates(&self, _sources: &[EndpointId], _targets: &[EndpointId], _network: u8) -> bool {
        false
    }

    /// How messages go from `from` to `to` on `network`; `None` where they do not, or where the fabric has no links.
    fn wire(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> Option<Wire> {
        None
    }

    /// Bytes per second of each link of [`Network::wire`].
    fn capacities(&self) -> Vec<u64> {
        Vec::new()
    }

    /// How long the initiator of `m` is at work before its first byte moves; part of what `m` takes. Zero where the
    /// fabric itself lets the messages of an initiator wait for each other.
    fn start_up(&self, _m: &Msg) -> TimePs {
        TimePs::ZERO
    }

    /// Least times of any message with data from `from` to `to`: before its first byte enters a port or crosses a cut,
    /// and between its last byte and its delivery. Zero where none is known.
    fn ends(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> (TimePs, TimePs) {
        (TimePs::ZERO, TimePs::ZERO)
    }

    /// Least time from offer to delivery of any message with data from `from` to `to`, multicasts included; `None`
    /// where it is that of an empty put or get.
    fn least(&self, _from: EndpointId, _to: EndpointId, _network: u8) -> Option<TimePs> {
        None
    }

    /// The ports of `endpoint` for messages on any of `networks`.
    fn port(&self, _endpoint: EndpointId, _networks: &[u8]) -> PortRates {
        PortRates::default()
    }

    /// Cuts that may be narrow, of the endpoints at `places`, for messages on any of `networks`. All other endpoints
    /// may relay what crosses, so a cut counts every way over them.
    fn cuts(&self, _places: &[EndpointId], _networks: &[u8]) -> Vec<NetworkCut> {
        Vec::new()
    }

    /// Every way of messages between the endpoints at `nodes` on any of `networks`, and what links carry at most.
    /// `None` where messages choose their way, where data are copied or combined on it, or where not only links count.
    fn ways(&self, _nodes: &[EndpointId], _networks: &[u8]) -> Option<Ways> {
        None
    }

    /// What the messages between all pairs of `nodes` on any of `networks` pass; `None` where that is not known, or where
    /// they choose their way.
    fn gates(&self, _nodes: &[EndpointId], _networks: &[u8]) -> Option<Vec<Gates>> {
        None
    }
}

/// A network of which nothing is known.
pub struct Unknown;

impl Network for Unknown {}

/// A network as nodes and edges. Endpoints of the machine are the first nodes, switches follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// Nodes that are no endpoints of the machine.
    pub switches: Vec<Switch>,
    /// Links in both directions.
    pub edges: Vec<Edge>,
    /// By link of [`crate::fabric::Fabric::links`], the nodes from and to which it leads, equal for a port of a node; `None` where it
    /// is at no node.
    pub places: Vec<Option<(u32, u32)>>,
    /// The nodes around a ring bus, in order.
    pub ring: Vec<u32>,
}

impl Wiring {
    /// `sides` ports of each of `endpoints` endpoints, those of one side after the other, and nothing between them.
    pub(crate) fn of_ports(endpoints: usize, sides: usize) -> Self {
        let each = (0..sides).flat_map(|_| 0..endpoints as u32);
        Wiring {
            places: each.map(|node| Some((node, node))).collect(),
            ..Wiring::default()
        }
    }

    /// Of places with endpoints at `sites` and a switch at every other one, and `links` from place to place; an edge
    /// joins any two places that a link does. `switch` describes the one at a place.
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

/// A node that is no endpoint.
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
    /// Class of links that it belongs to.
    pub class: String,
    /// Node at one end.
    pub a: u32,
    /// Node at the other end.
    pub b: u32,
    /// Bytes per second of each direction, without what framing takes, where the machine file states them.
    pub rate: Option<u64>,
}

/// The most that an endpoint sends and receives through all its links; `None` where the fabric knows no such bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortRates {
    /// Most that it sends.
    pub out: Option<BytesPerSec>,
    /// Most that it receives.
    pub into: Option<BytesPerSec>,
}

/// Some of the endpoints, and the most that crosses their border.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkCut {
    /// By endpoint asked for, whether it is inside.
    pub inside: Vec<bool>,
    /// Most that leaves.
    pub out: BytesPerSec,
    /// Most that enters.
    pub into: BytesPerSec,
}

/// How messages of a pair of endpoints go, for a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Time before the first byte moves.
    pub start: TimePs,
    /// Most bytes per second of one message.
    pub rate: u64,
    /// From the departure of the last byte to its arrival.
    pub latency: TimePs,
    /// Links of the route, and how often each byte crosses them.
    pub uses: Vec<(u32, u32)>,
}

impl Wire {
    /// Wire of a put whose time alone on the machine, `quiet`, grows by what `whole` bytes take beyond none; the rest
    /// of that time is its latency.
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
        }
    }

    /// How long a message of `bytes` takes alone, its start and latency included.
    pub fn alone(&self, bytes: u64) -> TimePs {
        self.start + BytesPerSec(self.rate as f64).time(Bytes(bytes)) + self.latency
    }
}

/// All ways of messages between some endpoints of a fabric in which links alone limit what is carried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// How many endpoints were asked for.
    pub nodes: usize,
    /// Bytes per second of each link. Where messages of a pair follow each other, what they carry together is a link,
    /// too.
    pub capacities: Vec<u64>,
    /// The ways.
    pub all: Vec<Way>,
}

/// The route of messages from one endpoint to another on one of the networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Place of the sender among the endpoints asked for.
    pub from: usize,
    /// Place of the receiver.
    pub to: usize,
    /// Links, and how often each byte crosses them.
    pub uses: Vec<(u32, u32)>,
}

/// A link, or something else that messages compete for, and the bytes per second that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its number.
    pub link: u32,
    /// Bytes per second.
    pub rate: u64,
}

/// What each byte of a message passes once for each target, also where switches copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Place of the sender among the endpoints asked for.
    pub from: usize,
    /// Place of the receiver.
    pub to: usize,
    /// The link out of the sender; the narrowest one, where that is shared with other targets.
    pub first: Gate,
    /// The narrowest.
    pub narrowest: Gate,
    /// The one with the smallest share for each pair whose messages pass it.
    pub busiest: Gate,
    /// The link into the receiver.
    pub last: Gate,
}
