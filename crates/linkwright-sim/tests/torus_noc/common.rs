//! A Wormhole-like network and a loop that plays the engine, for the tests of the fabric.

use linkwright_core::{BytesPerSec, EndpointId, TimePs};
use linkwright_sim::fabric::{Done, Event, Fabric, Msg, MsgKind};
use linkwright_sim::fabrics::torus_noc::*;

pub const CYCLE: u64 = 1000;
pub const COLUMNS: [u32; 8] = [1, 2, 3, 4, 6, 7, 8, 9];
pub const ROWS: [u32; 8] = [1, 2, 3, 4, 5, 7, 8, 9];
/// Endpoint of memory channel 0 at place (0,11).
pub const MEMORY: EndpointId = EndpointId(64);

pub const FINITE: Buffers = Buffers {
    guaranteed: 1,
    shared: 48,
    shared_per_channel: 15,
};

fn stream(issue: u64, flit: u64) -> Stream {
    Stream {
        issue: TimePs(issue),
        flit: TimePs(flit),
    }
}

/// The grid of 10 x 12 places with 64 tiles (rank = row-major) and one memory channel; ideal
/// interfaces: one flit per cycle, no issue cost, so that times follow from the network alone.
pub fn grid() -> TorusNocConfig {
    let mut sites: Vec<Site> = (0..64)
        .map(|rank| Site {
            x: COLUMNS[rank % 8],
            y: ROWS[rank / 8],
            channel: None,
        })
        .collect();
    sites.push(Site {
        x: 0,
        y: 11,
        channel: Some(0),
    });
    TorusNocConfig {
        width: 10,
        height: 12,
        networks: vec![Heading::SouthEast, Heading::NorthWest],
        sites,
        flit_bytes: 32,
        packet_bytes: 8192,
        link_flit: TimePs(CYCLE),
        hop: TimePs(9 * CYCLE),
        interface_out: TimePs(5 * CYCLE),
        interface_in: TimePs(5 * CYCLE),
        channels: ChannelChoice::Static,
        buddy_each_hop: false,
        buffers: Some(FINITE),
        receive_requests: 12,
        receive_responses: 4,
        posted: false,
        multicast_linked: false,
        write: stream(0, CYCLE),
        read: stream(0, CYCLE),
        loopback: stream(0, CYCLE),
        atomic: TimePs(5 * CYCLE),
        dram: Some(Dram {
            read: BytesPerSec(32e9),
            write: BytesPerSec(32e9),
            read_latency: TimePs(0),
            write_latency: TimePs(0),
            least: TimePs(0),
            partial_below: 0,
            partial_write: TimePs(0),
        }),
    }
}

/// `width` x `height` tiles and nothing else.
pub fn torus(width: u32, height: u32, networks: &[Heading]) -> TorusNocConfig {
    let site = |i| Site {
        x: i % width,
        y: i / width,
        channel: None,
    };
    TorusNocConfig {
        width,
        height,
        networks: networks.to_vec(),
        sites: (0..width * height).map(site).collect(),
        dram: None,
        ..grid()
    }
}

pub fn put(op: u32, from: u32, to: u32, bytes: u64) -> Msg {
    Msg::new(op, MsgKind::Put, EndpointId(from), EndpointId(to), bytes)
}

/// Offer everything at time 0 and run until nothing is in flight.
pub fn run(noc: &mut TorusNoc, messages: &[Msg]) -> Vec<Done> {
    noc.offer(TimePs(0), messages);
    let mut done = Vec::new();
    while noc.next().is_some() {
        noc.advance(TimePs::MAX, &mut done);
    }
    assert_eq!(noc.in_flight(), 0, "stuck: {:#?}", noc.stuck());
    done
}

/// Time of one completion of one message, in cycles.
pub fn at(done: &[Done], op: u32, event: Event) -> f64 {
    let events: Vec<&Done> = done
        .iter()
        .filter(|d| d.op == op && d.event == event)
        .collect();
    assert_eq!(events.len(), 1, "message {op} has one {event:?}");
    events[0].at.0 as f64 / CYCLE as f64
}

/// Last acknowledgement, in cycles.
pub fn last(done: &[Done]) -> f64 {
    done.iter().map(|d| d.at.0).max().unwrap_or(0) as f64 / CYCLE as f64
}

/// A linear congruential generator.
pub struct Random(pub u64);

impl Random {
    /// A number from 0 to `bound` - 1; at most 31 bits are random.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}
