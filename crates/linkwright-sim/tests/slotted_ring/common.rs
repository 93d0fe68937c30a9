//! Machines and messages for the tests.

use linkwright_core::{EndpointId, Machine, TimePs};
use linkwright_sim::fabric::{Done, Event, Fabric, Msg, MsgKind};
use linkwright_sim::fabrics::slotted_ring::{RingConfig, SlottedRing};

/// Endpoint of main memory.
pub const MEMORY: u32 = 8;
/// A bus cycle.
pub const CYCLE: u64 = 625;

pub fn machine(changes: &[(&str, &str)]) -> Machine {
    let machine = crate::files::machine("python/linkwright/machines/cell-be.toml", &[]);
    changes.iter().fold(machine, |machine, (key, value)| {
        let changed = machine.with_value(&format!("fabric.{key}"), value);
        changed.unwrap_or_else(|e| panic!("{e}"))
    })
}

pub fn ring(changes: &[(&str, &str)]) -> SlottedRing {
    let config = RingConfig::from_machine(&machine(changes));
    SlottedRing::new(config.unwrap_or_else(|e| panic!("{e}")))
}

/// `put` or `get` between `own`, which issues it, and `other`.
pub fn message(op: u32, kind: MsgKind, own: u32, other: u32, bytes: u64) -> Msg {
    let (from, to) = match kind {
        MsgKind::Get => (other, own),
        _ => (own, other),
    };
    Msg::new(op, kind, EndpointId(from), EndpointId(to), bytes)
}

/// Offer everything at zero; completions, in order.
pub fn run(ring: &mut SlottedRing, messages: &[Msg]) -> Vec<Done> {
    ring.offer(TimePs::ZERO, messages);
    let (mut all, mut some) = (Vec::new(), Vec::new());
    while ring.in_flight() > 0 {
        assert!(ring.next().is_some(), "{:?}", ring.stuck());
        ring.advance(TimePs::MAX, &mut some);
        all.append(&mut some);
    }
    all
}

/// Bus cycles until message `op` is delivered.
pub fn delivered(done: &[Done], op: u32) -> u64 {
    let of = |d: &&Done| d.op == op && d.event == Event::Delivered;
    done.iter().find(of).expect("delivered").at.0 / CYCLE
}
