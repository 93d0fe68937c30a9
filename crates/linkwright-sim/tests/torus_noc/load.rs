//! Traffic by rate: latency over offered load, packets against single flits.
//!
//! An 8 x 8 torus with links both ways; every tile offers packets of four flits (a header and
//! 96 bytes) with the same probability in every cycle, each to a tile drawn at random. Packets that
//! the tile cannot yet send wait at its interface, and waiting counts. Latency is from the offer to the delivery,
//! over the packets of the second half: the first half fills the network.
//!
//! ```text
//!   latency             /     the knee is a wall: beyond it latency grows as long as packets are offered,
//!      |               /      and close to it ten seeds give ten latencies. There the curves are compared
//!      |              |       sideways, elsewhere upwards.
//!      |_____________/
//!      +--------------------- load
//! ```

use std::ops::RangeInclusive;

use super::common::*;
use super::oracle::{Net, Oracle};
use linkwright_core::TimePs;
use linkwright_sim::fabric::{Done, Event, Fabric, Msg, Wanted};
use linkwright_sim::fabrics::torus_noc::*;

const SIDE: u32 = 8;
const CYCLES: u64 = 4000;
const FLITS: u64 = 4;
/// How far latencies may lie apart.
const LATENCY: f64 = 0.05;
const NET: Net = Net {
    width: SIDE,
    height: SIDE,
    shortest: true,
    place,
};

fn place(rank: u32) -> (u32, u32) {
    (rank % SIDE, rank / SIDE)
}

/// Messages and the cycle in which each is offered, `load` flits per tile and cycle. More load adds messages, and
/// leaves the others as they are.
fn offered(load: f64, seed: u64, target: impl Fn(u32, u64) -> u32) -> (Vec<Msg>, Vec<u64>) {
    let mut random = Random(seed);
    let most = (load / FLITS as f64 * (1u64 << 31) as f64) as u64;
    let (mut messages, mut times) = (Vec::new(), Vec::new());
    for cycle in 0..CYCLES {
        for from in 0..SIDE * SIDE {
            let (drawn, to) = (random.below(1 << 31), target(from, random.below(63)));
            if drawn < most {
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
    (from + 1 + random as u32) % 64
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
fn both(load: f64, seed: u64, target: fn(u32, u64) -> u32, posted: bool) -> [f64; 2] {
    let (messages, times) = offered(load, seed, target);
    let config = TorusNocConfig {
        posted,
        ..torus(SIDE, SIDE, &[Heading::Shortest])
    };
    let packets = deliver(&mut TorusNoc::new(config), &messages, &times);
    let flits = Oracle::run(NET, &messages, &times, true, posted);
    [packets, flits].map(|delivered| latency(&delivered, &times))
}

/// Means over the seeds of the latency of packets and of flits, at a load in percent.
fn means(percent: u32, seeds: u64, posted: bool) -> [f64; 2] {
    let runs = (1..=seeds).map(|seed| both(percent as f64 / 100.0, seed, uniform, posted));
    let runs: Vec<[f64; 2]> = runs.collect();
    let [packets, flits] = [0, 1].map(|model| {
        let each = runs.iter().map(|run| run[model]);
        let mean = each.clone().sum::<f64>() / seeds as f64;
        let squares: f64 = each.map(|one| (one - mean).powi(2)).sum();
        (mean, (squares / (seeds - 1) as f64).sqrt())
    });
    println!(
        "posted {posted}, load {percent} %: packets {:.2} +- {:.2}, single flits {:.2} +- {:.2}",
        packets.0, packets.1, flits.0, flits.1
    );
    [packets.0, flits.0]
}

fn agree(packets: f64, least: f64, most: f64) {
    let range = least * (1.0 - LATENCY)..=most * (1.0 + LATENCY);
    assert!(range.contains(&packets), "{packets} is not in {range:?}");
}

/// On flat parts of the curve the latencies agree; at the knee that of the packets lies between those of the flits
/// at 0.01 flits per tile and cycle less and more.
fn compare(flat: &[u32], knee: RangeInclusive<u32>, posted: bool) {
    let mut last = 0.0;
    for &load in flat {
        let [packets, flits] = means(load, 4, posted);
        agree(packets, flits, flits);
        assert!(packets > last, "more load, more waiting");
        last = packets;
    }
    let knee: Vec<[f64; 2]> = knee.map(|load| means(load, 12, posted)).collect();
    for points in knee.windows(3) {
        let [[_, least], [packets, _], [_, most]] = *points else {
            unreachable!("windows of three")
        };
        agree(packets, least, most);
    }
}

#[test]
fn latency_over_load_is_that_of_single_flits() {
    compare(&[2, 10, 30, 34, 60], 37..=41, false);
    // Behind the knee, where the curve is steep still: seeds differ by a tenth.
    let [packets, flits] = means(45, 12, false);
    agree(packets, flits, flits);
}

#[test]
fn and_without_acknowledgements() {
    // Nothing comes back and competes.
    compare(&[2, 10, 30, 40, 60], 42..=46, true);
}

#[test]
fn neighbours_meet_nobody() {
    // East by one: no link is shared, so packets only wait for their own interface.
    for posted in [false, true] {
        let [packets, flits] = both(0.3, 1, |from, _| from / 8 * 8 + (from + 1) % 8, posted);
        println!("neighbour 0.3: {packets:.2} cycles, single flits {flits:.2}");
        agree(packets, flits, flits);
    }
}
