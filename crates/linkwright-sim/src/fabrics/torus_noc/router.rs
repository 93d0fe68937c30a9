//! Routers: virtual channels, input buffers and the passage of a packet over its links.
//!
//! A packet is granted one *lane* (link, virtual channel) after the other. Each grant makes a
//! `Job`: the passage of this packet over this link, served by [`Link`]. A lane is held from the
//! grant to the tail; other lanes of the link interleave with it.
//!
//! ```text
//!   grant on link k            head at router k+1        tail off link k
//!       |---- hop latency ---------->|                        |
//!       |======= flits, 1/n of the link each ================>|--- hop latency ---> next tail
//! ```
//!
//! The tail leaves link k when three things hold: all flits are served; the tail of link k-1 has
//! come through; and what has not passed link k+1 fits the input buffer behind link k. A packet
//! whose head has to wait runs on until the buffers behind its head are full, then pauses on every
//! link it holds (the worm stands still and takes no share of a link) until the next grant.
//!
//! An input buffer is a queue per lane: the packet in front asks for its next lane, the others
//! wait behind it.

use super::geometry::Port;
use super::lane::{Job, DATELINE, HEAD_WAITS, LANES, NEVER, TAIL_LEFT, TAIL_WAITS};
use super::link::SCALE;
use super::{event, TorusNoc, NONE};

impl TorusNoc {
    /// The head of `packet` stands in front of a router (or of its own interface) and asks for
    /// the next lane of its route.
    pub(super) fn request(&mut self, id: u32, now: u64) {
        let packet = &mut self.packets[id as usize];
        let port = if packet.tree != NONE {
            let node = &self.trees[packet.tree as usize].nodes[packet.node as usize];
            packet.dateline = node.dateline;
            node.port
        } else if packet.head == NONE {
            Port::Inject
        } else {
            let port = self.geometry.toward(packet.network, packet.at, packet.to);
            packet.dateline &= port.same_axis(packet.port);
            port
        };
        packet.port = port;
        let link = self.geometry.link(packet.network, packet.at, port);
        let channel = match port {
            Port::Eject => packet.response as u8,
            _ => packet.channel + if packet.dateline { DATELINE } else { 0 },
        };
        packet.lane = link * LANES + channel as u32;
        let lane = packet.lane;
        if packet.flits > 1 {
            let wanted = &mut self.links[link as usize].wanted;
            *wanted += 1;
            let peak = &mut self.table.peak[link as usize];
            *peak = (*peak).max(*wanted);
        }
        if self.lanes[lane as usize].first_waiting == NONE && self.free(lane, port) {
            self.grant(id, now);
            return;
        }
        let waiting = &mut self.lanes[lane as usize];
        if waiting.first_waiting == NONE {
            waiting.first_waiting = id;
        } else {
            self.packets[waiting.last_waiting as usize].waits_behind = id;
        }
        waiting.last_waiting = id;
        self.packets[id as usize].waits_behind = NONE;
        self.hold_back(id, now);
    }

    /// Grant `lane` to those who wait for it, as far as it is free.
    pub(super) fn wake(&mut self, lane: u32, now: u64) {
        loop {
            let first = self.lanes[lane as usize].first_waiting;
            if first == NONE || !self.free(lane, self.packets[first as usize].port) {
                return;
            }
            self.lanes[lane as usize].first_waiting = self.packets[first as usize].waits_behind;
            self.grant(first, now);
        }
    }

    /// Whether a packet may enter `lane` now.
    #[inline]
    pub(super) fn free(&mut self, lane: u32, port: Port) -> bool {
        let state = &self.lanes[lane as usize];
        if state.held >= state.limit {
            return false;
        }
        port == Port::Eject || self.room(lane) > 0
    }

    /// `id` takes the lane it asked for.
    pub(super) fn grant(&mut self, id: u32, now: u64) {
        let packet = self.packets[id as usize];
        let (lane, port) = (packet.lane, packet.port);
        let link = lane / LANES;
        let flit = if port == Port::Inject {
            packet.flit
        } else {
            self.link_flit
        };
        let reserved = match port {
            Port::Eject => u16::MAX as u32,
            _ => self.room(lane).min(packet.flits),
        };
        let job = Job {
            packet: id,
            lane,
            up: packet.head,
            down: NONE,
            sibling: NONE,
            branches: 1,
            granted: 0,
            left: 0,
            behind: NONE,
            flags: 0,
            port,
            reserved: reserved as u16,
            flit,
            finish: 0,
            deferred: 0,
            tail_in: NEVER,
            tail_at: 0,
            asked: NEVER,
        };
        let new = self.jobs.insert(job);
        let work = packet.flits as u64 * flit as u64;
        let server = &mut self.links[link as usize];
        server.advance(now, &mut self.jobs);
        server.serve(new, work * SCALE, &mut self.jobs);
        let alone = server.reaches(self.jobs[new as usize].finish);
        self.table.busy_ps[link as usize] += work;
        if packet.flits > 1 {
            self.table.bytes[link as usize] += packet.payload as u64;
        }
        let state = &mut self.lanes[lane as usize];
        state.held += 1;
        if port != Port::Eject {
            if state.front == NONE {
                state.front = new;
            } else {
                self.jobs[state.back as usize].behind = new;
            }
            state.back = new;
            if let Some(buffers) = self.config.buffers {
                self.reserve(lane, reserved, buffers.guaranteed);
            }
            let (next, wraps) = self.geometry.step(packet.at, port);
            let moved = &mut self.packets[id as usize];
            moved.at = next;
            moved.dateline |= wraps;
            self.calendar
                .push(now + self.latency(port), event::HEAD | new);
        } else {
            self.enter_interface(id, now + self.latency(port));
        }
        self.packets[id as usize].head = new;
        let up = packet.head;
        if up == NONE {
            self.jobs[new as usize].tail_in = packet.ready;
            self.ask(new, alone.max(packet.ready));
            return;
        }
        let above = &mut self.jobs[up as usize];
        let sibling = std::mem::replace(&mut above.down, new);
        above.granted += 1;
        let above = *above;
        self.jobs[new as usize].sibling = sibling;
        if above.flags & TAIL_LEFT != 0 {
            self.jobs[new as usize].tail_in = above.tail_at;
            self.ask(new, alone.max(above.tail_at));
        }
        if above.granted == above.branches {
            if let Some(buffers) = self.config.buffers {
                self.give_back(above.lane, above.reserved as u32, buffers.guaranteed, now);
            }
        }
        if packet.blocked || above.flags & TAIL_WAITS != 0 {
            self.let_go(id, up, now);
        }
    }

    #[inline]
    pub(super) fn latency(&self, port: Port) -> u64 {
        match port {
            Port::Inject => self.config.interface_out.0,
            Port::Eject => self.config.interface_in.0,
            _ => self.config.hop.0,
        }
    }

    /// The head has come to the end of the link of `job`.
    pub(super) fn head(&mut self, job: u32, now: u64) {
        let Job { packet, lane, .. } = self.jobs[job as usize];
        if self.lanes[lane as usize].front == job {
            self.go_on(job, packet, now);
        } else {
            self.jobs[job as usize].flags |= HEAD_WAITS;
            self.hold_back(packet, now);
        }
    }

    /// The packet is in front of its input buffer: ask for the next lane, or lanes.
    #[inline]
    pub(super) fn go_on(&mut self, job: u32, packet: u32, now: u64) {
        if self.packets[packet as usize].tree == NONE {
            self.request(packet, now);
        } else {
            self.branch(job, packet, now);
        }
    }

    /// One holder less on `lane`.
    pub(super) fn release(&mut self, lane: u32) {
        let state = &mut self.lanes[lane as usize];
        state.held -= 1;
        if state.first_waiting != NONE {
            self.woken.push(lane);
        }
    }

    /// `job` leaves the input buffer; the packet behind it may ask for its lane.
    pub(super) fn pop_buffer(&mut self, job: u32, now: u64) {
        let Job {
            lane,
            behind,
            branches,
            ..
        } = self.jobs[job as usize];
        self.jobs[job as usize].left += 1;
        if self.jobs[job as usize].left < branches {
            return;
        }
        debug_assert_eq!(self.lanes[lane as usize].front, job);
        self.lanes[lane as usize].front = behind;
        self.jobs.remove(job);
        if behind != NONE && self.jobs[behind as usize].flags & HEAD_WAITS != 0 {
            self.jobs[behind as usize].flags &= !HEAD_WAITS;
            self.go_on(behind, self.jobs[behind as usize].packet, now);
        }
    }
}
