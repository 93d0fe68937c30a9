//! `host_link` beyond the cases in `tests/cases/host_link.toml`: signals, engines, descriptors, laws.

mod files;

use linkwright_core::{EndpointId, Machine, TimePs};
use linkwright_sim::fabric::{Conditions, Done, Event, Msg, MsgKind};
use linkwright_sim::fabrics::host_link::config::Config;
use linkwright_sim::fabrics::{build, AnyFabric};
use linkwright_sim::SimulatedFabric;
use proptest::prelude::*;

const CORE: EndpointId = EndpointId(0);
const DEVICE: EndpointId = EndpointId(1);
const MEMORY: EndpointId = EndpointId(8);

const FILE: &str = "tests/cases/machines/host_link.toml";

/// The test machine with lines of `[fabric]` put before its `device_rate`.
fn machine(more: &str) -> Machine {
    files::machine(FILE, &[("device_rate ", &format!("{more}\ndevice_rate "))])
}

fn fabric(more: &str) -> AnyFabric {
    build(&machine(more)).unwrap_or_else(|e| panic!("{e}"))
}

/// All completions of messages offered together at zero.
fn run(fabric: &mut dyn SimulatedFabric, messages: &[Msg]) -> Vec<Done> {
    fabric.reset(&Conditions::default());
    fabric.offer(TimePs::ZERO, messages);
    let mut done = Vec::new();
    while fabric.in_flight() > 0 {
        fabric.advance(TimePs::MAX, &mut done);
    }
    done
}

fn delivered(fabric: &mut dyn SimulatedFabric, messages: &[Msg], op: u32) -> f64 {
    let done = run(fabric, messages);
    let completion = done
        .iter()
        .find(|d| d.op == op && d.event == Event::Delivered);
    completion.expect("it is delivered").at.as_ns()
}

fn number(key: &str, value: u64, unit: &str) -> String {
    format!("{key} = {{ value = {value}, unit = \"{unit}\", status = \"assumed\", source = \"a round number\" }}")
}

#[test]
fn signals_are_one_packet() {
    // A doorbell: 32 + 32 B = 4 ns down, 100 on the way. A mark: 32 B = 2 ns up.
    let mut plain = fabric("");
    let doorbell = Msg::new(0, MsgKind::Notice, CORE, DEVICE, 0);
    assert_eq!(delivered(&mut *plain, &[doorbell], 0), 104.0);
    let mark = Msg::new(0, MsgKind::Notice, DEVICE, CORE, 0);
    assert_eq!(delivered(&mut *plain, &[mark], 0), 102.0);
    // Behind a write of 256 B, 20 ns on the wire, a mark is seen after the data.
    let write = Msg::new(1, MsgKind::Put, DEVICE, MEMORY, 256);
    let both = [write, mark];
    assert_eq!(delivered(&mut *plain, &both, 1), 122.0);
    let inside = Msg::new(0, MsgKind::Notice, CORE, MEMORY, 0);
    assert_eq!(delivered(&mut *plain, &[inside], 0), 0.0);
}

#[test]
fn an_engine_slower_than_the_link_sets_the_pace() {
    // 4 B/ns: 1024 B take 256 ns in the engine and 80 on the wire.
    let mut slow = fabric(&number("dma_rate", 4, "GB/s"));
    let write = Msg::new(0, MsgKind::Put, DEVICE, CORE, 1024);
    assert_eq!(delivered(&mut *slow, &[write], 0), 356.0);
    // 256 B: request 2, 300, 64 in the engine from the first byte on.
    let read = Msg::new(0, MsgKind::Get, CORE, DEVICE, 256);
    assert_eq!(delivered(&mut *slow, &[read], 0), 366.0);
    // Another device's engine may use the time that this engine leaves free on the wire.
    let other = Msg::new(1, MsgKind::Put, EndpointId(3), CORE, 1024);
    let both = [write, other];
    assert!(delivered(&mut *slow, &both, 0).max(delivered(&mut *slow, &both, 1)) < 380.0);
    // Transfers of one device share its engine, separately in each direction.
    let second = Msg::new(1, MsgKind::Put, DEVICE, CORE, 1024);
    assert_eq!(delivered(&mut *slow, &[write, second], 1), 612.0);
}

#[test]
fn a_descriptor_is_read_first() {
    // 64 B: request 2, 300, 64 + 32 B down 6; then as without.
    let with = number("descriptor", 64, "B");
    for (kind, from, to) in [(MsgKind::Put, DEVICE, CORE), (MsgKind::Get, CORE, DEVICE)] {
        let m = Msg::new(0, kind, from, to, 512);
        let plain = delivered(&mut *fabric(""), &[m], 0);
        assert_eq!(delivered(&mut *fabric(&with), &[m], 0), plain + 308.0);
    }
    // Stores and copies need none.
    for to in [DEVICE, MEMORY] {
        let m = Msg::new(0, MsgKind::Put, CORE, to, 512);
        let plain = delivered(&mut *fabric(""), &[m], 0);
        assert_eq!(delivered(&mut *fabric(&with), &[m], 0), plain);
    }
}

#[test]
fn few_outstanding_reads_bound_the_rate() {
    // Two requests of 256 B in a round trip of 2 + 300 + 20 ns: 512 B per 322 ns.
    let bytes = 1 << 16;
    let read = Msg::new(0, MsgKind::Get, CORE, DEVICE, bytes);
    let rate = bytes as f64 / delivered(&mut *fabric(""), &[read], 0);
    assert!((rate / (512.0 / 322.0) - 1.0).abs() < 0.01, "{rate} B/ns");
}

#[test]
fn mistakes_in_a_file_name_the_cure() {
    let error = |find: &str, put: &str| {
        assert_eq!(files::text(FILE).matches(find).count(), 1, "{find}");
        build(&files::machine(FILE, &[(find, put)]))
            .err()
            .expect("a mistake")
            .to_string()
    };
    for (find, put, expected) in [
        (
            "\"core 3\"]",
            "\"core 4\"]",
            "no endpoint is named \"core 4\"; name one of [endpoints]",
        ),
        (
            ", \"core 3\"]\ndevices",
            "]\ndevices",
            "\"core 3\" is a rank, so it acts; put it into `cores` or `devices`",
        ),
        (
            "cores = [\"core 0\"",
            "cores = [\"device 0\"",
            "devices: \"device 0\" is named twice; keep it once",
        ),
        (
            "lanes               = { value = 16",
            "lanes = { value = 12",
            "a link has 1, 2, 4, 8, 16 or 32 lanes",
        ),
        (
            "max_payload         = { value = 128",
            "max_payload = { value = 100",
            "100 B; the standard has 128, 256, ... 4096 B",
        ),
        (
            "outstanding_reads   = { value = 2",
            "outstanding_reads = { value = 0",
            "write at least 1",
        ),
        (
            "store_line          = { value = 64",
            "store_line = { value = 256",
            "a store is one packet of 1 to 128 B",
        ),
        (
            "value = 0.5078125",
            "value = 1.5",
            "choose a value above 0 and at most 1",
        ),
        ("gen4", "gen6", "gen6"),
    ] {
        let text = error(find, put);
        assert!(text.contains(expected), "{text}");
    }
}

/// One message of each kind: over the link, and inside the host.
fn kinds() -> [(MsgKind, EndpointId, EndpointId); 6] {
    [
        (MsgKind::Put, DEVICE, CORE),
        (MsgKind::Get, CORE, DEVICE),
        (MsgKind::Put, CORE, DEVICE),
        (MsgKind::Get, DEVICE, CORE),
        (MsgKind::Put, CORE, MEMORY),
        (MsgKind::Get, MEMORY, CORE),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn alone_a_message_takes_its_quiet_time(bytes in 0u64..20_000, kind in 0usize..6) {
        let mut fabric = fabric(&number("dma_rate", 7, "GB/s"));
        let (kind, from, to) = kinds()[kind];
        let m = Msg::new(0, kind, from, to, bytes);
        let time = delivered(&mut *fabric, &[m], 0);
        prop_assert_eq!(time, fabric.quiet(&m).as_ns());
    }

    #[test]
    fn time_grows_with_size_and_stays_above_the_link(bytes in 0u64..20_000, more in 0u64..500, kind in 0usize..6) {
        let machine = machine("");
        let (fabric, link) = (build(&machine).unwrap(), Config::from_machine(&machine).unwrap().link);
        let (kind, from, to) = kinds()[kind];
        let time = |bytes| fabric.quiet(&Msg::new(0, kind, from, to, bytes));
        prop_assert!(time(bytes) <= time(bytes + more));
        if from != MEMORY && to != MEMORY {
            let least = match kind {
                MsgKind::Get => link.read_time(bytes),
                _ => link.write_time(bytes),
            };
            prop_assert!(time(bytes) >= least);
        }
    }
}
