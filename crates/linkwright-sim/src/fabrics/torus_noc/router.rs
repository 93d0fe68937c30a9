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
//! come through; and the flits that have not passed link k+1 fit the input buffer behind link k. A
//! packet whose head must wait runs on until the buffers behind its head are full, then pauses on
//! every link it holds (the worm stands still and takes no share of a link) until the next grant.
//!
//! An input buffer is a queue per lane: the packet in front asks for its next lane, the others
//! wait behind it.

use super::geometry::Port;
use super::lane::{
    Job, BUDDY, DATELINE, GOES_ON, HEAD_WAITS, LANES, NEVER, ON_TREE, TAIL_LEFT, TAIL_WAITS,
};
use super::{event, TorusNoc, NONE};
use linkwright_core::TimePs;

/// The state of the job on the link before, as its successor needs it.
struct Before {
    /// When its tail comes in, `NEVER` while unknown.
    tail: u64,
    flags: u8,
    lane: u32,
    reserved: u32,
}

impl Before {
    /// There is no link before; the last flit is ready at `tail`.
    fn nothing(tail: u64) -> Self {
        Before {
            tail,
            flags: 0,
            lane: 0,
            reserved: 0,
        }
    }

    /// `new` follows `up`.
    #[inline(always)]
    fn of(jobs: &mut [Job], up: u32, new: u32) -> Self {
        let job = &mut jobs[up as usize];
        let sibling = std::mem::replace(&mut job.down, new);
        let on_tree = job.flags & ON_TREE != 0;
        if on_tree {
            job.ungranted -= 1;
        }
        if job.ungranted == 0 {
            job.flags |= GOES_ON;
        }
        let before = Before {
            tail: match job.flags & TAIL_LEFT {
                0 => NEVER,
                _ => job.tail,
            },
            flags: job.flags,
            lane: job.lane,
            reserved: job.reserved,
        };
        if on_tree {
            jobs[new as usize].sibling = sibling;
        }
        before
    }
}

impl TorusNoc {
    /// The head of `id` stands in front of a router (or of its own interface) and asks for its lane
    /// of `link`.
    pub(super) fn request(&mut self, id: u32, link: u32, now: u64) {
        self.ask_for(id, link, now);
    }

    #[inline(always)] // into the event of a head, which is where most of the time goes
    fn ask_for(&mut self, id: u32, link: u32, now: u64) {
        let packet = &mut self.packets[id as usize];
        let server = &mut self.links[link as usize];
        let channel = match server.port {
            Port::Eject => packet.response as u8,
            _ => packet.channel,
        };
        let mut lane = link * LANES + channel as u32;
        if packet.flits > 1 {
            server.want();
        }
        let mut room = server.free_room(lane, self.buffers);
        if room == 0 && packet.adapts && server.port != Port::Eject {
            room = server.free_room(lane ^ BUDDY, self.buffers);
            if room > 0 {
                lane ^= BUDDY;
                packet.channel ^= BUDDY as u8;
            }
        }
        match room {
            0 => self.queue_up(id, lane, now),
            _ => self.grant(id, lane, room, now),
        }
    }

    /// `id` waits for `lane`, behind the packets already waiting.
    #[inline(never)]
    fn queue_up(&mut self, id: u32, lane: u32, now: u64) {
        let waiting = &mut self.links[(lane / LANES) as usize].lane(lane).waiting;
        let last = std::mem::replace(waiting, id);
        let first = match last {
            NONE => id,
            _ => std::mem::replace(&mut self.packets[last as usize].waits_behind, id),
        };
        self.packets[id as usize].waits_behind = first;
        self.hold_back(id, now);
    }

    /// Grant `lane` to waiting packets while it is free.
    #[inline]
    pub(super) fn wake(&mut self, lane: u32, now: u64) {
        while self.links[(lane / LANES) as usize].lane(lane).waiting != NONE
            && self.grant_first(lane, now)
        {}
    }

    /// Grant `lane` to the first waiting packet, if it is free.
    fn grant_first(&mut self, lane: u32, now: u64) -> bool {
        let link = &mut self.links[(lane / LANES) as usize];
        let last = link.lane(lane).waiting;
        let room = link.admits(lane, self.buffers);
        if room == 0 {
            return false;
        }
        let first = self.packets[last as usize].waits_behind;
        let next = self.packets[first as usize].waits_behind;
        self.packets[last as usize].waits_behind = next;
        if first == last {
            link.lane(lane).waiting = NONE;
        }
        self.grant(first, lane, room, now);
        true
    }

    /// `id` takes the lane it requested, with room for `room` flits behind it.
    #[inline(always)] // of its two callers, one is where most of the time goes
    fn grant(&mut self, id: u32, lane: u32, room: u32, now: u64) {
        let packet = &mut self.packets[id as usize];
        let server = &mut self.links[(lane / LANES) as usize];
        let (up, blocked, reserved) = (packet.head, packet.blocked, room.min(packet.flits));
        let flit = match server.port {
            Port::Inject => packet.flit,
            _ => self.link_flit,
        };
        if server.wraps {
            packet.channel |= DATELINE;
        }
        let new = self.jobs.insert(packet.passage(id, lane, flit, reserved));
        (packet.head, packet.lane) = (new, lane);
        server.advance(now);
        let through = server.carry(new, packet, flit);
        if let Some(bins) = &mut self.bins {
            let work = u64::from(packet.flits) * u64::from(flit);
            bins.serve((lane / LANES) as usize, TimePs(now), work);
        }
        let before = match up {
            NONE => Before::nothing(packet.ready),
            _ => Before::of(&mut self.jobs, up, new),
        };
        let head = now + server.latency as u64;
        server.lane(lane).held += 1;
        if server.port == Port::Eject {
            self.enter_interface(id, head);
        } else {
            if let Some(last) = server.lane(lane).line_up(new) {
                self.jobs[last as usize].behind = new;
            }
            if self.finite {
                server.reserve(lane, reserved, self.buffers.guaranteed);
            }
            self.calendar.push(head, event::HEAD | id);
        }
        if before.tail != NEVER {
            // The tail cannot leave before that.
            let job = &mut self.jobs[new as usize];
            (job.tail, job.check_at) = (before.tail, through.max(before.tail));
            self.calendar.push(job.check_at, event::TAIL | new);
        }
        // The packet goes on from the link before.
        if before.flags & GOES_ON != 0 && self.finite {
            self.give_back(up, before.lane, before.reserved, now);
        }
        if up != NONE && (blocked || before.flags & TAIL_WAITS != 0) {
            self.let_go(id, up, now);
        }
    }

    /// The head of a packet has come to the end of a link.
    #[inline]
    pub(super) fn head(&mut self, id: u32, now: u64) {
        let packet = &mut self.packets[id as usize];
        let (head, lane) = (packet.head, packet.lane);
        let link = &mut self.links[(lane / LANES) as usize];
        if link.lane(lane).front != head {
            self.jobs[head as usize].flags |= HEAD_WAITS;
            self.hold_back(id, now);
        } else if packet.tree == NONE {
            let next = link.beyond + packet.onward();
            self.ask_for(id, next, now);
        } else {
            self.branch(id, now);
        }
    }

    /// The packet is in front of its input buffer: ask for the next lane, or lanes.
    fn go_on(&mut self, id: u32, now: u64) {
        let packet = &mut self.packets[id as usize];
        if packet.tree == NONE {
            let link = self.links[(packet.lane / LANES) as usize].beyond + packet.onward();
            self.request(id, link, now);
        } else {
            self.branch(id, now);
        }
    }

    /// A holder leaves `lane`.
    #[inline]
    pub(super) fn release(&mut self, lane: u32) {
        let state = self.links[(lane / LANES) as usize].lane(lane);
        state.held -= 1;
        if state.waiting != NONE {
            self.woken.push(lane);
        }
    }

    /// `job` leaves the input buffer; the packet behind it may ask for its lane.
    #[inline]
    pub(super) fn pop_buffer(&mut self, job: u32, now: u64) {
        let state = &mut self.jobs[job as usize];
        let (lane, behind) = (state.lane, state.behind);
        if state.flags & ON_TREE != 0 {
            state.unpassed -= 1;
            if state.unpassed > 0 {
                return;
            }
        }
        let state = self.links[(lane / LANES) as usize].lane(lane);
        debug_assert_eq!(state.front, job);
        state.front = behind;
        self.jobs.remove(job);
        if behind != NONE && self.jobs[behind as usize].flags & HEAD_WAITS != 0 {
            self.jobs[behind as usize].flags &= !HEAD_WAITS;
            self.go_on(self.jobs[behind as usize].packet, now);
        }
    }
}
