//! The five published data movement tables against the shipped machine file.
//!
//! A cell is n transactions of b bytes by one initiator, from before the first issue to after the
//! completion barrier: `start + fabric time + barrier`, with the software costs of the path.

use std::collections::BTreeMap;

use super::common::{last, run, CYCLE};
use super::files::{machine, text};
use linkwright_core::{EndpointId, Machine, MachineError};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::{Buffer, Collective};
use linkwright_sim::fabric::{Fabric, Msg, MsgKind};
use linkwright_sim::fabrics::torus_noc::*;
use linkwright_sim::{simulate, Issue, Setup};

struct Cell {
    pattern: String,
    transactions: u64,
    bytes: u64,
    cycles: f64,
}

fn cells() -> Vec<Cell> {
    let table = text("evidence/linkwright_evidence/references/wormhole/data_movement.csv");
    let mut cells = Vec::new();
    for line in table.lines().skip(1) {
        // Columns from the right: the quoted places in the middle hold commas.
        let mut right = line.rsplit(',').skip(1);
        let mut number = || right.next().and_then(|field| field.parse::<u64>().ok());
        let (cycles, bytes, transactions) = (number(), number(), number());
        cells.push(Cell {
            pattern: line.split(',').next().unwrap_or_default().to_string(),
            transactions: transactions.expect("transactions"),
            bytes: bytes.expect("transaction_bytes"),
            cycles: cycles.expect("cycles") as f64,
        });
    }
    assert_eq!(cells.len(), 300);
    cells
}

fn messages(cell: &Cell) -> Vec<Msg> {
    let (own, other, memory) = (EndpointId(0), EndpointId(9), EndpointId(64));
    let (from, to, kind, network) = match cell.pattern.as_str() {
        "one_to_one_write" => (own, other, MsgKind::Put, 0),
        "one_from_one_read" => (other, own, MsgKind::Get, 1),
        "loopback_write" => (own, own, MsgKind::Put, 0),
        "dram_interleaved_read" => (memory, own, MsgKind::Get, 1),
        "dram_interleaved_write" => (own, memory, MsgKind::Put, 0),
        other => panic!("unknown pattern {other}"),
    };
    let message = |op| Msg {
        network,
        ..Msg::new(op, kind, from, to, cell.bytes)
    };
    (0..cell.transactions as u32).map(message).collect()
}

fn wormhole() -> (Machine, TorusNocConfig) {
    let machine = machine("python/linkwright/machines/wormhole-n150.toml", &[]);
    let config = TorusNocConfig::from_machine(&machine).expect("its fabric");
    (machine, config)
}

#[test]
fn an_idle_fabric_agrees_with_the_closed_form() {
    // n transactions of q packets, L flits each, issued `issue` apart and sent at `flit` per flit:
    //   T = way there + way back + 1 + (n q - 1) max(issue, L flit) + L flit
    // where both ways together are 4 * 5 + 22 * 9 cycles (no ring: 4 * 5).
    let (_, config) = wormhole();
    for cell in cells() {
        let (stream, ring) = match cell.pattern.as_str() {
            "one_to_one_write" => (config.write, 22 * 9),
            "one_from_one_read" => (config.read, 22 * 9),
            // Loopback: an acknowledgement leaves by the port of the next write, one flit each;
            // not in the form, so compare single packets only.
            "loopback_write" if cell.transactions == 1 && cell.bytes <= 8192 => {
                (config.loopback, 0)
            }
            _ => continue,
        };
        let packets = cell.transactions * cell.bytes.div_ceil(8192);
        let flits = 1 + cell.bytes.min(8192) / 32;
        let packet = flits * stream.flit.0;
        let form = (20 + ring + 1) * CYCLE + (packets - 1) * packet.max(stream.issue.0) + packet;
        let mut noc = TorusNoc::new(config.clone());
        let simulated = last(&run(&mut noc, &messages(&cell)));
        assert_eq!(
            simulated,
            form as f64 / CYCLE as f64,
            "{} {}",
            cell.pattern,
            cell.bytes
        );
    }
}

#[test]
fn tables_are_met() {
    let (machine, config) = wormhole();
    let path = machine.default_path();
    let software = (path.start + path.barrier).0 as f64 / CYCLE as f64;
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for cell in cells() {
        let mut noc = TorusNoc::new(config.clone());
        let cycles = software + last(&run(&mut noc, &messages(&cell)));
        let error = cycles / cell.cycles - 1.0;
        errors.entry(cell.pattern).or_default().push(error.abs());
    }
    for (pattern, mut errors) in errors {
        errors.sort_by(f64::total_cmp);
        let quantile = |q: f64| errors[((errors.len() - 1) as f64 * q).round() as usize];
        let (median, p90, worst) = (quantile(0.5), quantile(0.9), quantile(1.0));
        println!("{pattern:24} median {median:.4}  p90 {p90:.4}  largest {worst:.4}");
        let (median_most, worst_most) = match pattern.starts_with("dram") {
            true => (0.03, 0.15),
            false => (0.02, 0.08),
        };
        assert!(
            median <= median_most && worst <= worst_most,
            "{pattern}: {median} {worst}"
        );
    }
}

#[test]
fn the_engine_gives_the_same_time() {
    // n puts in one lane, issued as one batch: the initiator finishes when the fabric has
    // acknowledged the last and the barrier is paid.
    let (machine, config) = wormhole();
    let path = machine
        .path("stream")
        .expect("writes without signal")
        .clone();
    for cell in cells() {
        let small = cell.transactions * cell.bytes <= 1 << 20;
        if cell.pattern != "one_to_one_write" || !small {
            continue;
        }
        let mut shape = Shape::new(2, cell.transactions * cell.bytes);
        shape.element_bytes = 1;
        let mut builder = Builder::new(Collective::Pattern, &shape);
        let data = builder.buffer(Buffer::vector("output", cell.transactions as u32));
        builder.step();
        for i in 0..cell.transactions as u32 {
            builder.put(0, data.at(i), 1, data.at(i));
        }
        let schedule = builder.finish().expect("a valid schedule");
        let mut run_options = Setup::new(2, path.clone());
        run_options.placement = vec![EndpointId(0), EndpointId(9)];
        run_options.issue = Issue::Batch(cell.transactions as u32);
        let mut noc = TorusNoc::new(config.clone());
        let simulated = simulate(&schedule, &mut noc, &run_options).expect("it runs");
        let direct = last(&run(&mut TorusNoc::new(config.clone()), &messages(&cell)));
        let direct_ps = (direct * CYCLE as f64).round() as u64;
        assert_eq!(simulated.finish[0], direct_ps + path.barrier.0);
    }
}

const IDEAL: &str = "python/linkwright/machines/torus-2d.toml";

/// The torus of 8 x 8 places that the text of a machine file describes.
fn ideal(text: &str) -> Result<TorusNocConfig, MachineError> {
    let grid = linkwright_core::machine::Grid {
        columns: 8,
        rows: 8,
    };
    let machine = Machine::parse(text, "torus-2d.toml").and_then(|m| m.with_grid(grid));
    TorusNocConfig::from_machine(&machine.expect("a machine"))
}

#[test]
fn the_ideal_torus_is_read_too() {
    let config = ideal(&text(IDEAL));
    let noc = TorusNoc::new(config.expect("its fabric"));
    // Mean distance on a ring of 8 is 2, in two dimensions 4.
    let pairs = (0..64 * 64).map(|i| (EndpointId(i / 64), EndpointId(i % 64)));
    let hops: u32 = pairs
        .map(|(from, to)| noc.network().hops(from, to, 0))
        .sum();
    assert_eq!(hops, 64 * 64 * 4);
}

#[test]
fn numbers_beyond_the_range_of_the_model_are_refused() {
    let text = text(IDEAL);
    let read = |key: &str, number: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        let (before, unit) = line.split_once("value = ").unwrap();
        let (_, after) = unit.split_once(", unit = ").unwrap();
        let (_, after) = after.split_once(", status").unwrap();
        let changed = format!("{before}value = {number}, status{after}");
        ideal(&text.replace(line, &changed))
    };
    // 2^32 ps are 4.294967296 ms; a packet has 257 flits, and a buffer 2^16 - 1.
    let borders = [
        (
            "hop_latency",
            "4294967295, unit = \"ps\"",
            "4294967296, unit = \"ps\"",
        ),
        ("interface_in", "4.2, unit = \"ms\"", "4.3, unit = \"ms\""),
        ("packet_write", "4.2, unit = \"ms\"", "4.3, unit = \"ms\""),
        (
            "link_bandwidth",
            "2, unit = \"MB/s\"",
            "1.9, unit = \"MB/s\"",
        ),
        (
            "packet_data_flits",
            "4000000, unit = \"flit\"",
            "134217728, unit = \"flit\"",
        ),
        (
            "input_buffer",
            "2097120, unit = \"B\"",
            "2097152, unit = \"B\"",
        ),
        (
            "target_requests",
            "8, unit = \"count\"",
            "4294967304, unit = \"count\"",
        ),
    ];
    for (key, fits, does_not) in borders {
        read(key, fits).unwrap_or_else(|error| panic!("{key}: {error}"));
        let error = read(key, does_not).expect_err(key).to_string();
        assert!(error.contains(&format!("fabric.{key}")), "{error}");
        assert!(error.contains("this model has room for"), "{error}");
    }
}
