//! Lines of the slotted ring and packet hops of the torus network that one core simulates per second.
//!
//! `cargo run --release -p linkwright-sim --example fabric_rate [PART OF A NAME]`
//!
//! All messages are offered at once, so that queues are full; each row is the best of three runs.

use linkwright_core::{EndpointId, Machine, TimePs};
use linkwright_sim::fabric::{Conditions, Fabric, Msg, MsgKind};
use linkwright_sim::fabrics::slotted_ring::{RingConfig, SlottedRing};
use linkwright_sim::fabrics::torus_noc::*;
use std::time::Instant;

fn machine(name: &str) -> Machine {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let file = format!("{root}/python/linkwright/machines/{name}.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    Machine::parse(&text, &file).unwrap_or_else(|e| panic!("{e}"))
}

/// Run all `messages` on `fabric` and print the rate of what `count` counts.
fn measure<F: Fabric>(
    name: &str,
    mut fabric: F,
    messages: &[Msg],
    (unit, count): (&str, impl Fn(&F) -> u64),
) {
    let part = std::env::args().nth(1);
    if !part.is_none_or(|part| name.contains(&part)) {
        return;
    }
    let (mut seconds, mut end, mut done) = (f64::INFINITY, TimePs::ZERO, Vec::new());
    for _ in 0..3 {
        fabric.reset(&Conditions::default());
        let start = Instant::now();
        fabric.offer(TimePs::ZERO, messages);
        while fabric.in_flight() > 0 {
            end = fabric.advance(TimePs::MAX, &mut done);
            done.clear();
        }
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let bytes: u64 = messages.iter().map(|m| m.bytes).sum();
    println!(
        "{name:46} {:6.2} million {unit}/s, {:6.1} GB/s modelled",
        count(&fabric) as f64 / seconds / 1e6,
        bytes as f64 / end.0 as f64 * 1e3
    );
}

/// Eight elements, 1,000 commands of 16 KB each.
fn rings() {
    let config = RingConfig::from_machine(&machine("cell-be")).unwrap_or_else(|e| panic!("{e}"));
    let drawn = |op: u32| (u64::from(op) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let patterns: [(&str, &dyn Fn(u32) -> u32); 4] = [
        ("memory", &|_| 8),
        ("complement", &|op| 7 - op % 8),
        ("pairwise", &|op| (op % 8) ^ 1),
        ("uniform", &|op| (op % 8 + 1 + (drawn(op) % 7) as u32) % 8),
    ];
    for (way, kind) in [("put", MsgKind::Put), ("get", MsgKind::Get)] {
        for (pattern, other) in patterns {
            let message = |op: u32| {
                let (own, other) = (EndpointId(op % 8), EndpointId(other(op)));
                match kind {
                    MsgKind::Get => Msg::new(op, kind, other, own, 16 << 10),
                    _ => Msg::new(op, kind, own, other, 16 << 10),
                }
            };
            let messages: Vec<Msg> = (0..8000).map(message).collect();
            let ring = SlottedRing::new(config.clone());
            let name = format!("slotted ring: {pattern} {way}");
            measure(&name, ring, &messages, ("lines", SlottedRing::lines));
        }
    }
}

/// 64 tiles; a write and its acknowledgement travel around together, so hops count there and back.
fn torus() {
    let shipped = TorusNocConfig::from_machine(&machine("wormhole-n150")).expect("its fabric");
    let pairs = |to: fn(u32, u32) -> u32| {
        let round = move |r| (0..64).map(move |i| (i, to(i, r)));
        (0..64).flat_map(round).collect::<Vec<(u32, u32)>>()
    };
    let single = vec![(0, 63)];
    let neighbours: Vec<_> = (0..64).map(|i| (i, i / 8 * 8 + (i + 1) % 8)).collect();
    let (shifted, ordered) = (pairs(|i, r| (i + r) % 64), pairs(|_, r| r));
    for (label, channels, finite) in [
        ("static, finite", ChannelChoice::Static, true),
        ("static, unlimited", ChannelChoice::Static, false),
        ("dynamic, finite", ChannelChoice::Dynamic, true),
    ] {
        for (pattern, pairs, bytes, rounds) in [
            ("one stream", &single, 512, 20_000),
            ("one stream", &single, 8192, 20_000),
            ("neighbours", &neighbours, 8192, 300),
            ("all to all, shifted", &shifted, 512, 5),
            ("all to all, shifted", &shifted, 8192, 5),
            ("all to all, same order", &ordered, 512, 5),
            ("all to all, same order", &ordered, 8192, 5),
        ] {
            let pairs = std::iter::repeat_n(pairs, rounds).flatten();
            let message = |(op, &(from, to)): (u32, &(u32, u32))| {
                Msg::new(op, MsgKind::Put, EndpointId(from), EndpointId(to), bytes)
            };
            let messages: Vec<Msg> = (0..).zip(pairs).map(message).collect();
            let noc = TorusNoc::new(TorusNocConfig {
                channels,
                buffers: shipped.buffers.filter(|_| finite),
                ..shipped.clone()
            });
            let hops = |noc: &TorusNoc| {
                let each = messages.iter();
                let hops = each.map(|m| {
                    noc.network().hops(m.from, m.to, 0) + noc.network().hops(m.to, m.from, 0)
                });
                hops.map(u64::from).sum()
            };
            let name = format!("{label}: {pattern}, {bytes} B");
            measure(&name, noc, &messages, ("hops", hops));
        }
    }
}

fn main() {
    rings();
    torus();
}
