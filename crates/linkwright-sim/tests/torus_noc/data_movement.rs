//! The five published data movement tables against the shipped machine file.
//!
//! A cell is n transactions of b bytes by one initiator, from before the first issue to after the
//! completion barrier: `start + fabric time + barrier`, with the software costs of the path.

use std::collections::BTreeMap;

use super::common::{last, run, CYCLE};
use linkwright_core::machine::Machine;
use linkwright_core::EndpointId;
use linkwright_sim::fabric::{Msg, MsgKind};
use linkwright_sim::fabrics::torus_noc::*;

fn shipped(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/linkwright/");
    std::fs::read_to_string(format!("{root}{path}")).expect("the file is in the repository")
}

struct Cell {
    pattern: String,
    transactions: u64,
    bytes: u64,
    cycles: f64,
}

fn cells() -> Vec<Cell> {
    let table = shipped("references/wormhole/data_movement.csv");
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
    (0..cell.transactions as u32)
        .map(|op| Msg {
            op,
            from,
            to,
            bytes: cell.bytes,
            runs: 1,
            kind,
            network,
            set: 0,
        })
        .collect()
}

fn wormhole() -> (Machine, TorusNocConfig) {
    let text = shipped("machines/wormhole-n150.toml");
    let machine = Machine::parse(&text, "wormhole-n150.toml").expect("the shipped machine");
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
        if std::env::var_os("SHOW_CELLS").is_some() {
            let Cell {
                pattern,
                transactions,
                bytes,
                ..
            } = &cell;
            println!(
                "{pattern},{transactions},{bytes},{cycles},{},{error:.4}",
                cell.cycles
            );
        }
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
