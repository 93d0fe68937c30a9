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
//! Every answer travels on around the ring on the network of its request. A posted request has none.

use std::collections::VecDeque;

use linkwright_core::{EndpointId, TimePs};

use super::config::{ChannelChoice, Site, Stream};
use super::cut::Cut;
use super::geometry::{Place, Port, Route};
use super::lane::Packet;
use super::{event, TorusNoc, NONE};
use crate::fabric::{Done, Event, Msg, MsgKind, Wanted};

/// One interface of one place.
#[derive(Clone)]
pub(super) struct Interface {
    /// The message with packets to issue, and those after it.
    pub current: u32,
    queue: VecDeque<Msg>,
    /// The processor may issue again from then on.
    pub free_at: u64,
    pub timer: bool,
    /// Bit per initiator.
    pub busy: u32,
    /// Channel of the last packet that was not static, so that equally loaded ones take turns.
    pub turn: u8,
}

impl Interface {
    pub fn idle() -> Self {
        Interface {
            current: NONE,
            queue: VecDeque::new(),
            free_at: 0,
            timer: false,
            busy: 0,
            turn: 0,
        }
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
    /// Its link into the network.
    pub inject: u32,
    /// From there to the target.
    pub route: Route,
    /// Tree of a multicast, else `NONE`.
    pub tree: u32,
    pub cut: Cut,
    pub stream: Stream,
    pub wanted: Wanted,
    /// The target does not answer.
    pub posted: bool,
    pub packets: u32,
    pub sent: u32,
    pub delivered: u32,
    /// Packets that have come back or, posted, have arrived.
    pub acknowledged: u32,
    /// Their final number.
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

    /// The endpoint that issues a message, and its counterpart.
    pub(super) fn ends(m: &Msg) -> (EndpointId, EndpointId) {
        match m.kind {
            MsgKind::Get => (m.to, m.from),
            _ => (m.from, m.to),
        }
    }

    #[inline]
    pub(super) fn stream(&self, kind: MsgKind, loopback: bool) -> Stream {
        match kind {
            MsgKind::Multicast => self.config.write,
            _ if loopback => self.config.loopback,
            MsgKind::Get => self.config.read,
            _ => self.config.write,
        }
    }

    /// Queue a message at the interface of its initiator.
    pub(super) fn take(&mut self, m: &Msg, now: u64) {
        let home = self.place(Self::ends(m).0);
        let issuer = self.interface_at(m.network, home);
        let interface = &mut self.interfaces[issuer as usize];
        if interface.current == NONE {
            self.begin(m, issuer);
            self.issue(issuer, now);
        } else {
            // The timer or initiator that the present message waits for makes the interface go on.
            interface.queue.push_back(*m);
        }
    }

    /// `issuer` issues the packets of a message from now on.
    fn begin(&mut self, m: &Msg, issuer: u32) {
        let (home, target) = Self::ends(m);
        let (home, target) = (self.place(home), self.place(target));
        let cut = Cut::new(m.bytes, m.runs);
        let packets = cut.packets(self.config.packet_bytes) as u32;
        let (mut answers, mut tree, mut to) = (packets, NONE, m.to);
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
            inject: self.geometry.link(m.network, home, Port::Inject),
            route: self.geometry.route(m.network, home, target),
            cut,
            stream: self.stream(m.kind, home == target),
            wanted: m.wanted,
            posted: self.config.posted && m.kind != MsgKind::Get && !m.wanted.acknowledged,
            packets,
            sent: 0,
            delivered: 0,
            acknowledged: 0,
            answers,
        };
        self.interfaces[issuer as usize].current = self.messages.insert(message);
    }

    /// The last packet of the present message has been cut: the next message's turn.
    #[inline]
    fn turn_over(&mut self, interface: u32) {
        let state = &mut self.interfaces[interface as usize];
        state.current = NONE;
        if let Some(next) = state.queue.pop_front() {
            self.begin(&next, interface);
        }
    }

    /// The processor of an interface issues as many packets as it can.
    pub(super) fn issue(&mut self, interface: u32, now: u64) {
        loop {
            let state = &mut self.interfaces[interface as usize];
            let id = state.current;
            if id == NONE {
                return;
            }
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
            let mut packet = Packet::new(id, message.network, message.route);
            packet.payload = payload;
            packet.flit = self.link_flit;
            packet.last = message.cut.is_done();
            packet.tree = message.tree;
            let inject = message.inject;
            if matches!(message.kind, MsgKind::Put | MsgKind::Multicast) {
                packet.flit = message.stream.flit.0 as u32;
                packet.flits = self.flits(payload);
            }
            if packet.last {
                self.turn_over(interface);
            }
            if packet.tree != NONE {
                let packet = self.packets.insert(packet);
                self.reserve_tree(packet, now);
                continue;
            }
            if self.config.channels == ChannelChoice::Dynamic {
                let turn = &mut self.interfaces[interface as usize].turn;
                *turn = turn.wrapping_add(1);
                let turn = turn.wrapping_sub(1);
                packet.channel = self.least_loaded(inject, turn, 0, 4);
                packet.adapts = self.config.buddy_each_hop;
            }
            let packet = self.packets.insert(packet);
            self.request(packet, inject, now);
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

    /// Of `count` channels from `first`, a power of two, the one with the fewest packets on `inject`, the
    /// sender's link; of equals the first from `turn` on.
    pub(super) fn least_loaded(&self, inject: u32, turn: u8, first: u8, count: u8) -> u8 {
        let lanes = &self.links[inject as usize].lanes;
        let (mut choice, mut least) = (first, u32::MAX);
        for step in 0..count {
            let channel = first + ((turn + step) & (count - 1));
            let load = lanes[channel as usize].load();
            if load < least {
                (choice, least) = (channel, load);
            }
            if load == 0 {
                break;
            }
        }
        choice
    }

    pub(super) fn interface_at(&self, network: u8, place: Place) -> u32 {
        network as u32 * self.geometry.place_count() as u32
            + self.geometry.place_index(place) as u32
    }

    /// The tail of a packet has left the sending interface; `requests` is the lane on which
    /// requests enter the same interface.
    pub(super) fn injected(&mut self, id: u32, requests: u32, now: u64) {
        let Packet {
            message, response, ..
        } = self.packets[id as usize];
        let state = &mut self.messages[message as usize];
        let Message { issuer, kind, .. } = *state;
        if response != (kind != MsgKind::Get) {
            state.sent += 1;
            if state.sent == state.packets && state.wanted.source_free {
                self.report(message, Event::SourceFree, 0, now);
            }
        }
        if response {
            self.release(requests);
        } else {
            let interface = &mut self.interfaces[issuer as usize];
            interface.busy &= !(1 << initiator_of(kind));
            if interface.current != NONE {
                self.issue(issuer, now);
            }
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
pub(super) fn initiator_of(kind: MsgKind) -> u32 {
    match kind {
        MsgKind::Put => 0,
        MsgKind::Get => 1,
        MsgKind::Notice => 2,
        MsgKind::Multicast => 3,
        MsgKind::Aggregate => unreachable!("routers combine nothing, so no aggregation is offered"),
    }
}
