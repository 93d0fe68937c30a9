//! Open-loop traffic on a network on chip: packets enter at a rate, regardless of earlier ones.
//!
//! Every node of an 8 x 8 torus flips a coin each cycle and offers a packet of four flits, one of them the header.
//! Hops of those flits are counted. Packets are posted; if they are acknowledged, the acknowledgements travel around as
//! well, and their hops are not counted.

use linkwright_core::{EndpointId, TimePs};
use linkwright_schedule::patterns::random::Random;
use linkwright_sim::fabric::{Conditions, Done, Event, Fabric, Msg, MsgKind, Wanted};
use linkwright_sim::fabrics::torus_noc::*;

const SIDE: u32 = 8;
const CYCLE: TimePs = TimePs(1000);
const CYCLES: u64 = 40_000;
const FLIT_BYTES: u64 = 32;
const FLITS: u64 = 4;

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Any other node, drawn for each packet.
    Uniform,
    /// The next node eastwards.
    Neighbour,
}

/// An injection rate and where it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Destination of packets.
    pub target: Target,
    /// Flits per node and 1000 cycles.
    pub permille: u32,
    /// Packets enter during 40,000 cycles divided by this.
    pub part: u64,
    /// Whether each packet is acknowledged.
    pub acknowledged: bool,
}

/// A packet and when it enters.
pub struct Packet {
    at: TimePs,
    message: Msg,
}

impl Load {
    /// A torus whose links, interfaces and routers hold a packet no longer than its flits take.
    pub fn network(&self) -> TorusNoc {
        let stream = Stream {
            issue: CYCLE,
            flit: CYCLE,
        };
        let sites = (0..SIDE * SIDE).map(|i| Site {
            x: i % SIDE,
            y: i / SIDE,
            channel: None,
        });
        TorusNoc::new(TorusNocConfig {
            width: SIDE,
            height: SIDE,
            networks: vec![Heading::Shortest],
            sites: sites.collect(),
            flit_bytes: FLIT_BYTES,
            packet_bytes: FLIT_BYTES * (FLITS - 1),
            link_flit: CYCLE,
            hop: CYCLE * 2,
            interface_out: CYCLE,
            interface_in: CYCLE,
            channels: ChannelChoice::Dynamic,
            buddy_each_hop: false,
            buffers: Some(Buffers {
                guaranteed: 1,
                shared: 48,
                shared_per_channel: 15,
            }),
            receive_requests: 12,
            receive_responses: 4,
            posted: !self.acknowledged,
            multicast_linked: false,
            write: stream,
            read: stream,
            loopback: stream,
            atomic: CYCLE,
            dram: None,
        })
    }

    /// All packets in the order in which they enter.
    pub fn packets(&self) -> Vec<Packet> {
        let nodes = SIDE * SIDE;
        let mut random = Random::new(1);
        let mut packets = Vec::new();
        for cycle in 0..CYCLES / self.part {
            for from in 0..nodes {
                if random.below(1000 * FLITS as u32) >= self.permille {
                    continue;
                }
                let to = match self.target {
                    Target::Uniform => (from + 1 + random.below(nodes - 1)) % nodes,
                    Target::Neighbour => from / SIDE * SIDE + (from + 1) % SIDE,
                };
                let (op, bytes) = (packets.len() as u32, FLIT_BYTES * (FLITS - 1));
                packets.push(Packet {
                    at: CYCLE * cycle,
                    message: Msg {
                        wanted: Wanted::DELIVERY,
                        ..Msg::new(op, MsgKind::Put, EndpointId(from), EndpointId(to), bytes)
                    },
                });
            }
        }
        packets
    }
}

/// Flits times links crossed, headers included.
pub fn flit_hops(network: &TorusNoc, packets: &[Packet]) -> u64 {
    let hops = |m: &Msg| u64::from(network.network().hops(m.from, m.to, m.network));
    let all = packets.iter().map(|packet| FLITS * hops(&packet.message));
    all.sum()
}

/// Offer every packet at its time and wait for the last; the time from entering to delivery, summed over all packets.
pub fn inject(network: &mut TorusNoc, packets: &[Packet]) -> u64 {
    let (mut latency_ps, mut offered, mut done) = (0, Vec::new(), Vec::new());
    let mut run_until = |end: TimePs, network: &mut TorusNoc| {
        while network.next().is_some_and(|at| at <= end) {
            network.advance(end, &mut done);
            let delivered = |done: &Done| done.event == Event::Delivered;
            for done in done.drain(..).filter(delivered) {
                latency_ps += done.at.0 - packets[done.op as usize].at.0;
            }
        }
    };
    network.reset(&Conditions::default());
    for group in packets.chunk_by(|a, b| a.at == b.at) {
        let now = group[0].at;
        run_until(now, network);
        offered.clear();
        offered.extend(group.iter().map(|packet| packet.message));
        network.offer(now, &offered);
    }
    run_until(TimePs::MAX, network);
    latency_ps
}
