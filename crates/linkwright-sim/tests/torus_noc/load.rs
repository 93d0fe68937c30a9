//! Traffic by rate: latency over offered load, packets against single flits.
//!
//! An 8 x 8 torus with links both ways; every tile offers packets of four flits (a header and
//! 96 bytes) with the same probability in every cycle, to a tile drawn anew. What the tile cannot
//! send yet waits at its interface, and waiting counts. Latency is from the offer to the delivery,
//! over the packets of the second half: the first half fills the network.

use super::common::*;
use super::oracle::{Net, Oracle};
use linkwright_core::TimePs;
use linkwright_sim::fabric::{Done, Event, Fabric, Msg, Wanted};
use linkwright_sim::fabrics::torus_noc::*;

const SIDE: u32 = 8;
const CYCLES: u64 = 4000;
const FLITS: u64 = 4;
const NET: Net = Net {
    width: SIDE,
    height: SIDE,
    shortest: true,
    place,
};

fn place(rank: u32) -> (u32, u32) {
    (rank % SIDE, rank / SIDE)
}

fn torus(posted: bool) -> TorusNoc {
    let sites = (0..SIDE * SIDE).map(place);
    TorusNoc::new(TorusNocConfig {
        width: SIDE,
        height: SIDE,
        networks: vec![Heading::Shortest],
        sites: sites
            .map(|(x, y)| Site {
                x,
                y,
                channel: None,
            })
            .collect(),
        dram: None,
        posted,
        ..grid()
    })
}

/// Messages and the cycle in which each is offered, `load` flits per tile and cycle.
fn offered(load: f64, target: impl Fn(u32, u64) -> u32) -> (Vec<Msg>, Vec<u64>) {
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> 33
    };
    let most = (load / FLITS as f64 * (1u64 << 31) as f64) as u64;
    let (mut messages, mut times) = (Vec::new(), Vec::new());
    for cycle in 0..CYCLES {
        for from in 0..SIDE * SIDE {
            if random() < most {
                let to = target(from, random());
                messages.push(Msg {
                    wanted: Wanted::DELIVERY,
                    ..put(messages.len() as u32, from, to, 32 * (FLITS - 1))
                });
                times.push(cycle);
            }
        }
    }
    (messages, times)
}

fn uniform(from: u32, random: u64) -> u32 {
    (from + 1 + (random % 63) as u32) % 64
}

/// Offer every message in its cycle and run until nothing is in flight.
fn deliver(noc: &mut TorusNoc, messages: &[Msg], times: &[u64]) -> Vec<u64> {
    let mut done: Vec<Done> = Vec::new();
    let mut next = 0;
    while next < messages.len() {
        let at = TimePs(times[next] * CYCLE);
        while noc.advance(at, &mut done) < at {}
        let end = next
            + times[next..]
                .iter()
                .take_while(|&&t| t == times[next])
                .count();
        noc.offer(at, &messages[next..end]);
        next = end;
    }
    while noc.next().is_some() {
        noc.advance(TimePs::MAX, &mut done);
    }
    let mut delivered = vec![0; messages.len()];
    for done in done.iter().filter(|d| d.event == Event::Delivered) {
        delivered[done.op as usize] = done.at.0 / CYCLE;
    }
    delivered
}

/// Mean cycles from offer to delivery over the second half of the packets.
fn latency(delivered: &[u64], times: &[u64]) -> f64 {
    let half = times.len() / 2;
    let each = delivered[half..].iter().zip(&times[half..]);
    each.map(|(d, t)| (d - t) as f64).sum::<f64>() / (times.len() - half) as f64
}

/// Mean latency of packets and of flits, in cycles.
fn both(load: f64, target: fn(u32, u64) -> u32, posted: bool) -> (f64, f64) {
    let (messages, times) = offered(load, target);
    let packets = deliver(&mut torus(posted), &messages, &times);
    let flits = Oracle::run(NET, &messages, &times, true, posted);
    (latency(&packets, &times), latency(&flits, &times))
}

/// Compare the latencies at these loads, each larger than the one before.
fn compare(loads: &[f64], posted: bool) {
    let mut last = 0.0;
    for &load in loads {
        let (packets, flits) = both(load, uniform, posted);
        println!("uniform {load}: {packets:.2} cycles, single flits {flits:.2}");
        assert!(
            (packets / flits - 1.0).abs() < 0.05,
            "{packets} or {flits} at {load}"
        );
        assert!(packets > last, "more load, more waiting");
        last = packets;
    }
}

#[test]
fn latency_over_load_is_that_of_single_flits() {
    // The network saturates between 0.3 and 0.45, where latencies grow with the length of the run.
    compare(&[0.02, 0.1, 0.3, 0.45, 0.6], false);
}

#[test]
fn and_without_acknowledgements() {
    // Nothing comes back and competes.
    compare(&[0.02, 0.1, 0.3, 0.35, 0.4, 0.6], true);
}

#[test]
fn neighbours_meet_nobody() {
    // East by one: no link is shared, so what is left is waiting for the own interface.
    for posted in [false, true] {
        let (packets, flits) = both(0.3, |from, _| from / 8 * 8 + (from + 1) % 8, posted);
        println!("neighbour 0.3: {packets:.2} cycles, single flits {flits:.2}");
        assert!((packets / flits - 1.0).abs() < 0.05, "{packets} or {flits}");
    }
}
