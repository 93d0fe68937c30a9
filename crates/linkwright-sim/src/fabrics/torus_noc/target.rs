//! The receiving side of an interface, and the memories behind it.
//!
//! A memory channel serves accesses in order of arrival, `max(bytes / rate, least)` each. After a partial write, the next
//! write over the same virtual channel begins `partial_write` later at the earliest. A write is acknowledged `write_latency` after its data; the
//! data of a read begin to stream out `read_latency` after its start. A tile answers at once, an
//! atomic after its time at the bank.

use linkwright_core::{Bytes, BytesPerSec};

use super::config::Dram;
use super::geometry::Port;
use super::interface::Message;
use super::lane::{Packet, LANES, RESPONSE};
use super::{event, TorusNoc};
use crate::fabric::{Event, MsgKind};

impl TorusNoc {
    /// The head of a packet enters the receiving interface at `at`.
    pub(super) fn enter_interface(&mut self, id: u32, at: u64) {
        if self.memory_free.is_empty() {
            return;
        }
        let packet = &self.packets[id as usize];
        let message = &self.messages[packet.message as usize];
        if packet.response || message.kind != MsgKind::Put {
            return;
        }
        // A write streams into its memory channel while it arrives.
        if let Some(channel) = self.config.sites[message.to.index()].channel {
            let lane = packet.channel;
            let (_, end) = self.write(channel, lane, packet.payload, at);
            self.packets[id as usize].ready = end;
        }
    }

    /// Reserve a memory channel for a write that comes over the virtual channel `lane`; returns when its data begin and
    /// end. The interface works on one request of a virtual channel at a time, so a partial write delays the next write
    /// over its own channel only.
    fn write(&mut self, channel: u32, lane: u8, bytes: u32, from: u64) -> (u64, u64) {
        let dram = self.dram();
        let lane = channel as usize * LANES as usize + lane as usize;
        let (start, end) = self.access(channel, bytes, dram.write, from.max(self.lane_free[lane]));
        if u64::from(bytes) < dram.partial_below {
            self.lane_free[lane] = start + dram.partial_write.0;
        }
        (start, end)
    }

    /// Reserve a memory channel; returns when its data begin and end. Time that a short access takes
    /// beyond its data delays the next access, not its own answer.
    fn access(&mut self, channel: u32, bytes: u32, rate: BytesPerSec, from: u64) -> (u64, u64) {
        let data = rate.time(Bytes(bytes as u64));
        let least = self.dram().least;
        let free_at = &mut self.memory_free[channel as usize];
        let start = from.max(*free_at);
        *free_at = start + data.max(least).0;
        (start, start + data.0)
    }

    /// The tail of a packet is in the receiving interface.
    pub(super) fn arrive(&mut self, id: u32, now: u64) {
        let packet = &self.packets[id as usize];
        let message = packet.message;
        if packet.response {
            self.packets.remove(id);
            return self.answered(message, now);
        }
        let Message { kind, posted, .. } = self.messages[message as usize];
        if let Some(served) = self.done_at(id, now) {
            if served > now {
                self.calendar.push(served, event::ANSWER | id);
            } else {
                self.answer(id, now);
            }
            return;
        }
        let packet = &mut self.packets[id as usize];
        packet.ready = 0;
        if kind == MsgKind::Put {
            self.delivered(message, now);
        } else if kind == MsgKind::Multicast && packet.last {
            let target = self.target_index(id);
            self.report(message, Event::Delivered, target, now);
        }
        if posted {
            self.posted(id, now);
        } else {
            self.answer(id, now);
        }
    }

    /// When the bank or memory has served a request; `None` if the target has neither.
    #[inline]
    fn done_at(&mut self, id: u32, now: u64) -> Option<u64> {
        let packet = &self.packets[id as usize];
        let (ready, payload) = (packet.ready, packet.payload);
        let Message { kind, from, to, .. } = self.messages[packet.message as usize];
        let memory = match kind {
            MsgKind::Notice => return Some(now + self.config.atomic.0),
            MsgKind::Get => from,
            _ => to,
        };
        let channel = self.config.sites[memory.index()].channel?;
        if kind != MsgKind::Get {
            return Some(ready.max(now) + self.dram().write_latency.0);
        }
        let (start, end) = self.access(channel, payload, self.dram().read, now);
        let latency = self.dram().read_latency.0;
        self.packets[id as usize].ready = end + latency;
        Some(start + latency)
    }

    /// A posted packet has done its work.
    #[inline(always)] // into its arrival, because most packets then wait for nothing
    fn posted(&mut self, id: u32, now: u64) {
        let Packet { message, lane, .. } = self.packets[id as usize];
        self.packets.remove(id);
        self.release(lane);
        self.answered(message, now);
    }

    fn dram(&self) -> Dram {
        self.config
            .dram
            .expect("a site with a channel implies memory parameters")
    }

    /// The target has done its work: send the response, which goes back over the same network, if there is one.
    pub(super) fn answer(&mut self, id: u32, now: u64) {
        let packet = self.packets[id as usize];
        let Message {
            kind,
            from,
            to,
            posted,
            ..
        } = self.messages[packet.message as usize];
        let memory = self.config.sites[to.index()].channel.is_some();
        if kind == MsgKind::Notice || kind == MsgKind::Put && memory {
            self.delivered(packet.message, now);
        }
        if posted {
            return self.posted(id, now);
        }
        let (home, here) = match kind {
            MsgKind::Get => (to, from),
            MsgKind::Put | MsgKind::Notice => (from, to),
            MsgKind::Multicast => (from, self.target_of(id)),
            MsgKind::Aggregate => {
                unreachable!("routers combine nothing, so no aggregation is offered")
            }
        };
        let (home, here) = (self.place(home), self.place(here));
        let mut response = Packet {
            response: true,
            adapts: self.config.buddy_each_hop,
            payload: packet.payload,
            flit: self.link_flit,
            ..Packet::new(
                packet.message,
                packet.network,
                self.geometry.route(packet.network, here, home),
            )
        };
        if kind == MsgKind::Get {
            response.flits = self.flits(packet.payload);
            response.flit = self.messages[packet.message as usize].stream.flit.0 as u32;
            response.ready = packet.ready;
        }
        let inject = self.geometry.link(packet.network, here, Port::Inject);
        let interface = self.interface_at(packet.network, here);
        let turn = &mut self.interfaces[interface as usize].turn;
        *turn ^= 1;
        let turn = *turn ^ 1;
        response.channel = self.least_loaded(inject, turn, RESPONSE, 2);
        self.packets[id as usize] = response;
        self.request(id, inject, now);
    }

    #[inline]
    fn delivered(&mut self, id: u32, now: u64) {
        let message = &mut self.messages[id as usize];
        message.delivered += 1;
        if message.delivered == message.packets {
            self.report(id, Event::Delivered, 0, now);
        }
    }

    /// A response is back at the initiator, or a posted packet has done its work.
    #[inline]
    fn answered(&mut self, id: u32, now: u64) {
        let message = &mut self.messages[id as usize];
        message.acknowledged += 1;
        if message.acknowledged < message.answers {
            return;
        }
        let (kind, wanted) = (message.kind, message.wanted);
        if kind == MsgKind::Get {
            self.report(id, Event::Delivered, 0, now);
        }
        if wanted.acknowledged {
            self.report(id, Event::Acknowledged, 0, now);
        }
        self.messages.remove(id);
        self.in_flight -= 1;
    }
}
