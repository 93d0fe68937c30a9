//! A device behind a PCIe link: reads, writes, doorbells, stores into its window, copies in the host.
//!
//! ```text
//!            host.copy                     pcie.down
//!   memory <-----------> core  ====================================  device: DMA engine, window
//!                                           pcie.up
//! ```
//!
//! The endpoints of a message and its initiator decide what it becomes:
//!
//! | message | becomes | wires |
//! |---|---|---|
//! | device gets from the host | DMA read: requests up, completions down, a bounded number outstanding | both |
//! | device puts to the host | DMA write: posted packets | up |
//! | core puts to the device | stores of one line each, paced by the core, one packet each | down |
//! | core gets from the device | loads, one line at a time: request and completion | both |
//! | notice to the device | doorbell: one posted packet | down |
//! | notice to the host | a posted packet without data, such as a completion mark that is polled | up |
//! | inside the host | a copy: `copy_start + bytes / rate`; a notice is instant | host.copy |
//! | inside the device | `bytes / device_rate`, or instant | device |
//!
//! Every packet passes through the wires by itself, first come, first served, so several messages
//! under way share a wire packet by packet, and the two directions are independent:
//!
//! ```text
//!   wire     packet k of a message enters when its predecessor has left: bytes with header / usable rate
//!   write    delivered = last packet has left + write_latency
//!   read     chunk of MRRS: request leaves, read_latency, completions come down;
//!            the next request follows at once while fewer than `outstanding_reads` are under way
//!   engine   a device moves at most `dma_rate` of payload, in each direction
//!   store    line k leaves the core `store_interval` after line k - 1
//! ```
//!
//! Posted packets keep their order, so a completion mark that follows data up the wire is seen after
//! them; that is why a write's source is free, and the next message may be sent, when its last packet
//! has left. Times of the packets are in [`pcie`]. Not modelled: unaligned transfers, address
//! translation, reads that overtake, link credits that run out, and several devices that share only a
//! part of the way; where a machine file names several endpoints as devices, they share the link.
//!
//! Source: Neugebauer and others, "Understanding PCIe performance for end host networking" (SIGCOMM 2018).

pub mod config;
mod flow;
pub mod pcie;
mod wire;

use super::completions::Completions;
use super::slab::Slab;
use crate::error::SimError;
use crate::fabric::{
    Character, Conditions, Done, Event, Fabric, FabricKind, LinkTable, Msg, MsgKind,
};
use crate::network::Wire as HostWire;
use crate::network::{Network, NetworkCut, Wiring};
use crate::queue::TimeQueue;
use config::{Config, Role};
use flow::{Flow, Kind};
use linkwright_core::{BytesPerSec, EndpointId, Machine, TimePs};
use std::collections::VecDeque;
use wire::Wire;

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "host_link",
    summary: "a device behind a PCIe link: DMA reads and writes, doorbells, stores, host copies",
    description: "PCIe transactions packet by packet over a full-duplex link, DMA engines with a \
                  limit of outstanding reads, stores of a processor into the window of the device, \
                  and copies in host memory. For accelerators, network cards and GPUs behind a host.",
    source: "Neugebauer and others, SIGCOMM 2018",
};

/// The shared resources, in the order of the link table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down,
    Up,
    Copy,
    Device,
}

const LINKS: [&str; 4] = ["pcie.down", "pcie.up", "host.copy", "device"];

/// The private resources of an endpoint.
#[derive(Clone, Debug, Default)]
struct Port {
    /// Engine towards the device; of a core, its stores and loads.
    inward: Wire,
    /// Engine towards the host.
    outward: Wire,
    /// Read requests under way.
    outstanding: u64,
    /// Flows that wait for the answer to one of these requests.
    waiting: VecDeque<u32>,
}

/// The model over the endpoints of a machine.
pub struct HostLink {
    config: Config,
    usable: BytesPerSec,
    wires: [Wire; 4],
    ports: Vec<Port>,
    flows: Slab<Flow>,
    sets: Vec<Vec<EndpointId>>,
    steps: TimeQueue<flow::Step>,
    completions: Completions,
    /// Multicasts: message, targets still to come, latest delivery.
    multicasts: Vec<(u32, usize, TimePs)>,
    links: LinkTable,
}

/// The fabric that `machine` describes.
pub(super) fn from_machine(machine: &Machine) -> Result<HostLink, SimError> {
    Ok(HostLink::new(Config::from_machine(machine)?))
}

impl HostLink {
    /// The model of `config`, idle.
    pub fn new(config: Config) -> Self {
        HostLink {
            usable: config.link.usable_rate(),
            wires: Default::default(),
            ports: vec![Port::default(); config.roles.len()],
            flows: Slab::default(),
            sets: Vec::new(),
            steps: TimeQueue::default(),
            completions: Completions::default(),
            multicasts: Vec::new(),
            links: LinkTable::new(LINKS.map(String::from).to_vec()),
            config,
        }
    }

    /// A packet of `bytes` with its header on a wire of the link; returns beginning and end.
    fn packet(&mut self, link: Link, now: TimePs, bytes: u64) -> (TimePs, TimePs) {
        let (start, end) = self.wires[link as usize].serve(now, bytes, self.usable);
        self.used(link, bytes, (start, end));
        (start, end)
    }

    fn used(&mut self, link: Link, bytes: u64, (from, to): (TimePs, TimePs)) {
        let index = link as usize;
        self.links.bytes[index] += bytes;
        self.links.busy(index, from, to);
        self.links.peak[index] = self.links.peak[index].max(self.wires[index].load());
    }

    /// What a message from `from` to `to` becomes.
    fn kind(&self, m: &Msg, to: EndpointId) -> Kind {
        let device = |endpoint: EndpointId| self.config.roles[endpoint.index()] == Role::Device;
        match (device(m.from), device(to), m.kind) {
            (false, true, MsgKind::Notice) => Kind::Doorbell,
            (true, false, MsgKind::Notice) => Kind::Mark,
            (_, _, MsgKind::Notice) => Kind::Nothing,
            (false, true, MsgKind::Get) => Kind::DmaRead,
            (false, true, _) => Kind::Store,
            (true, false, MsgKind::Get) => Kind::Load,
            (true, false, _) => Kind::DmaWrite,
            (true, true, _) => Kind::Inside,
            (false, false, MsgKind::Get) => Kind::CopyRead,
            (false, false, _) => Kind::CopyWrite,
        }
    }

    fn launch(&mut self, now: TimePs, m: &Msg, to: EndpointId, target: u32) {
        let kind = self.kind(m, to);
        let actor = match m.kind {
            MsgKind::Get => to,
            _ => m.from,
        };
        let flow = Flow::new(m, kind, actor, target, &self.config);
        let id = self.flows.insert(flow);
        self.begin(now, id);
    }

    /// A flow is over: all three completions of its message follow, or the delivery to one target.
    fn finish(&mut self, id: u32, source_free: TimePs, delivered: TimePs) {
        let flow = &mut self.flows[id as usize];
        flow.end = delivered;
        let (op, target) = (flow.op, flow.target);
        self.flows.remove(id);
        let Some(at) = self.multicasts.iter().position(|m| m.0 == op) else {
            self.completions.push(source_free, op, Event::SourceFree, 0);
            (self.completions).push(delivered, op, Event::Delivered, target);
            self.completions.push(delivered, op, Event::Acknowledged, 0);
            return;
        };
        (self.completions).push(delivered, op, Event::Delivered, target);
        let (_, left, latest) = &mut self.multicasts[at];
        (*left, *latest) = (*left - 1, delivered.max(*latest));
        if *left == 0 {
            let (_, _, latest) = self.multicasts.swap_remove(at);
            self.completions.push(latest, op, Event::SourceFree, 0);
            self.completions.push(latest, op, Event::Acknowledged, 0);
        }
    }
}

impl Fabric for HostLink {
    fn character(&self) -> Character {
        Character {
            piece_bytes: Some(self.config.link.max_payload),
            ..Character::default()
        }
    }

    fn network(&self) -> &dyn Network {
        self
    }

    fn reset(&mut self, conditions: &Conditions<'_>) {
        self.wires = Default::default();
        self.ports.fill(Port::default());
        self.flows.clear();
        self.sets = conditions.sets.to_vec();
        self.steps.clear();
        self.completions.clear();
        self.multicasts.clear();
        self.links.clear(conditions.watch);
    }

    fn offer(&mut self, now: TimePs, released: &[Msg]) {
        for m in released {
            self.completions.begin();
            if m.kind != MsgKind::Multicast {
                self.launch(now, m, m.to, 0);
                continue;
            }
            let set = std::mem::take(&mut self.sets[m.set as usize]);
            self.multicasts.push((m.op, set.len(), now));
            for (target, &to) in (0u32..).zip(&set) {
                self.launch(now, m, to, target);
            }
            self.sets[m.set as usize] = set;
        }
    }

    fn next(&mut self) -> Option<TimePs> {
        self.completions.next_with(&self.steps)
    }

    fn advance(&mut self, until: TimePs, out: &mut Vec<Done>) -> TimePs {
        while let Some((at, step)) = self.completions.step_due(&mut self.steps, until) {
            self.step(at, step);
        }
        self.completions.advance(until, out)
    }

    fn in_flight(&self) -> usize {
        self.completions.in_flight()
    }

    fn quiet(&self, m: &Msg) -> TimePs {
        let mut idle = HostLink::new(self.config.clone());
        idle.launch(TimePs::ZERO, m, m.to, 0);
        while let Some(at) = idle.steps.next() {
            let step = idle.steps.pop_at(at).expect("it is the next");
            idle.step(at, step);
        }
        idle.flows[0].end
    }

    fn links(&self) -> &LinkTable {
        &self.links
    }
}

impl Network for HostLink {
    /// The link is shared by all devices, and is at none of them.
    fn wiring(&self) -> Wiring {
        Wiring {
            places: vec![None; LINKS.len()],
            ..Wiring::default()
        }
    }

    /// The link, one of its directions; none inside the host or the device.
    fn wire(&self, from: EndpointId, to: EndpointId, network: u8) -> Option<HostWire> {
        let is_device = |place: EndpointId| self.config.roles[place.index()] == Role::Device;
        let uses = match (is_device(from), is_device(to)) {
            (false, true) => vec![(Link::Down as u32, 1)],
            (true, false) => vec![(Link::Up as u32, 1)],
            _ => Vec::new(),
        };
        let pair = (from, to, network);
        Some(HostWire::measured(
            |put| self.quiet(put),
            pair,
            1 << 20,
            uses,
        ))
    }

    fn capacities(&self) -> Vec<u64> {
        vec![self.usable.0 as u64; 2]
    }

    /// Devices and host, with the link between them.
    fn cuts(&self, places: &[EndpointId], _networks: &[u8]) -> Vec<NetworkCut> {
        let is_device = |place: &EndpointId| self.config.roles[place.index()] == Role::Device;
        vec![NetworkCut {
            inside: places.iter().map(is_device).collect(),
            out: self.usable,
            into: self.usable,
        }]
    }
}
