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
//! Every answer travels on around the ring on the network of its request.

use std::collections::VecDeque;

use linkwright_core::{EndpointId, TimePs};

use super::config::{ChannelChoice, Site, Stream};
use super::cut::Cut;
use super::geometry::{Place, Port};
use super::lane::{Packet, BROADCAST, LANES};
use super::{event, TorusNoc, NONE};
use crate::fabric::{Done, Event, Msg, MsgKind, Wanted};

/// One interface of one place.
#[derive(Clone, Default)]
pub(super) struct Interface {
    pub queue: VecDeque<u32>,
    /// The processor may issue again from then on.
    pub free_at: u64,
    pub timer: bool,
    /// Bit per initiator.
    pub busy: u32,
    /// Channel of the last response, so that equally loaded ones take turns.
    pub turn: u8,
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
    pub network: u8,
    /// Interface that issues the packets.
    pub issuer: u32,
    /// Tree of a multicast, else `NONE`.
    pub tree: u32,
    pub cut: Cut,
    pub stream: Stream,
    pub wanted: Wanted,
    pub packets: u32,
    pub sent: u32,
    pub delivered: u32,
    pub acknowledged: u32,
    /// Acknowledgements expected.
    pub answers: u32,
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
            wanted: m.wanted,
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
            if message.cut.is_done() {
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
            packet.last = message.cut.is_done();
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
        1 + payload.div_ceil(self.flit_bytes)
    }

    fn request_channel(&self, packet: &Packet) -> u8 {
        match self.config.channels {
            ChannelChoice::Static => 0,
            ChannelChoice::Dynamic => self.least_loaded(packet, 0, 4),
        }
    }

    /// Of `count` channels from `first`, the one with the fewest packets at the sender's port.
    pub(super) fn least_loaded(&self, packet: &Packet, first: u8, count: u8) -> u8 {
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

    pub(super) fn interface_at(&self, network: u8, place: Place) -> u32 {
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
            if message.sent == message.packets && message.wanted.source_free {
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

    pub(super) fn report(&mut self, id: u32, event: Event, target: u32, now: u64) {
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
