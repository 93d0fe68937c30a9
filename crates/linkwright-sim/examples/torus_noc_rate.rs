//! Packet hops per second of the torus network on one core.
//!
//! `cargo run --release -p linkwright-sim --example torus_noc_rate [PART OF A NAME]`
//!
//! Each line is the best of three runs.

use std::time::Instant;

use linkwright_core::{EndpointId, Machine, TimePs};
use linkwright_sim::fabric::{Fabric, Msg, MsgKind};
use linkwright_sim::fabrics::torus_noc::*;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../python/linkwright/machines/wormhole-n150.toml"
);

fn config(channels: ChannelChoice, finite: bool) -> TorusNocConfig {
    let text = std::fs::read_to_string(FILE).expect("the machine file");
    let machine = Machine::parse(&text, "wormhole-n150.toml").expect("a machine");
    let shipped = TorusNocConfig::from_machine(&machine).expect("its fabric");
    TorusNocConfig {
        channels,
        buffers: shipped.buffers.filter(|_| finite),
        ..shipped
    }
}

fn message(op: u32, from: u32, to: u32, bytes: u64) -> Msg {
    Msg::new(op, MsgKind::Put, EndpointId(from), EndpointId(to), bytes)
}

/// Run `rounds` repetitions of `pattern` and print the rate of data and response packets.
fn measure(name: &str, mut noc: TorusNoc, pattern: &[(u32, u32)], bytes: u64, rounds: u32) {
    if !std::env::args()
        .nth(1)
        .is_none_or(|part| name.contains(&part))
    {
        return;
    }
    let mut messages = Vec::new();
    for _ in 0..rounds {
        for &(from, to) in pattern {
            messages.push(message(messages.len() as u32, from, to, bytes));
        }
    }
    let packets = |m: &Msg| m.bytes.div_ceil(8192).max(1);
    // A write and its acknowledgement go round together: hops there plus hops back.
    let hops: u64 = messages
        .iter()
        .map(|m| packets(m) * (noc.hops(m.from, m.to, 0) + noc.hops(m.to, m.from, 0)) as u64)
        .sum();
    let mut done = Vec::new();
    let mut end = TimePs(0);
    let mut seconds = f64::INFINITY;
    for _ in 0..3 {
        noc.reset(0, &[]);
        let start = Instant::now();
        noc.offer(TimePs(0), &messages);
        while noc.next().is_some() {
            end = noc.advance(TimePs::MAX, &mut done);
            done.clear();
        }
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let rate = hops as f64 / seconds / 1e6;
    println!(
        "{name:46} {hops:>8} hops  {rate:5.2} million/s  simulated {:.1} us",
        end.as_us()
    );
}

fn main() {
    let neighbours: Vec<_> = (0..64).map(|i| (i, i / 8 * 8 + (i + 1) % 8)).collect();
    let single = [(0u32, 63u32)];
    let all: Vec<_> = (0..64u32)
        .flat_map(|r| (0..64).map(move |i| (i, r)))
        .collect();
    let shifted: Vec<_> = (0..64u32)
        .flat_map(|r| (0..64).map(move |i| (i, (i + r) % 64)))
        .collect();
    for (label, channels, finite) in [
        ("static, finite", ChannelChoice::Static, true),
        ("static, unlimited", ChannelChoice::Static, false),
        ("dynamic, finite", ChannelChoice::Dynamic, true),
    ] {
        let noc = || TorusNoc::new(config(channels, finite));
        let name = |what: &str| format!("{label}: {what}");
        measure(&name("one stream, 512 B"), noc(), &single, 512, 20_000);
        measure(&name("one stream, 8192 B"), noc(), &single, 8192, 20_000);
        measure(&name("neighbours, 8192 B"), noc(), &neighbours, 8192, 300);
        measure(&name("all to all, shifted, 512 B"), noc(), &shifted, 512, 5);
        measure(
            &name("all to all, shifted, 8192 B"),
            noc(),
            &shifted,
            8192,
            5,
        );
        measure(&name("all to all, same order, 512 B"), noc(), &all, 512, 5);
        measure(
            &name("all to all, same order, 8192 B"),
            noc(),
            &all,
            8192,
            5,
        );
    }
}
