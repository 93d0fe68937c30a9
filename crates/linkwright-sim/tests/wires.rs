//! What fabrics say of their links: the parts of a message's time add up to that of a simulated one.

use linkwright_core::machine::Path;
use linkwright_core::{EndpointId, Machine, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::{Buffer, Collective, Schedule};
use linkwright_sim::fabrics;
use linkwright_sim::setup::Setup;
use std::path::PathBuf;

fn machine(name: &str) -> Machine {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/linkwright/machines");
    let text = std::fs::read_to_string(root.join(format!("{name}.toml"))).unwrap();
    let machine = Machine::parse(&text, name).unwrap();
    match name {
        "torus-2d" | "torus-400g" => machine.with_sides(&[4, 4]).unwrap(),
        "loggp" | "crossbar" => machine.with_endpoints(8).unwrap(),
        _ => machine,
    }
}

/// One put of `bytes` from rank `from` to rank `to`.
fn put(ranks: u32, from: u32, to: u32, bytes: u64) -> Schedule {
    let shape = Shape {
        element_bytes: 1,
        ..Shape::new(ranks, bytes)
    };
    let mut b = Builder::new(Collective::Pattern, &shape);
    let data = b.buffer(Buffer::vector("data", 1));
    b.put(from, data.at(0), to, data.at(0));
    b.finish().unwrap()
}

/// A single put of `bytes`, simulated without software.
fn simulated(machine: &Machine, from: u32, to: u32, bytes: u64) -> TimePs {
    let ranks = machine.ranks() as u32;
    let mut fabric = fabrics::build(machine).unwrap();
    let setup = Setup::new(ranks, Path::default());
    let schedule = put(ranks, from, to, bytes);
    let simulation = linkwright_sim::simulate(&schedule, &mut *fabric, &setup);
    simulation.unwrap().makespan
}

/// Pairs near and far.
fn pairs(ranks: u32) -> [(u32, u32); 4] {
    [(0, 1), (1, 0), (0, ranks - 1), (ranks / 2, 1)]
}

/// On `name`, for messages of `sizes`, the parts add up within `share` of the simulated time.
fn adds_up(name: &str, sizes: &[u64], share: f64) {
    let machine = machine(name);
    let fabric = fabrics::build(&machine).unwrap();
    let capacities = fabric.network().capacities();
    for (from, to) in pairs(machine.ranks() as u32) {
        if from == to {
            continue;
        }
        let wire = fabric
            .network()
            .wire(EndpointId(from), EndpointId(to), 0)
            .unwrap();
        assert!(!wire.uses.is_empty(), "{name} {from} {to}");
        for &(link, weight) in &wire.uses {
            let capacity = capacities[link as usize];
            let carried = wire.rate * u64::from(weight);
            assert!(
                carried <= capacity + capacity / 50,
                "{name} {from} {to}: {carried} {capacity}"
            );
        }
        for &bytes in sizes {
            let (alone, simulated) = (wire.alone(bytes), simulated(&machine, from, to, bytes));
            let ratio = alone.0 as f64 / simulated.0 as f64;
            let what = format!("{name} {from} to {to}, {bytes} B: {alone} of {simulated}");
            assert!((ratio - 1.0).abs() <= share, "{what}");
        }
    }
}

#[test]
fn parts_add_up_where_messages_have_no_packets() {
    adds_up("crossbar", &[1, 1 << 10, 1 << 20], 0.001);
    adds_up("loggp", &[64, 1 << 10, 1 << 20], 0.02);
    adds_up("torus-400g", &[1 << 10, 1 << 20], 0.02);
}

#[test]
fn parts_add_up_where_messages_have_packets_and_lines() {
    adds_up("torus-2d", &[8 << 10, 1 << 20], 0.02);
    adds_up("wormhole-n150", &[8 << 10, 1 << 20], 0.02);
    adds_up("cell-be", &[4 << 10, 16 << 10], 0.1);
    adds_up("ipu-c2-chip", &[1 << 10, 64 << 10], 0.05);
}

#[test]
fn parts_add_up_on_links_of_a_node() {
    let machine = machine("dgx1-p100");
    let fabric = fabrics::build(&machine).unwrap();
    // GPU 0 to GPU 1: 9.78 us of start; NVLink of 20 GB/s x 0.925.
    let wire = fabric
        .network()
        .wire(EndpointId(0), EndpointId(1), 0)
        .unwrap();
    assert_eq!((wire.start, wire.uses.len()), (TimePs(9_780_000), 1));
    assert_eq!(wire.rate, 18_500_000_000);
    // The fabric rounds up.
    let simulated = simulated(&machine, 0, 1, 1 << 20);
    assert_eq!(wire.alone(1 << 20), simulated.saturating_sub(TimePs(1)));
}

#[test]
fn every_pair_of_the_ladder_has_links_that_exist() {
    let machine = machine("ipu-c2-server");
    let fabric = fabrics::build(&machine).unwrap();
    let links = fabric.network().capacities().len() as u32;
    let tiles = machine.ranks() as u32 / 16;
    // Chip 0 to chip 3: the rung that lets traffic pass, then a rail; ports at both ends.
    let uses = |to: u32| {
        let wire = fabric
            .network()
            .wire(EndpointId(0), EndpointId(to), 0)
            .unwrap();
        assert!(wire.uses.iter().all(|&(link, _)| link < links));
        wire.uses.len()
    };
    assert_eq!(
        [uses(1), uses(tiles), uses(3 * tiles), uses(14 * tiles)],
        [2, 3, 4, 9]
    );
}

#[test]
fn a_host_sends_down_and_a_device_up() {
    let machine = machine("vollo-ia420f");
    let fabric = fabrics::build(&machine).unwrap();
    let all = machine.endpoints().len() as u32;
    let pairs = (0..all).flat_map(|a| (0..all).map(move |b| (EndpointId(a), EndpointId(b))));
    let wires = pairs
        .filter(|(a, b)| a != b)
        .filter_map(|(a, b)| fabric.network().wire(a, b, 0));
    let mut used: Vec<u32> = wires
        .flat_map(|wire| wire.uses)
        .map(|(link, _)| link)
        .collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, [0, 1]);
}

#[test]
fn every_link_of_a_table_is_at_nodes_that_exist() {
    let names = [
        "crossbar",
        "loggp",
        "torus-400g",
        "torus-2d",
        "wormhole-n150",
        "cell-be",
        "ipu-c2-chip",
        "ipu-c2-board",
        "dgx1-p100",
        "vollo-ia420f",
    ];
    for name in names {
        let machine = machine(name);
        let fabric = fabrics::build(&machine).unwrap();
        let wiring = fabric.network().wiring();
        assert_eq!(wiring.places.len(), fabric.links().names.len(), "{name}");
        let nodes = (machine.endpoints().len() + wiring.switches.len()) as u32;
        let ends = wiring.places.iter().flatten().copied();
        let ends = ends.chain(wiring.edges.iter().map(|edge| (edge.a, edge.b)));
        let mut ends = ends.flat_map(|(from, to)| [from, to]);
        assert!(ends.all(|node| node < nodes), "{name}");
        assert!(wiring.ring.iter().all(|&node| node < nodes), "{name}");
    }
}
