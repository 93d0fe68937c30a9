//! Lines per second of the slotted ring on one core.
//!
//! `cargo run --release -p linkwright-sim --example slotted_ring_rate [PART OF A NAME]`
//!
//! Eight elements, 16-KB commands, queues always full; each line is the best of three runs.

use std::time::Instant;

use linkwright_core::{EndpointId, Machine, TimePs};
use linkwright_sim::fabric::{Fabric, Msg, MsgKind};
use linkwright_sim::fabrics::slotted_ring::{RingConfig, SlottedRing};

const ROUNDS: u32 = 1000;
const BYTES: u64 = 16 << 10;
const MEMORY: u32 = 8;

fn messages(kind: MsgKind, other: impl Fn(u32, u32) -> u32) -> Vec<Msg> {
    let message = |op: u32| {
        let (round, own) = (op / 8, op % 8);
        let other = other(own, round);
        let (from, to) = match kind {
            MsgKind::Get => (other, own),
            _ => (own, other),
        };
        Msg::new(op, kind, EndpointId(from), EndpointId(to), BYTES)
    };
    (0..8 * ROUNDS).map(message).collect()
}

fn measure(name: &str, config: &RingConfig, messages: &[Msg]) {
    if !std::env::args()
        .nth(1)
        .is_none_or(|part| name.contains(&part))
    {
        return;
    }
    let (mut best, mut lines, mut end) = (f64::INFINITY, 0, TimePs::ZERO);
    for _ in 0..3 {
        let mut ring = SlottedRing::new(config.clone());
        let begin = Instant::now();
        ring.offer(TimePs::ZERO, messages);
        let mut done = Vec::new();
        while ring.in_flight() > 0 {
            end = ring.advance(TimePs::MAX, &mut done);
            done.clear();
        }
        best = best.min(begin.elapsed().as_secs_f64());
        lines = ring.lines();
    }
    let moved = messages.len() as f64 * BYTES as f64;
    println!(
        "{name:16} {:6.2} million lines/s, {:6.1} GB/s modelled",
        lines as f64 / best / 1e6,
        moved / end.0 as f64 * 1e3
    );
}

fn main() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/linkwright/machines/cell-be.toml"
    );
    let text = std::fs::read_to_string(file).expect("the machine file");
    let machine = Machine::parse(&text, "cell-be.toml").unwrap_or_else(|e| panic!("{e}"));
    let config = RingConfig::from_machine(&machine).unwrap_or_else(|e| panic!("{e}"));
    for (name, kind) in [("put", MsgKind::Put), ("get", MsgKind::Get)] {
        let run = |what: &str, other: fn(u32, u32) -> u32| {
            measure(&format!("{what} {name}"), &config, &messages(kind, other));
        };
        run("memory", |_, _| MEMORY);
        run("complement", |own, _| 7 - own);
        run("pairwise", |own, _| own ^ 1);
        run("uniform", |own, round| {
            let draw = (u64::from(round * 8 + own) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            (own + 1 + (draw % 7) as u32) % 8
        });
    }
}
