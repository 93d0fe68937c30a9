//! Invariants under any traffic: no loss, no deadlock, equal runs.

use super::common::*;
use linkwright_sim::fabric::{Conditions, Done, Event, Fabric, Msg, MsgKind};
use linkwright_sim::fabrics::torus_noc::*;

/// `count` messages of mixed kinds, sizes and networks between random tiles.
fn random_traffic(count: u32, seed: u64, largest: u64, networks: u8) -> Vec<Msg> {
    let mut random = Random(seed);
    (0..count)
        .map(|op| {
            let kind = [MsgKind::Put, MsgKind::Put, MsgKind::Get, MsgKind::Notice];
            let kind = kind[random.below(4) as usize];
            let (from, to) = (random.below(64) as u32, random.below(64) as u32);
            let bytes = if kind == MsgKind::Notice {
                0
            } else {
                1 + random.below(largest)
            };
            let mut message = Msg {
                kind,
                runs: 1 + random.below(3) as u32,
                ..put(op, from, to, bytes)
            };
            message.network = random.below(networks as u64) as u8;
            if kind == MsgKind::Put && random.below(8) == 0 {
                message.to = MEMORY;
            }
            message
        })
        .collect()
}

fn machines() -> Vec<(&'static str, TorusNocConfig)> {
    let dynamic = TorusNocConfig {
        channels: ChannelChoice::Dynamic,
        ..grid()
    };
    let unlimited = TorusNocConfig {
        buffers: None,
        ..grid()
    };
    let mut torus = torus(8, 8, &[Heading::Shortest]);
    torus.sites.push(torus.sites[0]); // in place of the memory
    vec![
        ("static channels", grid()),
        ("dynamic channels", dynamic.clone()),
        ("unlimited buffers", unlimited),
        (
            "dynamic channels, unlimited buffers",
            TorusNocConfig {
                buffers: None,
                ..dynamic
            },
        ),
        ("two-way links", torus),
    ]
}

fn check(name: &str, messages: &[Msg], done: &[Done], noc: &TorusNoc) {
    assert_eq!(
        done.len(),
        3 * messages.len(),
        "{name}: three completions per message"
    );
    for message in messages {
        let at = [Event::SourceFree, Event::Delivered, Event::Acknowledged]
            .map(|event| at(done, message.op, event));
        assert!(
            at[0] <= at[1] && at[1] <= at[2],
            "{name}: {message:?} completes {at:?}"
        );
    }
    // All bytes that leave interfaces enter others.
    let table = noc.links();
    let through = |port: &str| -> u64 {
        let named = table.names.iter().zip(&table.bytes);
        named
            .filter(|(link, _)| link.ends_with(port))
            .map(|(_, bytes)| bytes)
            .sum()
    };
    let offered: u64 = messages.iter().map(|m| m.bytes).sum();
    assert_eq!(
        (through(" inject"), through(" eject")),
        (offered, offered),
        "{name}"
    );
}

#[test]
fn random_traffic_is_neither_lost_nor_stuck() {
    for (name, config) in machines() {
        let networks = config.networks.len() as u8;
        for (seed, largest) in [(1, 64), (2, 600), (3, 4_000), (4, 30_000)] {
            let messages = random_traffic(1500, seed, largest, networks);
            let mut noc = TorusNoc::new(config.clone());
            let done = run(&mut noc, &messages);
            check(name, &messages, &done, &noc);
            assert!(
                noc.at_rest(),
                "{name}: buffers and channels are empty again"
            );
        }
    }
}

#[test]
fn all_to_all_does_not_deadlock() {
    // Every one-way ring is full: without datelines this closes a cycle of waiting packets.
    for (name, config) in machines() {
        for bytes in [32, 512, 8192] {
            let mut messages = Vec::new();
            for (from, to) in (0..64u32).flat_map(|from| (0..64).map(move |to| (from, to))) {
                messages.push(put(64 * from + to, from, to, bytes));
            }
            let mut noc = TorusNoc::new(config.clone());
            let done = run(&mut noc, &messages);
            check(name, &messages, &done, &noc);
        }
    }
}

#[test]
fn equal_input_gives_equal_output() {
    let messages = random_traffic(800, 9, 9_000, 2);
    let mut noc = TorusNoc::new(grid());
    let first = run(&mut noc, &messages);
    let table = noc.links().clone();
    noc.reset(&Conditions::default());
    assert_eq!(run(&mut noc, &messages), first);
    assert_eq!(*noc.links(), table);
}
