//! Network interfaces: messages are cut into packets, issued, received and answered.
//!
//! A place has one interface per network, driven by one processor. The processor issues the
//! packets of its messages in order, at least `issue` apart; each kind of request has its own
//! initiator, which is busy until its packet has left the interface.
//!
//! ```text
//!   write   header + data ------------------> memory of the target
//!           <------------------------ 1 flit, acknowledgement
//!   read    1 flit ------------------------->
//!           <------------------------ header + data
//!   atomic  1 flit -------------------------> bank, 5 cycles
//!           <------------------------ 1 flit
//! ```
//!
//! Every answer travels on around the ring on the network of its request. A memory channel serves
//! accesses in order of arrival, `max(bytes / rate, least)` each, with a larger `least` for partial
//! writes. A write is acknowledged `write_latency` after its data, the data of a read begin to
//! stream out `read_latency` after its start.

use std::collections::VecDeque;

use linkwright_core::{Bytes, EndpointId, TimePs};

use super::config::{ChannelChoice, Dram, Site, Stream};
use super::geometry::{Place, Port};
use super::router::{Packet, BROADCAST, LANES, RESPONSE};
use super::{event, TorusNoc, NONE};
use crate::fabric::{Done, Event, Msg, MsgKind};

/// One interface of one place.
#[derive(Clone, Default)]
pub(super) struct Interface {
    queue: VecDeque<u32>,
    /// The processor may issue again from then on.
    free_at: u64,
    timer: bool,
    /// Bit per initiator.
    busy: u32,
    /// Channel of the last response, so that equally loaded ones take turns.
    turn: u8,
}

impl Interface {
    pub fn next_message(&self) -> Option<u32> {
        self.queue.front().copied()
    }
}

/// A message on its way.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub op: u32,
    pub kind: MsgKind,
    pub from: EndpointId,
    pub to: EndpointId,
    network: u8,
    /// Interface that issues the packets.
    pub issuer: u32,
    /// Tree of a multicast, else `NONE`.
    pub tree: u32,
    cut: Cut,
    stream: Stream,
    packets: u32,
    sent: u32,
    delivered: u32,
    acknowledged: u32,
    /// Acknowledgements expected.
    answers: u32,
}

/// Cuts a message of `runs` contiguous runs into packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    run_bytes: u64,
    /// Runs that hold one byte more.
    longer: u64,
    runs: u64,
    run: u64,
    offset: u64,
}

impl Cut {
    pub fn new(bytes: u64, runs: u32) -> Self {
        let runs = (runs as u64).clamp(1, bytes.max(1));
        Cut {
            run_bytes: bytes / runs,
            longer: bytes % runs,
            runs,
            run: 0,
            offset: 0,
        }
    }

    /// Number of packets of at most `limit` bytes.
    pub fn packets(&self, limit: u64) -> u64 {
        let of = |bytes: u64| bytes.div_ceil(limit).max(1);
        self.longer * of(self.run_bytes + 1) + (self.runs - self.longer) * of(self.run_bytes)
    }
}

impl Cut {
    /// The packets as (how many, bytes of each), the last packet in the last group.
    pub fn groups(&self, limit: u64) -> [(u64, u64); 4] {
        // A run ends with a packet of 1 to `limit` bytes (or none, if the run is empty).
        let of = |runs: u64, bytes: u64| {
            let whole = bytes.saturating_sub(1) / limit;
            [(runs * whole, limit), (runs, bytes - whole * limit)]
        };
        let long = of(self.longer, self.run_bytes + 1);
        let short = of(self.runs - self.longer, self.run_bytes);
        [long[0], long[1], short[0], short[1]]
    }

    /// Bytes of the next packet; `None` after the last.
    pub fn next(&mut self, limit: u64) -> Option<u64> {
        if self.run == self.runs {
            return None;
        }
        let run_bytes = self.run_bytes + (self.run < self.longer) as u64;
        let bytes = (run_bytes - self.offset).min(limit);
        self.offset += bytes;
        if self.offset == run_bytes {
            self.run += 1;
            self.offset = 0;
        }
        Some(bytes)
    }
}

impl TorusNoc {
    /// Time of a head from interface to interface.
    pub(super) fn way(&self, network: u8, from: Place, to: Place) -> u64 {
        let hops = self.geometry.hops(network, from, to) as u64;
        self.config.interface_out.0 + hops * self.config.hop.0 + self.config.interface_in.0
    }

    pub(super) fn place(&self, endpoint: EndpointId) -> Place {
        let Site { x, y, .. } = self.config.sites[endpoint.index()];
        Place {
            x: x as u8,
            y: y as u8,
        }
    }

    /// Who issues a message, and whom it concerns.
    pub(super) fn ends(m: &Msg) -> (EndpointId, EndpointId) {
        match m.kind {
            MsgKind::Get => (m.to, m.from),
            _ => (m.from, m.to),
        }
    }

    pub(super) fn stream(&self, m: &Msg) -> Stream {
        match m.kind {
            MsgKind::Multicast => self.config.write,
            _ if self.place(m.from) == self.place(m.to) => self.config.loopback,
            MsgKind::Get => self.config.read,
            _ => self.config.write,
        }
    }

    /// Queue a message at the interface of its initiator.
    pub(super) fn take(&mut self, m: &Msg, now: u64) {
        let (initiator, _) = Self::ends(m);
        let cut = Cut::new(m.bytes, m.runs);
        let place = self.geometry.place_index(self.place(initiator));
        let issuer = m.network as u32 * self.geometry.place_count() as u32 + place as u32;
        let packets = cut.packets(self.config.packet_bytes) as u32;
        let mut answers = packets;
        let mut tree = NONE;
        let mut to = m.to;
        if m.kind == MsgKind::Multicast {
            tree = self.tree(m.network, m.from, m.set);
            answers *= self.sets[m.set as usize].len() as u32;
            to = m.from;
        }
        let message = Message {
            op: m.op,
            kind: m.kind,
            from: m.from,
            to,
            tree,
            network: m.network,
            issuer,
            cut,
            stream: self.stream(m),
            packets,
            sent: 0,
            delivered: 0,
            acknowledged: 0,
            answers,
        };
        let id = self.messages.insert(message);
        self.interfaces[issuer as usize].queue.push_back(id);
        self.issue(issuer, now);
    }

    /// The processor of an interface issues what it can.
    pub(super) fn issue(&mut self, interface: u32, now: u64) {
        loop {
            let state = &mut self.interfaces[interface as usize];
            let Some(&id) = state.queue.front() else {
                return;
            };
            if now < state.free_at {
                if !state.timer {
                    state.timer = true;
                    self.calendar.push(state.free_at, event::ISSUE | interface);
                }
                return;
            }
            let message = &mut self.messages[id as usize];
            let initiator = 1 << initiator_of(message.kind);
            if state.busy & initiator != 0 {
                return;
            }
            let payload = message.cut.next(self.config.packet_bytes);
            let payload = payload.expect("a queued message has packets left") as u32;
            state.busy |= initiator;
            state.free_at = now + message.stream.issue.0;
            if message.cut.run == message.cut.runs {
                state.queue.pop_front();
            }
            let message = *message;
            let (home, target) = match message.kind {
                MsgKind::Get => (message.to, message.from),
                _ => (message.from, message.to),
            };
            let mut packet = Packet::new(id, message.network, self.place(home), self.place(target));
            packet.payload = payload;
            packet.flit = self.link_flit;
            if matches!(message.kind, MsgKind::Put | MsgKind::Multicast) {
                packet.flits = self.flits(payload);
                packet.flit = message.stream.flit.0 as u32;
            }
            packet.last = message.cut.run == message.cut.runs;
            packet.tree = message.tree;
            if message.tree != NONE {
                packet.channel = BROADCAST;
                let packet = self.packets.insert(packet);
                self.reserve_tree(packet, now);
                continue;
            }
            packet.channel = self.request_channel(&packet);
            let packet = self.packets.insert(packet);
            self.request(packet, now);
        }
    }

    pub(super) fn timer(&mut self, interface: u32, now: u64) {
        self.interfaces[interface as usize].timer = false;
        self.issue(interface, now);
    }

    /// Flits of a packet: the header and the payload.
    pub(super) fn flits(&self, payload: u32) -> u32 {
        1 + (payload as u64).div_ceil(self.config.flit_bytes) as u32
    }

    fn request_channel(&self, packet: &Packet) -> u8 {
        match self.config.channels {
            ChannelChoice::Static => 0,
            ChannelChoice::Dynamic => self.least_loaded(packet, 0, 4),
        }
    }

    /// Of `count` channels from `first`, the one with the fewest packets at the sender's port.
    fn least_loaded(&self, packet: &Packet, first: u8, count: u8) -> u8 {
        let link = self.geometry.link(packet.network, packet.at, Port::Inject);
        let interface = self.interface_at(packet.network, packet.at);
        let turn = self.interfaces[interface as usize].turn;
        (0..count)
            .map(|step| first + (turn + step) % count)
            .min_by_key(|&channel| {
                let lane = &self.lanes[(link * LANES + channel as u32) as usize];
                lane.load()
            })
            .unwrap_or(first)
    }

    fn interface_at(&self, network: u8, place: Place) -> u32 {
        network as u32 * self.geometry.place_count() as u32
            + self.geometry.place_index(place) as u32
    }

    /// The tail of a packet has left the sending interface; `requests` is the lane on which
    /// requests enter the same interface.
    pub(super) fn injected(&mut self, id: u32, requests: u32, now: u64) {
        let packet = self.packets[id as usize];
        let message = &mut self.messages[packet.message as usize];
        if packet.response != (message.kind != MsgKind::Get) {
            message.sent += 1;
            if message.sent == message.packets {
                self.report(packet.message, Event::SourceFree, 0, now);
            }
        }
        if packet.response {
            self.release(requests);
        } else {
            let Message { issuer, kind, .. } = self.messages[packet.message as usize];
            self.interfaces[issuer as usize].busy &= !(1 << initiator_of(kind));
            self.issue(issuer, now);
        }
    }

    /// The head of a packet enters the receiving interface at `at`.
    pub(super) fn enter_interface(&mut self, id: u32, at: u64) {
        let packet = self.packets[id as usize];
        let message = &self.messages[packet.message as usize];
        if packet.response || message.kind != MsgKind::Put {
            return;
        }
        // A write streams into its memory channel while it arrives.
        if let Some(channel) = self.config.sites[message.to.index()].channel {
            let (_, end) = self.access(channel, packet.payload, true, at);
            self.packets[id as usize].ready = end;
        }
    }

    /// Reserve a memory channel; returns when its data begin and end. What a short access takes
    /// longer than its data delays the next access, not its own answer.
    fn access(&mut self, channel: u32, bytes: u32, write: bool, from: u64) -> (u64, u64) {
        let dram = self.dram();
        let rate = if write { dram.write } else { dram.read };
        let data = rate.time(Bytes(bytes as u64));
        let partial = write && (bytes as u64) < dram.partial_below;
        let least = if partial {
            dram.partial_write
        } else {
            dram.least
        };
        let free_at = &mut self.memory_free[channel as usize];
        let start = from.max(*free_at);
        *free_at = start + data.max(least).0;
        (start, start + data.0)
    }

    /// The tail of a packet is in the receiving interface.
    pub(super) fn arrive(&mut self, id: u32, now: u64) {
        let packet = self.packets[id as usize];
        let message = self.messages[packet.message as usize];
        if packet.response {
            self.packets.remove(id);
            self.answered(packet.message, now);
            return;
        }
        let channel = match message.kind {
            MsgKind::Get => self.config.sites[message.from.index()].channel,
            _ => self.config.sites[message.to.index()].channel,
        };
        let answer_at = match (message.kind, channel) {
            (MsgKind::Notice, _) => now + self.config.atomic.0,
            (MsgKind::Get, Some(channel)) => {
                let (start, end) = self.access(channel, packet.payload, false, now);
                let latency = self.dram().read_latency.0;
                self.packets[id as usize].ready = end + latency;
                start + latency
            }
            (_, Some(_)) => packet.ready.max(now) + self.dram().write_latency.0,
            _ => {
                self.packets[id as usize].ready = 0;
                if message.kind == MsgKind::Put {
                    self.delivered(packet.message, now);
                } else if message.kind == MsgKind::Multicast && packet.last {
                    let node = &self.trees[packet.tree as usize].nodes[packet.node as usize];
                    self.report(packet.message, Event::Delivered, node.target, now);
                }
                now
            }
        };
        if answer_at == now {
            self.answer(id, now);
        } else {
            self.calendar.push(answer_at, event::ANSWER | id);
        }
    }

    fn dram(&self) -> Dram {
        self.config
            .dram
            .expect("a site with a channel implies memory parameters")
    }

    /// The target has done its work: send the response.
    pub(super) fn answer(&mut self, id: u32, now: u64) {
        let packet = self.packets[id as usize];
        let message = self.messages[packet.message as usize];
        let memory = self.config.sites[message.to.index()].channel.is_some();
        if message.kind == MsgKind::Notice || message.kind == MsgKind::Put && memory {
            self.delivered(packet.message, now);
        }
        let read = message.kind == MsgKind::Get;
        let home = self.place(if read { message.to } else { message.from });
        let mut response = packet;
        response.turn_back(home);
        response.flits = if read { self.flits(packet.payload) } else { 1 };
        response.flit = self.link_flit;
        if read {
            response.flit = message.stream.flit.0 as u32;
            response.ready = packet.ready;
        }
        response.channel = self.least_loaded(&response, RESPONSE, 2);
        let interface = self.interface_at(response.network, response.at);
        self.interfaces[interface as usize].turn ^= 1;
        self.packets[id as usize] = response;
        self.request(id, now);
    }

    fn delivered(&mut self, id: u32, now: u64) {
        let message = &mut self.messages[id as usize];
        message.delivered += 1;
        if message.delivered == message.packets {
            self.report(id, Event::Delivered, 0, now);
        }
    }

    /// A response is back at the initiator.
    fn answered(&mut self, id: u32, now: u64) {
        let message = &mut self.messages[id as usize];
        message.acknowledged += 1;
        if message.acknowledged < message.answers {
            return;
        }
        if message.kind == MsgKind::Get {
            self.report(id, Event::Delivered, 0, now);
        }
        self.report(id, Event::Acknowledged, 0, now);
        self.messages.remove(id);
        self.in_flight -= 1;
    }

    fn report(&mut self, id: u32, event: Event, target: u32, now: u64) {
        let op = self.messages[id as usize].op;
        self.done.push(Done {
            op,
            event,
            at: TimePs(now),
            target,
        });
    }
}

/// The initiators of an interface: writes, reads, atomics, multicasts.
fn initiator_of(kind: MsgKind) -> u32 {
    match kind {
        MsgKind::Put => 0,
        MsgKind::Get => 1,
        MsgKind::Notice => 2,
        MsgKind::Multicast => 3,
    }
}
