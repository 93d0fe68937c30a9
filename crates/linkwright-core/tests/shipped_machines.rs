//! Every shipped machine file parses, and says what its source says.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use linkwright_core::machine::{EndpointKind, Grid, OpenSize, Path, Place, Status};
use linkwright_core::{Bytes, Machine, MachineError, TimePs};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/linkwright/machines")
}

fn shipped(name: &str) -> Machine {
    let file = format!("{name}.toml");
    let text = fs::read_to_string(folder().join(&file)).expect("a shipped machine file");
    Machine::parse(&text, &file).unwrap_or_else(|e| panic!("{e}"))
}

/// The files that are whole; those with parts, and nodes of clusters, are composed in Python, where `test_machines.py`
/// reads them all.
fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the folder of machine files");
    let composed = ["parts = [", "[cluster]"];
    let is_composed = |line: &str| composed.iter().any(|begin| line.starts_with(begin));
    let is_whole = |text: String| !text.lines().any(is_composed);
    let mut names: Vec<String> = entries
        .map(|e| e.expect("a folder entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .filter(|p| is_whole(fs::read_to_string(p).expect("a shipped machine file")))
        .map(|p| p.file_stem().unwrap().to_str().unwrap().to_string())
        .collect();
    names.sort();
    names
}

/// The machine, given a size if it has none.
fn sized(machine: &Machine) -> Machine {
    let resized = match machine.open_size() {
        None => Ok(machine.clone()),
        Some(OpenSize::Count) => machine.with_endpoints(12),
        Some(OpenSize::Grid) => machine.with_grid(Grid::new(4, 3)),
    };
    resized.unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_file_parses_and_is_named_like_its_machine() {
    let names = names();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let machine = shipped(&name);
        assert_eq!(machine.name(), name);
        assert!(!machine.numbers().is_empty());
        let machine = sized(&machine);
        assert!(machine.ranks() > 0);
        let levels: usize = machine.levels().iter().map(|l| l.count).product();
        assert_eq!(levels, machine.ranks(), "{name}");
        let unique: BTreeSet<_> = machine.endpoints().iter().map(|e| &e.name).collect();
        assert_eq!(unique.len(), machine.endpoints().len(), "{name}");
    }
}

#[test]
fn every_cut_of_a_file_is_an_error_or_a_machine_but_never_a_panic() {
    for name in names() {
        let text = fs::read_to_string(folder().join(format!("{name}.toml"))).unwrap();
        for (end, _) in text.char_indices().step_by(7) {
            let _ = Machine::parse(&text[..end], "cut.toml");
        }
    }
}

#[test]
fn n150_ranks_sit_where_the_hop_counts_put_them() {
    let m = shipped("wormhole-n150");
    assert_eq!((m.ranks(), m.memories()), (64, 12));
    assert_eq!(m.grid(), Some(Grid::new(10, 12)));
    assert_eq!(m.rank_grid(), Some(Grid::new(8, 8)));
    let xs = [1, 2, 3, 4, 6, 7, 8, 9];
    let ys = [1, 2, 3, 4, 5, 7, 8, 9];
    for (r, endpoint) in m.endpoints()[..64].iter().enumerate() {
        let place = Place {
            x: xs[r % 8],
            y: ys[r / 8],
        };
        assert_eq!(endpoint.place, Some(place), "rank {r}");
        assert_eq!(endpoint.capacity, Some(Bytes(1464 * 1024)));
    }
    let channel_5 = &m.endpoints()[64 + 5];
    assert_eq!(channel_5.kind, EndpointKind::Memory);
    assert_eq!(channel_5.name, "DRAM channel 5");
    assert_eq!(channel_5.place, Some(Place { x: 5, y: 11 }));
}

#[test]
fn n150_numbers_keep_unit_and_status() {
    let m = shipped("wormhole-n150");
    let mut fabric = m.fabric_section();
    assert_eq!(fabric.time("hop_latency"), Ok(TimePs::from_ns(9)));
    assert_eq!(fabric.cycles("hop_latency"), Ok(9));
    assert_eq!(fabric.time("packet_write"), Ok(TimePs(262_400)));
    let rows = m.numbers();
    assert_eq!(rows[0].key, "machine.clock");
    let hop = rows.iter().find(|r| r.key == "fabric.hop_latency").unwrap();
    assert_eq!((hop.value.as_str(), hop.unit), ("9", "cycle"));
    assert_eq!(hop.status, Status::Documented);
    let fitted = rows.iter().filter(|r| r.status == Status::Fitted);
    assert_eq!(fitted.count(), m.fitted());
    assert_eq!(m.default_path().name, "metalium");
    assert_eq!(m.hints().axis(1, false), 1);
    assert_eq!(m.hints().lane(7), 0);
}

#[test]
fn open_machines_take_the_size_of_the_run() {
    let loggp = shipped("loggp");
    assert_eq!(loggp.ranks(), 0);
    let seven = loggp.with_endpoints(7).unwrap();
    assert_eq!((seven.ranks(), seven.levels()[0].count), (7, 7));
    assert_eq!(seven.with_endpoints(9).unwrap().ranks(), 9);

    let torus = shipped("torus-2d");
    let torus = torus.with_grid(Grid::new(4, 3)).unwrap();
    assert_eq!(torus.endpoints()[5].name, "tile (1,1)");
}

#[test]
fn sizes_that_cannot_be_say_which_can() {
    let fails = |r: Result<Machine, MachineError>| r.unwrap_err().to_string();
    assert_eq!(
        fails(shipped("wormhole-n150").with_endpoints(63)),
        "wormhole-n150: has 64 ranks, not 63; ask for 64"
    );
    assert_eq!(
        fails(shipped("wormhole-n150").with_grid(Grid::new(4, 16))),
        "wormhole-n150: its ranks form a grid of 8x8, not 4x16; ask for that"
    );
    assert_eq!(
        fails(shipped("torus-2d").with_endpoints(12)),
        "torus-2d: 12 ranks do not fix a grid; give one, such as 4x3"
    );
    assert_eq!(
        fails(shipped("loggp").with_endpoints(0)),
        "loggp: 0 ranks asked for; ask for at least 1"
    );
}

#[test]
fn a_path_takes_what_it_leaves_out_from_the_one_it_is_like() {
    let machine = shipped("wormhole-n150");
    let path = |name| machine.path(name).unwrap();
    let (ideal, stream, metalium) = (path("ideal"), path("stream"), path("metalium"));
    assert!(ideal.signal && !stream.signal);
    assert_eq!((ideal.start, ideal.barrier), (stream.start, stream.barrier));
    let plain = Path {
        name: ideal.name.clone(),
        summary: ideal.summary.clone(),
        protocol: None,
        ..metalium.clone()
    };
    assert_eq!(plain, *ideal, "the protocol is all that the kernels add");
}

#[test]
fn a_protocol_says_what_of_it_makes_no_sense() {
    let text = fs::read_to_string(folder().join("wormhole-n150.toml")).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Machine::parse(&text.replace(from, to), "n.toml")
            .unwrap_err()
            .to_string()
    };
    let count = |key: &str, value: u32| format!("{key:<16} = {{ value = {value}, unit = \"count\"");
    let keys = "path.metalium.protocol.";
    for (key, now, wrong, says) in [
        ("window_tiles", 2, 0, "a window has at least one tile"),
        ("windows_at_least", 32, 0, "at least one window; write 1"),
        ("repeats", 5, 0, "runs at least once; write 1"),
        ("evaluated", 5, 6, "one of the runs 1 to 5 is timed"),
        ("evaluated", 5, 0, "one of the runs 1 to 5 is timed"),
    ] {
        let error = refused(&count(key, now), &count(key, wrong));
        assert!(
            error.contains(&format!("{keys}{key}")) && error.contains(says),
            "{error}"
        );
    }
    let error = refused("evaluated        =", "evaluate         =");
    assert!(error.contains("missing key `evaluated`"), "{error}");
    let loggp = fs::read_to_string(folder().join("loggp.toml")).unwrap();
    let start = text.find("[path.metalium.protocol]").unwrap();
    let table = &text[start..start + text[start..].find("[path.stream]").unwrap()];
    let table = table.replace("metalium", "message");
    let error = Machine::parse(&format!("{loggp}\n{table}"), "l.toml")
        .unwrap_err()
        .to_string();
    assert!(error.contains("add `combine_tile`"), "{error}");
}
