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
use super::lane::{
    Job, DATELINE, HEAD_WAITS, LANES, NEVER, ON_TREE, SERVING, TAIL_LEFT, TAIL_WAITS,
};
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
        if self.lanes[lane as usize].first_waiting == NONE {
            let room = self.admits(lane, port);
            if room > 0 {
                return self.grant(id, room, now);
            }
        }
        self.queue_up(id, lane, now);
    }

    /// `id` waits for `lane`, behind those who wait already.
    #[inline(never)]
    fn queue_up(&mut self, id: u32, lane: u32, now: u64) {
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
            if first == NONE {
                return;
            }
            let room = self.admits(lane, self.packets[first as usize].port);
            if room == 0 {
                return;
            }
            self.lanes[lane as usize].first_waiting = self.packets[first as usize].waits_behind;
            self.grant(first, room, now);
        }
    }

    /// Flits for which there is room behind `lane`; 0 if no packet may enter it now.
    #[inline]
    fn admits(&mut self, lane: u32, port: Port) -> u32 {
        let state = &self.lanes[lane as usize];
        if state.held >= state.limit {
            return 0;
        }
        match port {
            Port::Eject => u32::MAX,
            _ => self.room(lane),
        }
    }

    /// `id` takes the lane it asked for, with `room` flits behind it.
    fn grant(&mut self, id: u32, room: u32, now: u64) {
        let packet = &mut self.packets[id as usize];
        let (lane, port, up, flits) = (packet.lane, packet.port, packet.head, packet.flits);
        let (payload, ready, blocked) = (packet.payload, packet.ready, packet.blocked);
        let flit = match port {
            Port::Inject => packet.flit,
            _ => self.link_flit,
        };
        let mut flags = if packet.tree == NONE { 0 } else { ON_TREE };
        if port != Port::Eject {
            let (next, wraps) = self.geometry.step(packet.at, port);
            packet.at = next;
            packet.dateline |= wraps;
        }
        let new = self.jobs.next();
        packet.head = new;
        let link = (lane / LANES) as usize;
        let work = flits as u64 * flit as u64;
        self.table.busy_ps[link] += work;
        if flits > 1 {
            self.table.bytes[link] += payload as u64;
        }
        let server = &mut self.links[link];
        server.advance(now, &mut self.jobs);
        let finish = server.join(new, work * SCALE);
        let alone = match server.streams() {
            1 => now + work,
            _ => server.reaches(finish),
        };
        flags |= SERVING;
        // The tail cannot leave before that; `NEVER` where another event will tell.
        let (mut tail_in, mut asked, mut sibling) = (NEVER, NEVER, NONE);
        let mut above = None;
        if up == NONE {
            (tail_in, asked) = (ready, alone.max(ready));
        } else {
            let job = &mut self.jobs[up as usize];
            sibling = std::mem::replace(&mut job.down, new);
            job.granted += 1;
            if job.flags & TAIL_LEFT != 0 {
                (tail_in, asked) = (job.tail_at, alone.max(job.tail_at));
            }
            let last = job.granted == job.branches;
            above = Some((last, job.lane, job.reserved as u32, job.flags));
        }
        let reserved = match port {
            Port::Eject => u16::MAX as u32,
            _ => room.min(flits),
        };
        self.jobs.insert(Job {
            packet: id,
            lane,
            up,
            down: NONE,
            sibling,
            branches: 1,
            granted: 0,
            left: 0,
            behind: NONE,
            flags,
            port,
            reserved: reserved as u16,
            flits,
            flit,
            finish,
            deferred: 0,
            tail_in,
            tail_at: 0,
            asked,
        });
        if port == Port::Eject {
            self.lanes[lane as usize].held += 1;
            self.enter_interface(id, now + self.config.interface_in.0);
        } else {
            self.enter_buffer(new, lane, reserved);
            let at = now + self.latency(port);
            self.calendar.push(at, event::HEAD | new);
        }
        if asked != NEVER {
            self.calendar.push(asked, event::TAIL | new);
        }
        let Some((last, lane, reserved, flags)) = above else {
            return;
        };
        if let Some(buffers) = self.config.buffers.filter(|_| last) {
            self.give_back(lane, reserved, buffers.guaranteed, now);
        }
        if blocked || flags & TAIL_WAITS != 0 {
            self.let_go(id, up, now);
        }
    }

    /// `job` holds `lane` and the last place in the buffer behind it, where it reserves some flits.
    #[inline]
    fn enter_buffer(&mut self, job: u32, lane: u32, reserved: u32) {
        let state = &mut self.lanes[lane as usize];
        state.held += 1;
        let last = std::mem::replace(&mut state.back, job);
        if state.front == NONE {
            state.front = job;
        } else {
            self.jobs[last as usize].behind = job;
        }
        if let Some(buffers) = self.config.buffers {
            self.reserve(lane, reserved, buffers.guaranteed);
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
