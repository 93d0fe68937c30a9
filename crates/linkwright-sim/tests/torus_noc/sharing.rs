//! Packets that meet: other channels, full buffers, saturated ports, published link loads.

use super::common::*;
use linkwright_core::{BytesPerSec, EndpointId};
use linkwright_sim::fabric::{Event, Fabric, Msg};
use linkwright_sim::fabrics::torus_noc::*;
use linkwright_sim::network::NetworkCut;

#[test]
fn different_channels_interleave() {
    // A from (9,1) wraps to (3,1), B from (1,1) to (3,1): both on (1,1) east and (2,1) east, A on
    // the channel beyond the dateline. 129 flits each.
    //   (1,1) east: B from 5; A comes over (9,1), (0,1) at 23, when 18 flits of B have passed.
    //   Then turn about: B needs 2 * 111 more = 245; A has 18 left = 263.
    //   One hop later the same at (2,1) east, and again into the interface of (3,1).
    //   B delivered 245 + 2*9 + 5 = 268.   A delivered 263 + 2*9 + 5 = 286.
    let pair = [put(0, 7, 2, 4096), put(1, 0, 2, 4096)];
    let done = run(&mut TorusNoc::new(grid()), &pair);
    assert_eq!(at(&done, 1, Event::Delivered), 268.0);
    assert_eq!(at(&done, 0, Event::Delivered), 286.0);
}

#[test]
fn finite_buffers_hold_the_links_behind_a_waiting_packet() {
    // A (1,3) -> (1,5) uses (1,3) south from 5 to 262 (257 flits).
    // B (1,1) -> (1,5) comes there at 23 and waits until 262, then passes until 519.
    // C (9,1) -> (1,2), 2 flits, wants (1,1) south, held by B, at 23.
    let triple = [put(0, 16, 32, 8192), put(1, 0, 32, 8192), put(2, 7, 8, 32)];
    // Without limit B runs into the buffer: its tail leaves (1,1) south at 262, (1,2) south at 271.
    // C is at (1,2) at 271, too, and goes into the interface: 271 + 2 + 5 = 278.
    let unlimited = TorusNocConfig {
        buffers: None,
        ..grid()
    };
    let done = run(&mut TorusNoc::new(unlimited), &triple);
    assert_eq!(at(&done, 2, Event::Delivered), 278.0);
    assert_eq!(at(&done, 1, Event::Delivered), 519.0 + 9.0 + 9.0 + 5.0);
    // Finite: 16 flits fit behind (1,2) south, 32 behind (1,1) south. From 262 the other 225 pass
    // (1,1) south until 488, the other 241 pass (1,2) south until 504, each with one flit of A's
    // acknowledgement in between. C is granted at 488, is at (1,2) at 497, stands behind B until
    // 504: 504 + 2 + 5 = 511. B itself is as fast as before.
    let done = run(&mut TorusNoc::new(grid()), &triple);
    assert_eq!(at(&done, 2, Event::Delivered), 511.0);
    assert_eq!(at(&done, 1, Event::Delivered), 542.0);
}

#[test]
fn a_saturated_port_takes_one_flit_per_cycle() {
    // Seven tiles of a row write 16 packets of 257 flits each to the eighth. The port moves
    // 7 * 16 * 257 flits; nothing can be faster, and a full port never waits.
    for buffers in [Some(FINITE), None] {
        let messages: Vec<Msg> = (0..7).map(|i| put(i, i, 7, 16 * 8192)).collect();
        let config = TorusNocConfig { buffers, ..grid() };
        let done = run(&mut TorusNoc::new(config), &messages);
        let delivered = (0..7)
            .map(|op| at(&done, op, Event::Delivered))
            .fold(0.0, f64::max);
        let flits = (7 * 16 * 257) as f64;
        assert!(
            delivered >= flits && delivered < flits * 1.01,
            "{delivered} for {flits}"
        );
    }
}

#[test]
fn a_receiver_works_on_twelve_requests() {
    // Sixteen memory writes of 8192 B at 16 B/cycle: 512 cycles each in the channel, 257 on the
    // way. Twelve are taken in, the others wait in the network until one is answered.
    let mut config = grid();
    if let Some(dram) = &mut config.dram {
        dram.write = BytesPerSec(16e9);
    }
    let messages: Vec<Msg> = (0..16)
        .map(|i| Msg {
            to: MEMORY,
            ..put(i, 0, 0, 8192)
        })
        .collect();
    let mut noc = TorusNoc::new(config);
    let done = run(&mut noc, &messages);
    // First head there at 5 + (9 + 10) hops * 9 + 5 = 181; the channel is busy from then on.
    let acknowledged = 181.0 + 16.0 * 512.0 + 1.0 + 10.0 + 3.0 * 9.0;
    assert_eq!(at(&done, 15, Event::Acknowledged), acknowledged);
    // The 13th may enter only when the first is answered, at 181 + 512 + 1: its tail leaves the
    // source long after the 12 * 257 cycles that the way alone would take.
    assert!(at(&done, 15, Event::SourceFree) > 181.0 + 3.0 * 512.0 + 257.0);
}

/// Partner on a ring of 8 and network of the transfer, at round i.
fn partner(swing: bool, a: i32, i: u32) -> (i32, u8) {
    if swing {
        let rho = (1 - (-2i32).pow(i + 1)) / 3;
        let signed = if a % 2 == 0 { rho } else { -rho };
        ((a + signed).rem_euclid(8), (signed < 0) as u8)
    } else {
        (a ^ (1 << i), (a >> i & 1) as u8)
    }
}

/// The transfers of one step of an 8 x 8 exchange.
fn step(swing: bool, step: u32) -> Vec<Msg> {
    let transfer = |rank: i32| {
        let (lx, ly) = (rank % 8, rank / 8);
        let own = if step % 2 == 0 { lx } else { ly };
        let (other, network) = partner(swing, own, step / 2);
        let to = match step % 2 {
            0 => 8 * ly + other,
            _ => 8 * other + lx,
        };
        let message = put(rank as u32, rank as u32, to as u32, 2048);
        Msg { network, ..message }
    };
    (0..64).map(transfer).collect()
}

/// Most transfers of `messages` on one mesh link, and mesh links in use.
fn load(messages: &[Msg]) -> (u64, usize) {
    let mut noc = TorusNoc::new(grid());
    run(&mut noc, messages);
    let table = noc.links();
    let mesh = table
        .names
        .iter()
        .zip(&table.bytes)
        .filter(|(name, _)| !name.ends_with("ject"));
    let loads: Vec<u64> = mesh
        .map(|(_, bytes)| bytes / 2048)
        .filter(|&load| load > 0)
        .collect();
    (loads.iter().copied().max().unwrap_or(0), loads.len())
}

#[test]
fn link_loads_of_swing_and_recursive_doubling() {
    let table = |swing| (0..6).map(|i| load(&step(swing, i))).collect::<Vec<_>>();
    let swing = [(1, 64), (1, 80), (1, 96), (1, 112), (2, 160), (2, 192)];
    let doubling = [(1, 64), (1, 80), (2, 96), (2, 112), (4, 128), (4, 128)];
    assert_eq!(table(true), swing);
    assert_eq!(table(false), doubling);
}

#[test]
fn hops_of_swing_and_recursive_doubling() {
    // Published: mean totals 13.25 and 16.25 over 64 ranks, worst per step as below.
    let noc = TorusNoc::new(grid());
    let hops = |m: &Msg| noc.network().hops(m.from, m.to, m.network);
    let steps = |swing| (0..6).map(move |i| step(swing, i));
    let total = |swing| steps(swing).flatten().map(|m| hops(&m)).sum::<u32>();
    let worst = |step: Vec<Msg>| step.iter().map(hops).max();
    let worst = |swing| steps(swing).filter_map(worst).collect::<Vec<_>>();
    assert_eq!((total(true), worst(true)), (848, vec![1, 2, 2, 4, 4, 6]));
    assert_eq!((total(false), worst(false)), (1040, vec![1, 2, 2, 3, 5, 5]));
}

#[test]
fn ports_and_cuts_count_links() {
    // One link of full packets: 8192 B in 257 cycles.
    let noc = |width, height, networks: &[Heading]| TorusNoc::new(torus(width, height, networks));
    let near = |rate: BytesPerSec, links: f64| {
        let carried = rate.0 / (8192.0 / 257e-9);
        assert!((carried - links).abs() < 1e-9, "{carried} links");
    };
    let halves = |noc: &TorusNoc, count: u32, networks: &[u8]| {
        let places: Vec<_> = (0..count).map(EndpointId).collect();
        let cuts = noc.network().cuts(&places, networks).into_iter();
        let equal =
            |cut: &NetworkCut| 2 * cut.inside.iter().filter(|&&is| is).count() == count as usize;
        let rates = cuts.filter(equal).map(|cut| cut.out.0);
        BytesPerSec(rates.fold(f64::INFINITY, f64::min))
    };
    // Two one-way networks: a rank has two ports. 4 x 6: six rows cross the cut between columns, four columns the cut
    // between rows, once per network.
    let both = noc(4, 6, &[Heading::SouthEast, Heading::NorthWest]);
    near(
        both.network()
            .port(EndpointId(0), &[0, 1])
            .out
            .expect("known"),
        2.0,
    );
    near(halves(&both, 24, &[0, 1]), 8.0);
    // Where messages may take one of them only, half of that.
    near(
        both.network().port(EndpointId(0), &[1]).out.expect("known"),
        1.0,
    );
    near(halves(&both, 24, &[1]), 4.0);
    // One network, links both ways. Three columns cannot be halved, so only the cut between rows does, which each
    // column crosses in the middle and at the wrap.
    let shortest = noc(3, 2, &[Heading::Shortest]);
    near(
        shortest
            .network()
            .port(EndpointId(0), &[0])
            .into
            .expect("known"),
        1.0,
    );
    near(halves(&shortest, 6, &[0]), 6.0);
}
