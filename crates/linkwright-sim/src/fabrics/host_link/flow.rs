//! One message on its way: its pieces, and the next step of each.
//!
//! ```text
//!   DMA read    Send: request up -> Reply: completions down -> Read: at the device
//!   DMA write   Send: packet up
//!   store       Send: a line leaves the core -> Stored: packet down
//!   load        Send: request down -> Reply: completion up -> Read: at the core, then the next line
//! ```
//!
//! A flow has at most one `Send` ahead of it, so that flows that share a wire take turns.

use super::config::Config;
use super::{HostLink, Link};
use crate::fabric::Msg;
use linkwright_core::{Bytes, BytesPerSec, EndpointId, TimePs};

/// The kind of transfer that a message becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    DmaRead,
    DmaWrite,
    Store,
    Load,
    Doorbell,
    Mark,
    Inside,
    CopyRead,
    CopyWrite,
    /// A notice that crosses no link.
    Nothing,
}

/// A message under way.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub op: u32,
    pub target: u32,
    kind: Kind,
    /// The initiator, which has its own engine or core.
    actor: EndpointId,
    bytes: u64,
    /// Bytes of the descriptor that the device has still to read.
    descriptor: u64,
    /// Bytes that have set out.
    sent: u64,
    /// Bytes that have arrived.
    done: u64,
    /// When it was delivered.
    pub end: TimePs,
}

/// What happens next to a flow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The next packet, request or line sets out.
    Send(u32),
    /// Completions of a request for this many bytes come to the wire.
    Reply(u32, u64),
    /// This many bytes are read.
    Read(u32, u64),
    /// A line of this many bytes has left the core; whether it is the last.
    Stored(u32, u64, bool),
}

impl Flow {
    pub fn new(m: &Msg, kind: Kind, actor: EndpointId, target: u32, config: &Config) -> Self {
        Flow {
            op: m.op,
            target,
            kind,
            actor,
            bytes: m.bytes,
            descriptor: match kind {
                Kind::DmaRead | Kind::DmaWrite => config.descriptor,
                _ => 0,
            },
            sent: 0,
            done: 0,
            end: TimePs::ZERO,
        }
    }

    /// Take the next piece of at most `most` bytes; whether it is the last.
    fn cut(&mut self, most: u64) -> (u64, bool) {
        let piece = (self.bytes - self.sent).min(most);
        self.sent += piece;
        (piece, self.sent == self.bytes)
    }
}

impl HostLink {
    pub(super) fn begin(&mut self, now: TimePs, id: u32) {
        let Flow { kind, bytes, .. } = self.flows[id as usize];
        let link = self.config.link;
        let copy = |rate: BytesPerSec| self.config.copy_start + rate.time(Bytes(bytes));
        match kind {
            Kind::DmaRead | Kind::DmaWrite | Kind::Store | Kind::Load => {
                self.steps.push(now, Step::Send(id));
            }
            Kind::Doorbell => {
                let wire = link.write_wire(self.config.doorbell);
                self.signal(now, id, Link::Down, wire);
            }
            Kind::Mark => self.signal(now, id, Link::Up, link.write_wire(0)),
            Kind::CopyRead => self.hold(now, id, Link::Copy, copy(self.config.copy_read_rate)),
            Kind::CopyWrite => self.hold(now, id, Link::Copy, copy(self.config.copy_write_rate)),
            Kind::Inside => {
                let rate = self.config.device_rate;
                let length = rate.map_or(TimePs::ZERO, |rate| rate.time(Bytes(bytes)));
                self.hold(now, id, Link::Device, length);
            }
            Kind::Nothing => self.finish(id, now, now),
        }
    }

    /// A single posted packet.
    fn signal(&mut self, now: TimePs, id: u32, link: Link, wire: u64) {
        let (_, end) = self.packet(link, now, wire);
        self.finish(id, end, end + self.config.write_latency);
    }

    /// The whole message at once, on a resource that takes `length` for it.
    fn hold(&mut self, now: TimePs, id: u32, link: Link, length: TimePs) {
        let (start, end) = self.wires[link as usize].hold(now, length);
        self.used(link, self.flows[id as usize].bytes, (start, end));
        self.finish(id, end, end);
    }

    pub(super) fn step(&mut self, now: TimePs, step: Step) {
        match step {
            Step::Send(id) => match self.flows[id as usize].kind {
                Kind::DmaRead => self.request(now, id),
                Kind::DmaWrite if self.flows[id as usize].descriptor > 0 => self.request(now, id),
                Kind::DmaWrite => self.write(now, id),
                Kind::Store => self.store(now, id),
                _ => self.load(now, id),
            },
            Step::Reply(id, bytes) => self.reply(now, id, bytes),
            Step::Read(id, bytes) => self.read(now, id, bytes),
            Step::Stored(id, bytes, last) => {
                let wire = self.config.link.write_wire(bytes);
                let (_, end) = self.packet(Link::Down, now, wire);
                if last {
                    self.finish(id, now, end + self.config.write_latency);
                }
            }
        }
    }

    /// A device asks for its descriptor or for the next piece, if it may.
    fn request(&mut self, now: TimePs, id: u32) {
        let (flow, link) = (&mut self.flows[id as usize], self.config.link);
        let port = &mut self.ports[flow.actor.index()];
        if port.outstanding == self.config.outstanding_reads {
            port.waiting.push_back(id);
            return;
        }
        port.outstanding += 1;
        let (bytes, last) = match flow.descriptor {
            0 => flow.cut(link.max_read_request),
            descriptor => (descriptor, true),
        };
        let (_, end) = self.packet(Link::Up, now, link.request_wire(bytes));
        let reply = Step::Reply(id, bytes);
        self.steps.push(end + self.config.read_latency, reply);
        if !last {
            self.steps.push(end, Step::Send(id));
        }
    }

    fn write(&mut self, now: TimePs, id: u32) {
        let (flow, link) = (&mut self.flows[id as usize], self.config.link);
        let (actor, (bytes, last)) = (flow.actor.index(), flow.cut(link.max_payload));
        let (_, end) = self.packet(Link::Up, now, link.write_wire(bytes));
        let moved = |rate| self.ports[actor].outward.serve(now, bytes, rate).1;
        let end = end.max(self.config.dma_rate.map_or(end, moved));
        match last {
            true => self.finish(id, end, end + self.config.write_latency),
            false => self.steps.push(end, Step::Send(id)),
        }
    }

    fn store(&mut self, now: TimePs, id: u32) {
        let flow = &mut self.flows[id as usize];
        let (actor, (bytes, last)) = (flow.actor.index(), flow.cut(self.config.store_line));
        let core = &mut self.ports[actor].inward;
        let (_, end) = core.hold(now, self.config.store_interval);
        self.steps.push(end, Step::Stored(id, bytes, last));
        if !last {
            self.steps.push(end, Step::Send(id));
        }
    }

    fn load(&mut self, now: TimePs, id: u32) {
        let (bytes, _) = self.flows[id as usize].cut(self.config.store_line);
        let wire = self.config.link.request_wire(bytes);
        let (_, end) = self.packet(Link::Down, now, wire);
        let reply = Step::Reply(id, bytes);
        self.steps.push(end + self.config.read_latency, reply);
    }

    /// Completions go down to a device, or up to a core.
    fn reply(&mut self, now: TimePs, id: u32, bytes: u64) {
        let wire = self.config.link.completion_wire(bytes);
        let flow = &self.flows[id as usize];
        let (actor, kind) = (flow.actor.index(), flow.kind);
        if kind == Kind::Load {
            let (_, end) = self.packet(Link::Up, now, wire);
            self.steps.push(end, Step::Read(id, bytes));
            return;
        }
        let (start, end) = self.packet(Link::Down, now, wire);
        let moved = |rate| self.ports[actor].inward.serve(start, bytes, rate).1;
        let end = end.max(self.config.dma_rate.map_or(end, moved));
        self.steps.push(end, Step::Read(id, bytes));
    }

    fn read(&mut self, now: TimePs, id: u32, bytes: u64) {
        let flow = &mut self.flows[id as usize];
        let was_descriptor = std::mem::take(&mut flow.descriptor) > 0;
        if !was_descriptor {
            flow.done += bytes;
        }
        let over = !was_descriptor && flow.done == flow.bytes;
        if flow.kind != Kind::Load {
            let port = &mut self.ports[flow.actor.index()];
            port.outstanding -= 1;
            if let Some(waiting) = port.waiting.pop_front() {
                self.steps.push(now, Step::Send(waiting));
            }
        }
        if over {
            self.finish(id, now, now);
        } else if was_descriptor || self.flows[id as usize].kind == Kind::Load {
            self.steps.push(now, Step::Send(id));
        }
    }
}
