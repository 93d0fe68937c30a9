//! A two-dimensional torus of packet routers: the two networks of a Wormhole chip, or an ideal torus.
//!
//! ```text
//!    interface (x,y)      router          router          interface (x',y')
//!      processor --issue--> [ ]===16 lanes==>[ ]===========> memory
//!         ^    inject, 5 cycles   9 cycles a hop    eject, 5 cycles   |
//!         +--------------- response, onward around the ring ---------+
//! ```
//!
//! A message is cut into packets of one header flit and up to 256 data flits. A packet of L flits
//! that meets no other is delivered after
//!
//! ```text
//! t = interface_out + h * hop + interface_in + L * flit
//! ```
//!
//! and the acknowledgement, if it has one, goes on around on the same network, so that on one-way rings a
//! completion takes the same time whatever the distance. What packets do to each other follows from four rules:
//!
//! 1. A *lane* (link, virtual channel) belongs to one packet from head to tail; others wait in order.
//! 2. Lanes of one link take turns flit by flit ([`link`]).
//! 3. A packet that waits fills the finite buffers behind it and then stands still, lanes held
//!    ([`router`], [`buffer`], [`tail`]).
//! 4. Interfaces issue in order and paced ([`interface`]), receive a bounded number of packets and
//!    answer all that are not posted ([`target`]); multicasts reserve their tree first ([`multicast`]).
//!
//! Dimension order, and another channel beyond each wrap (the dateline), keep waiting packets from
//! forming a cycle. Simulated are packets, not flits: about two events per packet and link.
//!
//! Not modelled: banks of the memories, arbitration other than first come first served, the few
//! cycles by which the turns of a shared link delay a head. docs/fabrics/torus_noc.md has the
//! measured errors. Sources: Tenstorrent ISA documentation (Wormhole B0), TT-Metalium data movement
//! tests; the machine file names the source of each number.

mod buffer;
mod calendar;
mod config;
mod cut;
mod file;
mod geometry;
mod interface;
mod lane;
mod link;
mod multicast;
mod router;
mod stuck;
mod tail;
mod target;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use linkwright_core::{Bytes, EndpointId, TimePs};

use crate::bins::Bins;
use crate::fabric::{Character, Conditions, Done, Fabric, LinkTable, Msg, MsgKind, Stuck};
use crate::fabrics::slab::Slab;
use crate::network::{Network, NetworkCut, PortRates, Wire, Wiring};
use calendar::Calendar;
pub use config::{Buffers, ChannelChoice, Dram, Heading, Site, Stream, TorusNocConfig};
use cut::Cut;
pub(super) use file::from_machine;
pub use file::KIND;
use geometry::{Geometry, Place, Port};
use interface::{Interface, Message};
use lane::{Job, Lane, Packet, LANES};
use link::Link;
use multicast::Tree;

/// No job, packet or message.
const NONE: u32 = u32::MAX;

/// Added to the number of a lane: all others of its link.
const OTHERS: u32 = 1 << 31;

/// Kinds of events, in the upper bits of [`calendar::Entry::what`]; the lower bits are an index.
mod event {
    pub const KIND: u32 = 7 << 29;
    pub const HEAD: u32 = 0 << 29;
    pub const TAIL: u32 = 1 << 29;
    pub const ARRIVE: u32 = 2 << 29;
    pub const ANSWER: u32 = 3 << 29;
    pub const ISSUE: u32 = 4 << 29;
    pub const RESERVED: u32 = 5 << 29;
}

/// See the module.
pub struct TorusNoc {
    config: TorusNocConfig,
    /// Time of one flit on a mesh link, in ps.
    link_flit: u32,
    flit_bytes: u32,
    geometry: Geometry,
    calendar: Calendar,
    /// Whether the buffers of the routers are finite, and their sizes.
    finite: bool,
    buffers: Buffers,
    links: Vec<Link>,
    jobs: Slab<Job>,
    packets: Slab<Packet>,
    messages: Slab<Message>,
    interfaces: Vec<Interface>,
    memory_free: Vec<u64>,
    /// By memory channel and virtual channel: when the next write may begin.
    lane_free: Vec<u64>,
    sets: Vec<Vec<EndpointId>>,
    trees: Vec<Tree>,
    /// Trees by network, source and set.
    tree_of: BTreeMap<(u8, EndpointId, u32), u32>,
    /// Multicast packets that wait for their tree.
    unreserved: Vec<u32>,
    /// Lanes that became free during the present event; see [`OTHERS`].
    woken: Vec<u32>,
    done: Vec<Done>,
    in_flight: usize,
    /// Loads of the links; dropped when anything changes.
    table: OnceCell<LinkTable>,
    /// Busy time of the links by bins, where it is asked for.
    bins: Option<Box<Bins>>,
}

impl TorusNoc {
    /// A network at rest.
    pub fn new(config: TorusNocConfig) -> Self {
        let geometry = Geometry::new(config.width, config.height, &config.networks);
        let channels = config.sites.iter().filter_map(|site| site.channel).max();
        let memories = channels.map_or(0, |last| last as usize + 1);
        let mut noc = TorusNoc {
            link_flit: config.link_flit.0 as u32,
            flit_bytes: config.flit_bytes as u32,
            calendar: Calendar::new(),
            finite: config.buffers.is_some(),
            buffers: config.buffers.unwrap_or(Buffers {
                guaranteed: u32::MAX,
                shared: 0,
                shared_per_channel: 0,
            }),
            links: Vec::new(),
            jobs: Slab::default(),
            packets: Slab::default(),
            messages: Slab::default(),
            interfaces: Vec::new(),
            memory_free: vec![0; memories],
            lane_free: vec![0; memories * LANES as usize],
            sets: Vec::new(),
            trees: Vec::new(),
            tree_of: BTreeMap::new(),
            unreserved: Vec::new(),
            woken: Vec::new(),
            done: Vec::new(),
            in_flight: 0,
            table: OnceCell::new(),
            bins: None,
            geometry,
            config,
        };
        noc.reset(&Conditions::default());
        noc
    }

    /// Whether no packet is on its way and every channel and buffer is free.
    pub fn at_rest(&self) -> bool {
        let lanes = self.links.iter().all(Link::at_rest);
        let nothing = self.jobs.live() + self.packets.live() + self.messages.live() == 0;
        lanes && nothing && self.calendar.is_empty()
    }

    #[inline]
    fn handle(&mut self, what: u32, now: u64) {
        let index = what & !event::KIND;
        match what & event::KIND {
            event::HEAD => self.head(index, now),
            event::TAIL => self.tail(index, now),
            event::ARRIVE => self.arrive(index, now),
            event::ANSWER => self.answer(index, now),
            event::ISSUE => self.timer(index, now),
            _ => self.request_node(index, now),
        }
        if !self.woken.is_empty() {
            self.settle(now);
        }
    }

    /// Grant the lanes that became free during an event, until no more become free.
    fn settle(&mut self, now: u64) {
        let mut next = 0;
        while next < self.woken.len() {
            let lane = self.woken[next];
            next += 1;
            if lane & OTHERS == 0 {
                self.wake(lane, now);
                continue;
            }
            let (lane, first) = (lane ^ OTHERS, (lane ^ OTHERS) / LANES * LANES);
            for other in (first..first + LANES).filter(|&other| other != lane) {
                self.wake(other, now);
            }
        }
        self.woken.clear();
    }
}

impl Fabric for TorusNoc {
    fn character(&self) -> Character {
        Character {
            piece_bytes: Some(self.config.packet_bytes),
            ..Character::default()
        }
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.calendar.clear();
        let config = &self.config;
        let links = self.geometry.links().map(|(port, beyond, wraps)| {
            let latency = match port {
                Port::Inject => config.interface_out,
                Port::Eject => config.interface_in,
                _ => config.hop,
            };
            Link::new(port, wraps, beyond, latency.0 as u32, self.buffers.shared)
        });
        self.links = links.collect();
        self.bins = conditions.watch.bins(self.links.len());
        for network in 0..self.config.networks.len() as u8 {
            for site in &self.config.sites {
                let place = Place {
                    x: site.x as u8,
                    y: site.y as u8,
                };
                let eject = self.geometry.link(network, place, Port::Eject);
                let link = &mut self.links[eject as usize];
                *link.lane(0) = Lane::new(self.config.receive_requests);
                *link.lane(lane::RESPONSES) = Lane::new(self.config.receive_responses);
            }
        }
        self.jobs.clear();
        self.packets.clear();
        self.messages.clear();
        let interfaces = self.geometry.place_count() * self.config.networks.len();
        self.interfaces = vec![Interface::idle(); interfaces];
        self.memory_free.fill(0);
        self.lane_free.fill(0);
        self.sets = conditions.sets.to_vec();
        self.trees.clear();
        self.tree_of.clear();
        self.unreserved.clear();
        self.woken.clear();
        self.done.clear();
        self.in_flight = 0;
        self.table.take();
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        self.table.take();
        self.in_flight += released.len();
        for message in released {
            self.take(message, now.0);
        }
        self.settle(now.0);
    }

    fn next(&mut self) -> Option<TimePs> {
        self.calendar.peek().map(TimePs)
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        self.table.take();
        while let Some(at) = self.calendar.peek().filter(|&at| at <= until.0) {
            while let Some(what) = self.calendar.pop_at(at) {
                self.handle(what, at);
            }
            if !self.done.is_empty() {
                out.append(&mut self.done);
                return TimePs(at);
            }
        }
        until
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn stuck(&self) -> Stuck {
        Stuck {
            waiting: self.waiting(),
        }
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let (home, target) = Self::ends(m);
        let (home, target) = (self.place(home), self.place(target));
        let stream = self.stream(m.kind, home == target);
        // Issue and transfer of the packets overlap; the last one has nothing to overlap with.
        let groups = Cut::new(m.bytes, m.runs).groups(self.config.packet_bytes);
        let time = |bytes: u64| self.flits(bytes as u32) as u64 * stream.flit.0;
        let paced = |&(count, bytes): &(u64, u64)| count * time(bytes).max(stream.issue.0);
        let last = time(groups[3].1);
        let sending = groups.iter().map(paced).sum::<u64>() - last.max(stream.issue.0) + last;
        // Behind a memory channel the slower of network and memory counts, and its latency.
        let memory = self.config.sites[m.from.index()].channel;
        let memory = memory.or(self.config.sites[m.to.index()].channel);
        let through_memory = |write: bool| match (memory, self.config.dram) {
            (Some(_), Some(dram)) if write => {
                sending.max(dram.write.time(Bytes(m.bytes)).0) + dram.write_latency.0
            }
            (Some(_), Some(dram)) => {
                sending.max(dram.read.time(Bytes(m.bytes)).0) + dram.read_latency.0
            }
            _ => sending,
        };
        let flit = self.link_flit as u64;
        TimePs(match m.kind {
            MsgKind::Get => {
                let request = self.way(m.network, home, target) + flit;
                request + self.way(m.network, target, home) + through_memory(false)
            }
            MsgKind::Notice => self.way(m.network, home, target) + flit + self.config.atomic.0,
            MsgKind::Put => self.way(m.network, home, target) + through_memory(true),
            MsgKind::Multicast => {
                let targets = self.sets[m.set as usize].iter();
                let places = targets.map(|&target| self.place(target));
                let farthest = places.max_by_key(|&place| self.way(m.network, home, place));
                let farthest = farthest.unwrap_or(home);
                let way = self.way(m.network, home, farthest);
                let reservation = way + self.way(m.network, farthest, home) + 2 * flit;
                reservation + way + sending
            }
            MsgKind::Aggregate => {
                unreachable!("routers combine nothing, so no aggregation is offered")
            }
        })
    }

    fn links(&self) -> &LinkTable {
        self.table.get_or_init(|| LinkTable {
            names: self.geometry.names(),
            busy_ps: self.links.iter().map(|link| link.busy_ps).collect(),
            bytes: self.links.iter().map(|link| link.bytes).collect(),
            peak: self.links.iter().map(|link| link.peak).collect(),
            bins: self.bins.clone(),
        })
    }
}

impl Network for TorusNoc {
    fn wiring(&self) -> Wiring {
        self.geometry.wiring(&self.config.sites)
    }

    fn hops(&self, from: EndpointId, to: EndpointId, network: u8) -> u32 {
        self.geometry
            .hops(network, self.place(from), self.place(to))
    }

    /// The head of a packet must have come; what is in the interface has passed the port.
    fn ends(&self, from: EndpointId, to: EndpointId, network: u8) -> (TimePs, TimePs) {
        let memory = |at: EndpointId| self.config.sites[at.index()].channel.is_some();
        if memory(from) || memory(to) {
            return (TimePs::ZERO, TimePs::ZERO);
        }
        let way = self.way(network, self.place(from), self.place(to));
        let inside = self.config.interface_in.0;
        (TimePs(way - inside), TimePs(inside))
    }

    /// Puts of whole packets.
    fn wire(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<Wire> {
        if usize::from(network) >= self.config.networks.len() {
            return None;
        }
        let path = self
            .geometry
            .path(network, self.place(from), self.place(to));
        let uses = path.into_iter().map(|link| (link, 1)).collect();
        let whole = 64 * self.config.packet_bytes;
        Some(Wire::measured(
            |put| self.quiet(put),
            (from, to, network),
            whole,
            uses,
        ))
    }

    fn capacities(&self) -> Vec<u64> {
        vec![self.config.links(1).0 as u64; self.links.len()]
    }

    fn port(&self, endpoint: EndpointId, networks: &[u8]) -> PortRates {
        (self.config).port(&self.config.sites[endpoint.index()], networks)
    }

    fn cuts(&self, places: &[EndpointId], networks: &[u8]) -> Vec<NetworkCut> {
        let site = |place: &EndpointId| self.config.sites[place.index()];
        let sites: Vec<_> = places.iter().map(site).collect();
        self.config.cuts(&sites, networks)
    }
}
