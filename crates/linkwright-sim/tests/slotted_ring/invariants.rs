//! Invariants of every run, and that no element starves.

use crate::common::{message, ring, run, MEMORY};
use linkwright_sim::fabric::{Conditions, Fabric, MsgKind};
use linkwright_sim::fabrics::slotted_ring::{SlottedRing, Start};
use proptest::prelude::*;
use std::collections::BTreeMap;

const CHOICES: [&[(&str, &str)]; 5] = [
    &[],
    &[("arbiter_sees", "\"oldest\"")],
    &[("arbiter_sees", "\"all\"")],
    &[("tie", "\"parity\"")],
    &[("receiver_order", "\"round_robin\"")],
];

/// No segment or port is held by two lines at once; at most half the ring; at most three per ring.
fn check(starts: &[Start]) {
    // Until when each part is held: starts come in order of time.
    let (mut segments, mut ports) = (BTreeMap::new(), BTreeMap::new());
    let mut leaving: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for start in starts {
        assert!(start.path.len() <= 6, "{start:?}");
        let (way, length) = (start.path.len().max(1) as u64 - 1, u64::from(start.length));
        for (i, segment) in (0u64..).zip(&start.path) {
            let held = segments.insert((start.ring, *segment), start.cycle + i + length);
            assert!(held.is_none_or(|end| end <= start.cycle + i), "{start:?}");
        }
        for (port, begin) in [
            (("out", start.from), start.cycle),
            (("in", start.to), start.cycle + way),
        ] {
            let held = ports.insert(port, begin + length);
            assert!(held.is_none_or(|end| end <= begin), "{start:?}");
        }
        let leaving = leaving.entry(start.ring).or_default();
        leaving.retain(|&end| end > start.cycle);
        leaving.push(start.cycle + length);
        assert!(leaving.len() <= 3, "{start:?}");
    }
}

fn recorded(changes: &[(&str, &str)]) -> SlottedRing {
    let mut ring = ring(changes);
    ring.record_starts();
    ring
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn transfers_never_disturb_each_other(
        plan in proptest::collection::vec((0..8u32, 0..9u32, any::<bool>(), 0..5000u64), 1..60),
        choice in 0..CHOICES.len(),
    ) {
        let mut ring = recorded(CHOICES[choice]);
        let messages: Vec<_> = (0u32..).zip(&plan).map(|(op, &(own, other, get, bytes))| {
            let kind = if get { MsgKind::Get } else { MsgKind::Put };
            message(op, kind, own, other, bytes)
        }).collect();
        let done = run(&mut ring, &messages);
        prop_assert_eq!(done.len(), 3 * messages.len());
        check(ring.starts());
        // One address per cycle carries at most 128 bytes: never above 204.8 GB/s.
        let end = done.last().unwrap().at.0 / 625;
        prop_assert!(ring.lines() <= end);
    }
}

/// Commands of each element.
const COMMANDS: u32 = 30;

/// Commands of 16 KB from each of `own`, to `other` of its own number.
fn load(
    ring: &mut SlottedRing,
    kind: MsgKind,
    other: fn(u32) -> u32,
    own: &[u32],
) -> (f64, Vec<f64>) {
    let messages: Vec<_> = (0..COMMANDS)
        .flat_map(|_| {
            own.iter()
                .map(|&own| message(own, kind, own, other(own), 16 << 10))
        })
        .collect();
    let done = run(ring, &messages);
    let rate = |ps: u64, commands: usize| (commands * (16 << 10)) as f64 / ps as f64 * 1e3;
    let finish = |own: &u32| done.iter().rfind(|d| d.op == *own).unwrap().at.0;
    let each = own
        .iter()
        .map(|own| rate(finish(own), COMMANDS as usize))
        .collect();
    (rate(done.last().unwrap().at.0, messages.len()), each)
}

#[test]
fn full_load_stays_below_the_snoop_limit_and_disturbs_nothing() {
    for changes in CHOICES {
        for other in [
            |own: u32| 7 - own,
            |own: u32| own ^ 1,
            |own: u32| (own + 3) % 8,
        ] {
            let mut ring = recorded(changes);
            let (rate, _) = load(&mut ring, MsgKind::Get, other, &[0, 1, 2, 3, 4, 5, 6, 7]);
            assert!(rate <= 204.8, "{rate}");
            check(ring.starts());
        }
    }
}

#[test]
fn no_element_starves_at_a_hot_spot() {
    let all = [1, 2, 3, 4, 5, 6, 7];
    for (kind, hot) in [
        (MsgKind::Put, 0),
        (MsgKind::Get, 0),
        (MsgKind::Put, MEMORY),
        (MsgKind::Get, MEMORY),
    ] {
        let other = if hot == 0 { |_| 0 } else { |_| MEMORY };
        let (total, each) = load(&mut ring(&[]), kind, other, &all);
        let (low, high) = each
            .iter()
            .fold((f64::MAX, 0f64), |(l, h), &e| (l.min(e), h.max(e)));
        assert!(high / low < 1.02, "{kind:?} at {hot}: {each:?}");
        assert!((25.0..=25.6).contains(&total), "{kind:?} at {hot}: {total}");
    }
}

#[test]
fn the_same_messages_give_the_same_times() {
    let messages: Vec<_> = (0..200)
        .map(|op| message(op, MsgKind::Put, op % 8, (op * 5 + 1) % 8, 777))
        .collect();
    let mut ring = ring(&[]);
    let first = run(&mut ring, &messages);
    ring.reset(&Conditions::default());
    assert_eq!(run(&mut ring, &messages), first);
}
