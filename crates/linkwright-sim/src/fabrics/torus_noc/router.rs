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

use super::geometry::{Place, Port};
use super::link::{Link, SCALE};
use super::{event, TorusNoc, NONE};

/// Later than any event.
const NEVER: u64 = u64::MAX;

pub(super) const LANES: u32 = 16;
/// First response channel: class bits 11.
pub(super) const RESPONSE: u8 = 6;
/// First broadcast request channel: class bits 10.
pub(super) const BROADCAST: u8 = 4;
/// Added to the channel beyond the wrap.
pub(super) const DATELINE: u8 = 8;

/// The job is in the list of its link.
pub(super) const SERVING: u8 = 1;
/// Nobody will send a tail event unless the packet moves on downstream.
const TAIL_WAITS: u8 = 2;
/// The tail has left the link.
const TAIL_LEFT: u8 = 4;
/// The head waits at the end of the link behind other packets.
const HEAD_WAITS: u8 = 8;

/// A packet on one link.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub packet: u32,
    /// link * LANES + channel
    pub lane: u32,
    up: u32,
    /// First passage over a next link; a multicast may have several.
    down: u32,
    /// The next one with the same `up`.
    sibling: u32,
    /// Next links of the packet; granted so far; behind the tail.
    pub branches: u8,
    granted: u8,
    left: u8,
    /// Next job in the input buffer behind the link.
    behind: u32,
    pub flags: u8,
    port: Port,
    /// Flits reserved in the input buffer behind the link.
    reserved: u16,
    /// Service per flit, in ps.
    flit: u32,
    /// Virtual time of the link at which the service allowed so far ends.
    pub finish: u64,
    /// Service that back-pressure does not allow yet.
    deferred: u64,
    /// When the tail comes in from the link before; `NEVER` while unknown.
    tail_in: u64,
    /// When the tail arrives at the end of the link; valid once it has left.
    tail_at: u64,
    /// Time of the valid tail event, else `NEVER`; others of this job are stale.
    asked: u64,
}

/// Where a packet is and where it goes.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub message: u32,
    pub flits: u32,
    pub payload: u32,
    pub at: Place,
    pub to: Place,
    pub network: u8,
    /// Channel without the dateline bit.
    pub channel: u8,
    pub response: bool,
    dateline: bool,
    /// The worm is shortened and stands still.
    blocked: bool,
    port: Port,
    /// Service per flit at the sending interface, in ps.
    pub flit: u32,
    head: u32,
    /// Lane asked for.
    lane: u32,
    /// Next packet that waits for the same lane.
    waits_behind: u32,
    /// Tree of a multicast and where in it, else `NONE`.
    pub tree: u32,
    pub node: u32,
    /// The last packet of its message.
    pub last: bool,
    /// Earliest time of the last flit at the sender, or of the end of the memory access.
    pub ready: u64,
}

impl Packet {
    pub fn new(message: u32, network: u8, at: Place, to: Place) -> Self {
        Packet {
            message,
            flits: 1,
            payload: 0,
            at,
            to,
            network,
            channel: 0,
            response: false,
            dateline: false,
            blocked: false,
            port: Port::Inject,
            flit: 0,
            head: NONE,
            lane: NONE,
            waits_behind: NONE,
            tree: NONE,
            node: 0,
            last: false,
            ready: 0,
        }
    }

    pub fn next_waiting(&self) -> u32 {
        self.waits_behind
    }

    /// Turn a request that has arrived into its response, which goes back over the same network.
    pub fn turn_back(&mut self, home: Place) {
        self.to = home;
        self.response = true;
        self.dateline = false;
        self.port = Port::Inject;
        self.head = NONE;
        self.tree = NONE;
        self.ready = 0;
    }
}

/// A virtual channel of a link with the input buffer behind it.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub held: u8,
    /// Packets that may hold the lane at once: 1, or more at an interface.
    pub limit: u8,
    /// Part of the reserved tree of a multicast.
    pub reserved: bool,
    /// Flits reserved in the buffer by packets that have not been granted their next lane.
    occupied: u16,
    pub first_waiting: u32,
    last_waiting: u32,
    /// Jobs in the input buffer, in order.
    front: u32,
    back: u32,
}

impl Lane {
    pub fn new(limit: u32) -> Self {
        Lane {
            held: 0,
            limit: limit as u8,
            reserved: false,
            occupied: 0,
            first_waiting: NONE,
            last_waiting: NONE,
            front: NONE,
            back: NONE,
        }
    }

    pub fn at_rest(&self) -> bool {
        let (held, occupied) = (self.held as u32, self.occupied as u32);
        held + occupied == 0 && !self.reserved && self.first_waiting == NONE && self.front == NONE
    }

    /// How full the lane is: the packet on it and the flits behind it.
    pub fn load(&self) -> u32 {
        (self.first_waiting != NONE) as u32 * 1000 + self.held as u32 * 100 + self.occupied as u32
    }
}

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
    fn free(&mut self, lane: u32, port: Port) -> bool {
        let state = &self.lanes[lane as usize];
        if state.held >= state.limit {
            return false;
        }
        port == Port::Eject || self.room(lane) > 0
    }

    /// Free flits for `lane` in the buffer behind its link; at most what one lane may take.
    #[inline]
    fn room(&mut self, lane: u32) -> u32 {
        let Some(buffers) = self.config.buffers else {
            return u32::MAX;
        };
        let link = &mut self.links[(lane / LANES) as usize];
        let occupied = self.lanes[lane as usize].occupied as u32;
        let own = buffers.guaranteed.saturating_sub(occupied);
        let taken = occupied.saturating_sub(buffers.guaranteed);
        let shared = (buffers.shared_per_channel - taken).min(link.shared_free);
        link.starved |= own + shared == 0;
        own + shared
    }

    /// Take `flits` of the buffer behind `lane`.
    #[inline]
    fn reserve(&mut self, lane: u32, flits: u32, own: u32) {
        let occupied = &mut self.lanes[lane as usize].occupied;
        let before = (*occupied as u32).max(own);
        *occupied += flits as u16;
        let after = (*occupied as u32).max(own);
        self.links[(lane / LANES) as usize].shared_free -= after - before;
    }

    /// Give `flits` of the buffer behind `lane` back.
    #[inline]
    fn give_back(&mut self, lane: u32, flits: u32, own: u32) {
        let state = &mut self.lanes[lane as usize];
        let before = (state.occupied as u32).max(own);
        state.occupied -= flits as u16;
        let after = (state.occupied as u32).max(own);
        if state.first_waiting != NONE {
            self.woken.push(lane);
        }
        let link = &mut self.links[(lane / LANES) as usize];
        link.shared_free += before - after;
        if link.starved && before > after {
            link.starved = false;
            let first = lane - lane % LANES;
            self.woken
                .extend((first..first + LANES).filter(|&other| other != lane));
        }
    }

    /// `id` takes the lane it asked for.
    fn grant(&mut self, id: u32, now: u64) {
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
                self.give_back(above.lane, above.reserved as u32, buffers.guaranteed);
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
    fn go_on(&mut self, job: u32, packet: u32, now: u64) {
        if self.packets[packet as usize].tree == NONE {
            self.request(packet, now);
        } else {
            self.branch(job, packet, now);
        }
    }

    /// The head of `id` cannot go on: let its flits fill the buffers behind it, no more.
    fn hold_back(&mut self, id: u32, now: u64) {
        let packet = self.packets[id as usize];
        if self.config.buffers.is_none() || packet.blocked {
            return;
        }
        let mut job = packet.head;
        let mut stored = 0;
        while job != NONE {
            let Job {
                lane,
                up,
                flags,
                reserved,
                flit,
                ..
            } = self.jobs[job as usize];
            stored += reserved as u32;
            if flags & TAIL_LEFT != 0 || stored >= packet.flits {
                break;
            }
            self.packets[id as usize].blocked = true;
            let link: &mut Link = &mut self.links[(lane / LANES) as usize];
            link.advance(now, &mut self.jobs);
            let Job { finish, flags, .. } = self.jobs[job as usize];
            if flags & SERVING != 0 {
                let beyond = (packet.flits - stored) as u64 * flit as u64 * SCALE;
                let rest = finish - link.virtual_now;
                let deferred = beyond.min(rest);
                self.jobs[job as usize].deferred = deferred;
                link.retime(job, finish - deferred, &mut self.jobs);
                if link.streams() > 0 {
                    self.hurry((lane / LANES) as usize, now);
                }
            }
            job = up;
        }
    }

    /// The packet has been granted a lane beyond `job`: its worm moves again.
    fn let_go(&mut self, id: u32, mut job: u32, now: u64) {
        self.packets[id as usize].blocked = false;
        while job != NONE {
            let Job {
                lane,
                up,
                flags,
                deferred,
                ..
            } = self.jobs[job as usize];
            if flags & TAIL_LEFT != 0 {
                break;
            }
            if deferred > 0 {
                let link: &mut Link = &mut self.links[(lane / LANES) as usize];
                link.advance(now, &mut self.jobs);
                self.jobs[job as usize].deferred = 0;
                let Job { finish, flags, .. } = self.jobs[job as usize];
                if flags & SERVING != 0 {
                    link.retime(job, finish + deferred, &mut self.jobs);
                } else {
                    link.serve(job, deferred, &mut self.jobs);
                }
            }
            if flags & TAIL_WAITS != 0 {
                self.jobs[job as usize].flags &= !TAIL_WAITS;
                self.ask(job, now + deferred / SCALE);
            }
            job = up;
        }
    }

    /// See at `at` whether the tail of `id` leaves its link; replaces an earlier request.
    #[inline]
    fn ask(&mut self, id: u32, at: u64) {
        self.jobs[id as usize].asked = at;
        self.calendar.push(at, event::TAIL | id);
    }

    /// A packet has paused on `link`, so the others are faster than expected: ask earlier.
    fn hurry(&mut self, link: usize, now: u64) {
        for slot in 0..self.links[link].streams() {
            let id = self.links[link].streaming(slot);
            let job = self.jobs[id as usize];
            let through = job.tail_in.max(self.links[link].reaches(job.finish));
            if job.asked != NEVER && through < job.asked {
                self.ask(id, through);
            }
            if job.up == NONE {
                continue;
            }
            let above = self.jobs[job.up as usize];
            let fits = above.reserved as u64 * job.flit as u64 * SCALE;
            let drained = self.links[link].reaches(job.finish.saturating_sub(fits));
            let drained = drained.max(above.tail_in).max(now);
            if above.asked != NEVER && above.flags & SERVING == 0 && drained < above.asked {
                self.ask(job.up, drained);
            }
        }
    }

    /// Perhaps the tail of `id` leaves its link now; if not, ask again when it may.
    pub(super) fn tail(&mut self, id: u32, now: u64) {
        if self.jobs[id as usize].asked != now {
            return;
        }
        self.jobs[id as usize].asked = NEVER;
        let job = self.jobs[id as usize];
        let link = (job.lane / LANES) as usize;
        self.links[link].advance(now, &mut self.jobs);
        let job = Job {
            flags: self.jobs[id as usize].flags,
            ..job
        };
        if job.deferred > 0 {
            self.jobs[id as usize].flags |= TAIL_WAITS;
        } else if job.flags & SERVING != 0 {
            self.ask(id, self.links[link].reaches(job.finish));
        } else if self.config.buffers.is_none()
            || job.port == Port::Eject
            || self.packets[job.packet as usize].flits <= job.reserved as u32
            || self.drained(id, &job, now)
        {
            self.leave(id, &job, now);
        }
    }

    /// Whether the flits that have not passed the next link fit the buffer; if not, see to it
    /// that the tail is asked again.
    fn drained(&mut self, id: u32, job: &Job, now: u64) -> bool {
        if job.granted < job.branches {
            self.jobs[id as usize].flags |= TAIL_WAITS;
            return false;
        }
        let mut down = job.down;
        while down != NONE {
            if !self.passed_on(id, job, down, now) {
                return false;
            }
            down = self.jobs[down as usize].sibling;
        }
        true
    }

    /// The same for one of the next links.
    fn passed_on(&mut self, id: u32, job: &Job, down: u32, now: u64) -> bool {
        let next_link = (self.jobs[down as usize].lane / LANES) as usize;
        self.links[next_link].advance(now, &mut self.jobs);
        let next = &self.jobs[down as usize];
        let link = &self.links[next_link];
        let served_later = if next.flags & SERVING != 0 {
            next.finish - link.virtual_now
        } else {
            0
        };
        let fits = job.reserved as u64 * next.flit as u64 * SCALE;
        if served_later + next.deferred <= fits {
            return true;
        }
        if next.deferred > 0 {
            self.jobs[id as usize].flags |= TAIL_WAITS;
        } else {
            let at = link.reaches(next.finish - fits);
            self.ask(id, at);
        }
        false
    }

    /// The tail leaves the link: free the lane, the buffer before it and the job before it.
    fn leave(&mut self, id: u32, job: &Job, now: u64) {
        let link = (job.lane / LANES) as usize;
        let packet = &self.packets[job.packet as usize];
        if packet.flits > 1 {
            self.links[link].wanted -= 1;
        }
        if packet.tree != NONE {
            self.passed(job.packet, now);
        }
        if job.up != NONE {
            self.pop_buffer(job.up, now);
        }
        let tail_at = now + self.latency(job.port);
        let left = &mut self.jobs[id as usize];
        left.flags |= TAIL_LEFT;
        left.up = NONE;
        left.tail_at = tail_at;
        match job.port {
            Port::Eject => {
                self.calendar.push(tail_at, event::ARRIVE | job.packet);
                self.jobs.remove(id);
                if self.packets[job.packet as usize].response {
                    self.release(job.lane);
                }
                return;
            }
            // The interface's own eject link follows its inject link.
            Port::Inject => self.injected(job.packet, (link as u32 + 1) * LANES, now),
            _ => {}
        }
        self.release(job.lane);
        let mut down = job.down;
        while down != NONE {
            self.jobs[down as usize].tail_in = tail_at;
            self.ask(down, tail_at);
            down = self.jobs[down as usize].sibling;
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
    fn pop_buffer(&mut self, job: u32, now: u64) {
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
