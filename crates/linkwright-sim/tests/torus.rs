//! A torus that is described: the links of the list that it replaces, its routes, its limits.
//!
//! Links of 1 GB/s and 100 ns, a start of 1 us: S bytes over h links alone take 1000 + S + 100 h ns.

use linkwright_core::{EndpointId, Machine, TimePs};
use linkwright_schedule::{Collective, Shape};
use linkwright_sim::fabric::{Conditions, Event, Msg, MsgKind};
use linkwright_sim::fabrics::build;
use linkwright_sim::run::limits_of;
use linkwright_sim::How;

const RATE: &str =
    "bandwidth = { value = 1, unit = \"GB/s\", status = \"assumed\", source = \"a test\" }";
const LATENCY: &str =
    "latency = { value = 100, unit = \"ns\", status = \"assumed\", source = \"a test\" }";

/// A machine with the tables `links` in `[fabric]`.
fn machine(sides: &[u32], links: &str) -> Result<Machine, String> {
    let text = format!(
        r#"
[machine]
name = "own"
summary = "a torus"
description = "A torus."
format = 1
sources = ["a test"]

[[level]]
name = "node"
count = "any"
source = "a test"

[endpoints]
grid = "any"
name = "n {{at}}"
source = "a test"

[fabric]
kind = "flow"

{links}

[fabric.transport.message]
links = ["torus"]
relays = "forward"
start = {{ value = 1, unit = "us", status = "assumed", source = "a test" }}

[path.message]
summary = "a message"
completion = "delivered"
"#
    );
    let machine = Machine::parse(&text, "own.toml").and_then(|m| m.with_sides(sides));
    let machine = machine.map_err(|error| error.to_string())?;
    build(&machine).map_err(|error| error.to_string())?;
    Ok(machine)
}

/// A torus with further keys and tables of `[fabric.torus]`.
fn torus(sides: &[u32], keys: &str) -> Result<Machine, String> {
    let table = format!("[fabric.torus]\nsource = \"a test\"\n{RATE}\n{LATENCY}\n{keys}");
    machine(sides, &table)
}

const IN_ORDER: &str = "routing = \"dimension_order\"\n";
const ADAPTIVE: &str = "routing = \"adaptive\"\n";

/// When each of these messages, offered `apart_ns` after each other, is delivered, in ns.
fn delivered_ns(machine: &Machine, messages: &[(u32, u32, u64)], apart_ns: u64) -> Vec<u64> {
    let mut fabric = build(machine).unwrap();
    fabric.reset(&Conditions::default());
    let mut all = vec![0; messages.len()];
    let mut done = Vec::new();
    let end = TimePs(1 << 50);
    for (op, &(from, to, bytes)) in messages.iter().enumerate() {
        let at = TimePs(op as u64 * apart_ns * 1000);
        while fabric.next().is_some_and(|next| next < at) {
            fabric.advance(TimePs(at.0 - 1), &mut done);
        }
        let (from, to) = (EndpointId(from), EndpointId(to));
        fabric.offer(at, &[Msg::new(op as u32, MsgKind::Put, from, to, bytes)]);
    }
    while fabric.next().is_some() {
        fabric.advance(end, &mut done);
    }
    for done in done.iter().filter(|done| done.event == Event::Delivered) {
        all[done.op as usize] = done.at.0 / 1000;
    }
    all
}

/// The links of a 4 x 4 torus, and each route in dimension order, one by one.
fn listed() -> Machine {
    let name = |x: u32, y: u32| format!("n {},{}", x % 4, y % 4);
    let mut edges = Vec::new();
    for (dx, dy) in [(1, 0), (0, 1)] {
        for (y, x) in (0..4).flat_map(|y| (0..4).map(move |x| (y, x))) {
            edges.push(format!("\"{} - {}\"", name(x, y), name(x + dx, y + dy)));
        }
    }
    // The shorter way; of two, ahead from an even coordinate.
    let step = |from: u32, to: u32| match ((to + 4 - from) % 4, from % 2) {
        (1, _) | (2, 0) => 1,
        _ => 3,
    };
    let mut pairs = String::new();
    for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (from, to))) {
        let (mut x, mut y, mut between) = (from % 4, from / 4, Vec::new());
        let (right, up) = (step(x, to % 4), step(y, to / 4));
        while (x, y) != (to % 4, to / 4) {
            between.push(format!("\"{}\"", name(x, y)));
            match x == to % 4 {
                false => x = (x + right) % 4,
                true => y = (y + up) % 4,
            }
        }
        if between.len() > 1 {
            let (a, b) = (name(from % 4, from / 4), name(to % 4, to / 4));
            pairs += &format!(
                "[fabric.pair.\"{a} -> {b}\"]\nroute = [{}]\n",
                between[1..].join(", ")
            );
        }
    }
    let class = format!(
        "[fabric.links.torus]\nsource = \"a test\"\n{RATE}\n{LATENCY}\nedges = [{}]\n{pairs}",
        edges.join(", ")
    );
    machine(&[4, 4], &class).unwrap()
}

#[test]
fn a_generated_torus_is_the_list_of_its_links() {
    let (made, listed) = (torus(&[4, 4], IN_ORDER).unwrap(), listed());
    let (a, b) = (build(&made).unwrap(), build(&listed).unwrap());
    assert_eq!(a.links().names, b.links().names);
    let all = (0..16).flat_map(|from| (0..16).map(move |to| (from, to)));
    let apart = all.filter(|(from, to)| from != to);
    let messages: Vec<_> = apart
        .map(|(from, to)| (from, to, 500 + u64::from(from * to)))
        .collect();
    assert_eq!(
        delivered_ns(&made, &messages, 7),
        delivered_ns(&listed, &messages, 7)
    );
}

#[test]
fn messages_take_the_shorter_way_round() {
    let ring = torus(&[5, 3, 2], IN_ORDER).unwrap();
    let hops = |to| {
        build(&ring)
            .unwrap()
            .network()
            .hops(EndpointId(0), EndpointId(to), 0)
    };
    // Rank = x + 5 (y + 3 z).
    assert_eq!(
        [1, 2, 3, 4, 5, 10, 15, 29].map(hops),
        [1, 2, 2, 1, 1, 1, 1, 3]
    );
    let line = torus(&[5, 3], &format!("{IN_ORDER}wrap = false")).unwrap();
    assert_eq!(
        build(&line)
            .unwrap()
            .network()
            .hops(EndpointId(0), EndpointId(4), 0),
        4
    );
    let mixed = torus(
        &[5, 3],
        &format!("{IN_ORDER}[fabric.torus.x]\nwrap = false"),
    )
    .unwrap();
    let hops = |to| {
        build(&mixed)
            .unwrap()
            .network()
            .hops(EndpointId(0), EndpointId(to), 0)
    };
    assert_eq!([4, 10].map(hops), [4, 1]);
}

#[test]
fn each_axis_has_its_rate() {
    let half = RATE.replace("value = 1", "value = 0.5");
    let slow = torus(&[4, 4], &format!("{IN_ORDER}[fabric.torus.y]\n{half}")).unwrap();
    // 1000 + 1000 + 100; twice as long along y.
    assert_eq!(
        delivered_ns(&slow, &[(0, 1, 1000), (0, 4, 1000)], 0),
        [2100, 3100]
    );
}

#[test]
fn two_messages_across_a_corner_share_a_link_unless_they_choose() {
    // 0 -> 5 and 1 -> 5: in dimension order both use the link from 1 to 5, at half the rate.
    let messages = [(1, 5, 1000), (0, 5, 1000)];
    let fixed = torus(&[4, 4], IN_ORDER).unwrap();
    assert_eq!(
        delivered_ns(&fixed, &messages, 0),
        [1000 + 2000 + 100, 1000 + 2000 + 200]
    );
    // The second sees the first on the link from 1 to 5, and goes round over 4.
    let free = torus(&[4, 4], ADAPTIVE).unwrap();
    assert_eq!(delivered_ns(&free, &messages, 0), [2100, 2200]);
}

#[test]
fn half_way_round_a_ring_messages_go_both_ways() {
    // Everybody to the opposite place of a ring of eight: 4 hops each, 32 over 16 links, so at least 2 on one.
    let messages: Vec<_> = (0..8).map(|from| (from, (from + 4) % 8, 1000)).collect();
    for routing in [IN_ORDER, ADAPTIVE] {
        let ring = torus(&[8], routing).unwrap();
        assert_eq!(
            delivered_ns(&ring, &messages, 0),
            [1000 + 2000 + 400; 8],
            "{routing}"
        );
    }
}

#[test]
fn a_node_sends_no_more_than_its_injection() {
    let limit = RATE.replace("bandwidth", "injection");
    let torus = torus(&[4, 4], &format!("{IN_ORDER}{limit}")).unwrap();
    // Two links out of 0, but 1 GB/s for both; what 1 passes on for 0 costs 1 nothing.
    assert_eq!(
        delivered_ns(&torus, &[(0, 1, 1000), (0, 4, 1000)], 0),
        [3100, 3100]
    );
    assert_eq!(
        delivered_ns(&torus, &[(0, 2, 1000), (1, 5, 1000)], 0),
        [2200, 2100]
    );
    assert_eq!(
        build(&torus)
            .unwrap()
            .network()
            .port(EndpointId(0), &[0])
            .out
            .unwrap()
            .0,
        1e9
    );
}

#[test]
fn a_torus_is_as_good_as_its_narrowest_half() {
    let torus = torus(&[8, 4], IN_ORDER).unwrap();
    let places: Vec<_> = (0..32).map(EndpointId).collect();
    let cuts = build(&torus).unwrap().network().cuts(&places, &[0]);
    // Across x: 4 rows with two borders each; across y: 8 columns with two.
    assert_eq!(
        cuts.iter().map(|cut| cut.out.0).collect::<Vec<_>>(),
        [8e9, 16e9]
    );
    assert!(cuts
        .iter()
        .all(|cut| cut.inside.iter().filter(|&&is| is).count() == 16));
    let shape = Shape::new(32, 32 * 1024);
    let found = limits_of(Collective::Alltoall, &shape, &torus, &How::default()).unwrap();
    let cut = found.0.iter().find(|limit| limit.name == "cut").unwrap();
    assert_eq!((cut.bytes, cut.rate.unwrap().0), (256 << 12, 8e9));
}

#[test]
fn errors_name_key_and_cure() {
    let error = |sides: &[u32], keys: &str| torus(sides, keys).unwrap_err();
    assert!(error(&[4, 4], "routing = \"adaptve\"").contains("adaptive"));
    assert!(error(&[4, 4], "").contains("routing"));
    assert!(error(&[2; 7], IN_ORDER).contains("at most 6 sides"));
    assert!(error(&[4, 0], IN_ORDER).contains("grid of 4x0 is empty"));
    assert!(error(&[1 << 20, 1 << 20], IN_ORDER).contains("16,777,216"));
    let own = format!(
        "{IN_ORDER}[fabric.links.torus]\nsource = \"a\"\n{RATE}\nedges = [\"n 0,0 - n 2,2\"]"
    );
    assert!(
        error(&[4, 4], &own).contains("rename it"),
        "{}",
        error(&[4, 4], &own)
    );
    let flat = include_str!("../../../python/linkwright/machines/torus-2d.toml");
    let flat = Machine::parse(flat, "torus-2d.toml").unwrap();
    let error = flat.with_sides(&[4, 4, 4]).unwrap_err().to_string();
    assert!(error.contains("a grid of two sides"), "{error}");
}
