//! What moves and where it moves: packets, lanes, and jobs, the passage of one over the other.
//!
//! A lane is a link with one of its 16 virtual channels. The number of a channel is one dateline
//! bit, two class bits and one buddy bit.

use super::geometry::{Place, Port};
use super::NONE;

/// Later than any event.
pub(super) const NEVER: u64 = u64::MAX;

/// Virtual channels of a link.
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
pub(super) const TAIL_WAITS: u8 = 2;
/// The tail has left the link.
pub(super) const TAIL_LEFT: u8 = 4;
/// The head waits at the end of the link behind other packets.
pub(super) const HEAD_WAITS: u8 = 8;
/// The packet is on the tree of a multicast.
pub(super) const ON_TREE: u8 = 16;

/// A packet on one link.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub packet: u32,
    /// link * LANES + channel
    pub lane: u32,
    pub up: u32,
    /// First passage over a next link; a multicast may have several.
    pub down: u32,
    /// The next one with the same `up`.
    pub sibling: u32,
    /// Next links of the packet; granted so far; behind the tail.
    pub branches: u8,
    pub granted: u8,
    pub left: u8,
    /// Next job in the input buffer behind the link.
    pub behind: u32,
    pub flags: u8,
    pub port: Port,
    /// Flits reserved in the input buffer behind the link.
    pub reserved: u16,
    /// Flits of the packet.
    pub flits: u32,
    /// Service per flit, in ps.
    pub flit: u32,
    /// Virtual time of the link at which the service allowed so far ends.
    pub finish: u64,
    /// Service that back-pressure does not allow yet.
    pub deferred: u64,
    /// When the tail comes in from the link before; `NEVER` while unknown.
    pub tail_in: u64,
    /// When the tail arrives at the end of the link; valid once it has left.
    pub tail_at: u64,
    /// Time of the valid tail event, else `NEVER`; others of this job are stale.
    pub asked: u64,
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
    pub dateline: bool,
    /// The worm is shortened and stands still.
    pub blocked: bool,
    pub port: Port,
    /// Service per flit at the sending interface, in ps.
    pub flit: u32,
    pub head: u32,
    /// Lane asked for.
    pub lane: u32,
    /// Next packet that waits for the same lane.
    pub waits_behind: u32,
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
    pub occupied: u16,
    pub first_waiting: u32,
    pub last_waiting: u32,
    /// Jobs in the input buffer, in order.
    pub front: u32,
    pub back: u32,
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

    /// Whether nobody holds the lane, wants it or lies in the buffer behind it.
    pub fn at_rest(&self) -> bool {
        let (held, occupied) = (self.held as u32, self.occupied as u32);
        held + occupied == 0 && !self.reserved && self.first_waiting == NONE && self.front == NONE
    }

    /// How full the lane is: the packet on it and the flits behind it.
    pub fn load(&self) -> u32 {
        (self.first_waiting != NONE) as u32 * 1000 + self.held as u32 * 100 + self.occupied as u32
    }
}
