//! Packets, lanes, and jobs: passages of packets over lanes.
//!
//! A lane is a link with one of its 16 virtual channels. The number of a channel is one dateline
//! bit, two class bits and one buddy bit.

use super::geometry::Route;
use super::NONE;

/// Later than any event.
pub(super) const NEVER: u64 = u64::MAX;

/// Virtual channels of a link.
pub(super) const LANES: u32 = 16;
/// Lane of an eject link for responses; requests use the first.
pub(super) const RESPONSES: u32 = 1;
/// First response channel: class bits 11.
pub(super) const RESPONSE: u8 = 6;
/// First broadcast request channel: class bits 10.
pub(super) const BROADCAST: u8 = 4;
/// The bit of a channel that a router may flip.
pub(super) const BUDDY: u32 = 1;
/// Added to the channel beyond the wrap.
pub(super) const DATELINE: u8 = 8;

/// There is no tail event unless the packet moves on downstream.
pub(super) const TAIL_WAITS: u8 = 1;
/// The tail has left the link.
pub(super) const TAIL_LEFT: u8 = 2;
/// The head waits at the end of the link behind other packets.
pub(super) const HEAD_WAITS: u8 = 4;
/// The packet is on the tree of a multicast.
pub(super) const ON_TREE: u8 = 8;
/// The packet has been granted all its next links.
pub(super) const GOES_ON: u8 = 16;

/// A packet on one link; one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Job {
    /// When the tail comes in from the link before, `NEVER` while unknown; once it has left, when it
    /// arrives at the end of the link.
    pub tail: u64,
    /// Time of the valid tail event, else `NEVER`; others of this job are stale.
    pub check_at: u64,
    /// First passage over a next link; a multicast may have several.
    pub down: u32,
    /// The next one with the same `up`.
    pub sibling: u32,
    /// Next job in the input buffer behind the link.
    pub behind: u32,
    pub up: u32,
    pub packet: u32,
    /// link * LANES + channel
    pub lane: u32,
    /// Flits of the packet.
    pub flits: u32,
    /// Flits reserved in the input buffer behind the link, if it has one.
    pub reserved: u32,
    /// Service that back-pressure does not allow yet.
    pub deferred: u64,
    /// Service per flit, in ps.
    pub flit: u32,
    pub flags: u8,
    /// Next links of a multicast; those not yet granted; those not yet behind the tail.
    pub ungranted: u8,
    pub unpassed: u8,
}

/// A packet on its way; one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Packet {
    pub message: u32,
    pub flits: u32,
    pub payload: u32,
    /// Service per flit at the sending interface, in ps.
    pub flit: u32,
    /// The passage of the head, and its lane.
    pub head: u32,
    pub lane: u32,
    /// Next packet that waits for the same lane, the first behind the last.
    pub waits_behind: u32,
    /// Tree of a multicast and where in it, else `NONE`.
    pub tree: u32,
    pub node: u32,
    /// What is left of the way.
    pub route: Route,
    /// Earliest time of the last flit at the sender, or of the end of the memory access.
    pub ready: u64,
    pub network: u8,
    pub channel: u8,
    pub response: bool,
    /// Where its lane is taken, a router may put it on the buddy.
    pub adapts: bool,
    /// The worm is shortened and stands still.
    pub blocked: bool,
    /// The last packet of its message.
    pub last: bool,
}

impl Packet {
    pub fn new(message: u32, network: u8, route: Route) -> Self {
        Packet {
            message,
            flits: 1,
            payload: 0,
            flit: 0,
            head: NONE,
            lane: NONE,
            waits_behind: NONE,
            tree: NONE,
            node: 0,
            route,
            ready: 0,
            network,
            channel: 0,
            response: false,
            adapts: false,
            blocked: false,
            last: false,
        }
    }

    /// The passage of the packet, which is number `id`, over the link of `lane`, with this many flits reserved behind it.
    #[inline(always)]
    pub fn passage(&self, id: u32, lane: u32, flit: u32, reserved: u32) -> Job {
        Job {
            packet: id,
            lane,
            up: self.head,
            down: NONE,
            sibling: NONE,
            behind: NONE,
            flits: self.flits,
            flit,
            reserved,
            flags: if self.tree == NONE { 0 } else { ON_TREE },
            ungranted: 0,
            unpassed: 0,
            deferred: 0,
            // Until another event sets them.
            tail: NEVER,
            check_at: NEVER,
        }
    }

    /// Port slot of the next link; beyond a turn the dateline is to be crossed again.
    #[inline]
    pub fn onward(&mut self) -> u32 {
        if self.route.turns() {
            self.channel &= !DATELINE;
        }
        self.route.onward()
    }
}

/// A virtual channel of a link with the input buffer behind it.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub held: u8,
    /// Packets that may hold the lane at once: 1, or more at an interface.
    pub limit: u8,
    /// Flits reserved in the buffer by packets that have not been granted their next lane.
    pub occupied: u16,
    /// The last of the packets that wait for the lane; the first is behind it.
    pub waiting: u32,
    /// Jobs in the input buffer, in order.
    pub front: u32,
    pub back: u32,
}

impl Lane {
    pub fn new(limit: u32) -> Self {
        Lane {
            held: 0,
            limit: limit as u8,
            occupied: 0,
            waiting: NONE,
            front: NONE,
            back: NONE,
        }
    }

    /// Whether no packet holds the lane, wants it or lies in the buffer behind it.
    pub fn at_rest(&self) -> bool {
        self.held == 0 && self.occupied == 0 && self.waiting == NONE && self.front == NONE
    }

    /// `job` takes the last place in the input buffer; returns the job before it, if there is one.
    #[inline]
    pub fn line_up(&mut self, job: u32) -> Option<u32> {
        let last = std::mem::replace(&mut self.back, job);
        if self.front == NONE {
            self.front = job;
            return None;
        }
        Some(last)
    }

    /// How full the lane is: the packet on it and the flits behind it.
    pub fn load(&self) -> u32 {
        (self.waiting != NONE) as u32 * 1000 + self.held as u32 * 100 + self.occupied as u32
    }
}
