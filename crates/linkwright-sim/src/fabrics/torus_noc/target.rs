//! The receiving side of an interface, and the memories behind it.
//!
//! A memory channel serves accesses in order of arrival, `max(bytes / rate, least)` each, with a
//! larger `least` for partial writes. A write is acknowledged `write_latency` after its data; the
//! data of a read begin to stream out `read_latency` after its start. A tile answers at once, an
//! atomic after its time at the bank.

use linkwright_core::Bytes;

use super::config::Dram;
use super::lane::RESPONSE;
use super::{event, TorusNoc};
use crate::fabric::{Event, MsgKind};

impl TorusNoc {
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
