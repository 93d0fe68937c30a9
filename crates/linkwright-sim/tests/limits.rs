//! The limit of a problem: no schedule is faster, and it is the same for all; some limits derived by hand.

use linkwright_core::machine::Grid;
use linkwright_core::random::Random;
use linkwright_core::{Machine, TimePs};
use linkwright_schedule::collectives::{build, REGISTRY};
use linkwright_schedule::exchange::{Routing, UnevenExchange};
use linkwright_schedule::patterns::{Traffic, REGISTRY as PATTERNS};
use linkwright_schedule::{verify, Collective, Shape};
use linkwright_sim::run::limits_of;
use linkwright_sim::{ask, lowered, How, Limit, Placement, SimError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn machine(path: &str) -> Machine {
    let text = std::fs::read_to_string(file(path)).unwrap();
    Machine::parse(&text, path).unwrap()
}

/// The machine with this many ranks; `None` where it cannot have them.
fn sized(machine: &Machine, ranks: u32) -> Option<Machine> {
    match machine.open_size() {
        Some(_) if ranks == 12 => machine.with_grid(Grid::new(4, 3)).ok(),
        // Machines of three and six axes have no other grid.
        Some(_) if ranks == 8 => machine.with_sides(&[2, 2, 2]).ok(),
        Some(_) if ranks == 64 => machine.with_sides(&[2; 6]).ok(),
        Some(_) => machine.with_endpoints(ranks as usize).ok(),
        None => (machine.ranks() >= ranks as usize).then(|| machine.clone()),
    }
    .or_else(|| machine.with_endpoints(ranks as usize).ok())
}

/// Times and limits of every algorithm of `collective`, by key.
fn all(
    collective: Collective,
    machine: &Machine,
    shape: &Shape,
    options: &How,
) -> BTreeMap<String, (TimePs, Option<Limit>)> {
    let mut found = BTreeMap::new();
    for algorithm in REGISTRY.iter().filter(|a| a.collective == collective) {
        let key = algorithm.key();
        let Ok(built) = build(&key, shape) else {
            continue;
        };
        let lower = lowered(
            &built,
            machine,
            options.path.as_deref(),
            &Placement::Identity,
        )
        .unwrap();
        let schedule = lower.unwrap_or(built);
        verify(&schedule).unwrap();
        // A time below either bound is an error of `run`.
        match ask(machine, &schedule, options) {
            Ok(modelled) => {
                let limit = modelled.limits.largest().cloned();
                let (time, bound) = (modelled.simulation.makespan, modelled.bounds.largest());
                let bound = bound.map_or(TimePs::ZERO, |bound| bound.time);
                assert!(bound <= time + TimePs(1_000_000), "{key}: {bound} {time}");
                found.insert(key, (time, limit));
            }
            Err(error @ SimError::BelowLimit { .. }) => {
                panic!(
                    "{key} {shape:?} on {} {:?}: {error}",
                    machine.name(),
                    options.path
                )
            }
            Err(_) => {} // too few memories, no route: another test's matter
        }
    }
    found
}

/// On all paths of a machine: one limit for all algorithms, which none beats and `limits_of` gives.
fn one_limit(path: &str, ranks: &[u32], sizes: &[u64]) {
    let described = machine(path);
    let mut compared = 0;
    for machine in ranks
        .iter()
        .filter_map(|&ranks| sized(&described, ranks).map(|m| (m, ranks)))
    {
        let (machine, ranks) = machine;
        for way in machine.paths().iter().map(|path| path.name.clone()) {
            let options = How {
                path: Some(way),
                ..How::default()
            };
            for collective in Collective::ALL {
                for &elements in sizes {
                    let shape = Shape::new(ranks, elements).with_root(ranks / 2);
                    let found = all(collective, &machine, &shape, &options);
                    let limits: Vec<_> = found.values().map(|(_, limit)| limit.clone()).collect();
                    let what = format!("{} {ranks} {shape:?}: {found:?}", collective.name());
                    assert!(limits.windows(2).all(|two| two[0] == two[1]), "{what}");
                    let Some(first) = limits.first() else {
                        continue;
                    };
                    let asked = limits_of(collective, &shape, &machine, &options).unwrap();
                    assert_eq!(asked.largest(), first.as_ref(), "{what}");
                    compared += found.len();
                }
            }
        }
    }
    assert!(compared > 20, "{path}: {compared}");
}

const SIZES: [u64; 3] = [1, 1000, 30_000];

/// Whether a machine file has parts or is a node of clusters, which Python composes.
fn is_composed(name: &str) -> bool {
    let text = std::fs::read_to_string(file("python/linkwright/machines").join(name)).unwrap();
    ["parts = [", "[cluster]"]
        .iter()
        .any(|key| text.lines().any(|line| line.starts_with(key)))
}

macro_rules! on_every_machine {
    ($($name:ident: $file:literal $ranks:expr;)*) => {
        $(
            #[test]
            fn $name() {
                one_limit(concat!("python/linkwright/machines/", $file, ".toml"), &$ranks, &SIZES);
            }
        )*

        #[test]
        fn every_shipped_machine_is_among_them() {
            let known = [$(concat!($file, ".toml")),*];
            for entry in std::fs::read_dir(file("python/linkwright/machines")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let whole = name.ends_with(".toml") && !is_composed(&name);
                assert!(!whole || known.contains(&name.as_str()), "{name}");
            }
        }
    };
}

on_every_machine! {
    loggp: "loggp" [2, 5, 8, 16];
    crossbar: "crossbar" [2, 5, 8, 16];
    h200_sms: "h200-sms" [2, 5, 16];
    cell: "cell-be" [2, 4, 8];
    dgx1: "dgx1-p100" [2, 3, 8];
    gx8: "gx8-p100" [2, 5, 8];
    ipu_chip: "ipu-c2-chip" [2, 16];
    ipu_board: "ipu-c2-board" [2, 16];
    ipu_server: "ipu-c2-server" [2, 16];
    knl: "knl-omnipath" [2, 16];
    torus: "torus-2d" [4, 12, 16];
    torus_400g: "torus-400g" [4, 12, 16];
    fugaku: "fugaku" [64];
    tpu: "tpu-v4" [8];
    t3000: "tenstorrent-t3000" [2, 8];
    galaxy: "tenstorrent-galaxy" [2, 16];
    vollo: "vollo-ia420f" [2, 3];
    wormhole: "wormhole-n150" [2, 16];
    blackhole: "blackhole-p150" [2, 16];
}

#[test]
fn shuffled_ranks_have_one_limit_too() {
    for (path, ranks) in [
        ("dgx1-p100", 5),
        ("wormhole-n150", 9),
        ("cell-be", 6),
        ("ipu-c2-server", 12),
    ] {
        let machine = machine(&format!("python/linkwright/machines/{path}.toml"));
        for seed in 0..4 {
            let options = How {
                placement: Placement::Shuffle(seed),
                ..How::default()
            };
            for collective in Collective::ALL {
                let shape = Shape::new(ranks, 3000).with_root(1);
                let found = all(collective, &machine, &shape, &options);
                let mut limits = found.values().map(|(_, limit)| limit);
                let first = limits.next();
                assert!(
                    limits.all(|limit| Some(limit) == first),
                    "{path} {collective:?} {found:?}"
                );
            }
        }
    }
}

#[test]
fn no_pattern_is_faster_than_its_limit() {
    let mut run_of = 0;
    for (path, ranks) in [
        ("dgx1-p100", 8),
        ("wormhole-n150", 16),
        ("cell-be", 8),
        ("crossbar", 16),
        ("gx8-p100", 4),
        ("ipu-c2-board", 16),
    ] {
        let machine = machine(&format!("python/linkwright/machines/{path}.toml"));
        let machine = sized(&machine, ranks).unwrap();
        for (pattern, elements, both_ways) in PATTERNS
            .iter()
            .flat_map(|pattern| [(pattern, 100, false), (pattern, 20_000, true)])
        {
            let traffic = Traffic {
                count: 3,
                both_ways,
                ..Traffic::new(Shape::new(ranks, elements))
            };
            let Ok(built) = (pattern.build)(&traffic) else {
                continue;
            };
            let schedule = lowered(&built, &machine, None, &Placement::Identity)
                .unwrap()
                .unwrap_or(built);
            let found = ask(&machine, &schedule, &How::default()).unwrap();
            let (limit, bound) = (
                found.limits.largest().unwrap(),
                found.bounds.largest().unwrap(),
            );
            assert!(limit.time >= bound.time, "a pattern is its messages");
            run_of += 1;
        }
    }
    assert!(run_of > 50, "{run_of}");
}

/// The machine of `tests/cases/machines/flow.toml`, 1 byte per ns on a wire, over other edges.
fn graph(ranks: u32, switches: &str, edges: &str) -> Machine {
    let text = std::fs::read_to_string(file("tests/cases/machines/flow.toml")).unwrap();
    let text = text
        .replace("count = 4", &format!("count = {ranks}"))
        .replace(
            r#"switches = ["A", "B"]"#,
            &format!("switches = [{switches}]"),
        )
        .replace(
            r#"edges = ["A - rank 0..1", "B - rank 2..3", "A - B"]"#,
            &format!("edges = [{edges}]"),
        );
    Machine::parse(&text, "graph.toml").unwrap()
}

/// Limits in ns of a collective of vectors of `bytes`, by name.
fn limits_ns(
    collective: Collective,
    bytes: u64,
    machine: &Machine,
    options: &How,
) -> BTreeMap<&'static str, f64> {
    let shape = Shape::new(machine.ranks() as u32, bytes / 4);
    let found = limits_of(collective, &shape, machine, options).unwrap();
    let ns = |limit: &Limit| (limit.name, limit.time.0 as f64 / 1e3);
    found.0.iter().map(ns).collect()
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn a_ring_of_four() {
    let edges = r#""rank 0 - rank 1", "rank 1 - rank 2", "rank 2 - rank 3", "rank 3 - rank 0""#;
    let ring = graph(4, "", edges);
    let of = |collective| limits_ns(collective, 4000, &ring, &How::default());
    let allreduce = of(Collective::Allreduce);
    // Rank 0 hears of rank 2 over a neighbour: 2 x (start 100 + wire 50).
    near(allreduce["latency"], 300.0);
    // 2 x 3 x 4000 B into four ranks with two wires each.
    near(allreduce["port"], 3000.0);
    // 4000 B out of any arc, over two wires.
    near(allreduce["cut"], 2000.0);
    let alltoall = of(Collective::Alltoall);
    // Three blocks of 1000 B into each; 2 x 2 blocks from one half to the other.
    near(alltoall["port"], 1500.0);
    near(alltoall["cut"], 2000.0);
    // The root's 4000 B leave it over two wires; the farthest rank is two wires away.
    let broadcast = of(Collective::Broadcast);
    near(broadcast["port"], 2000.0);
    near(broadcast["latency"], 300.0);
}

#[test]
fn bytes_pass_behind_the_first_of_them() {
    let edges = r#""rank 0 - rank 1", "rank 1 - rank 2", "rank 2 - rank 3", "rank 3 - rank 0""#;
    let ring = graph(4, "", edges);
    let of = |collective| limits_ns(collective, 4000, &ring, &How::default())["arrival"];
    // A message starts for 100, and its last byte is 50 away. Into two wires: three blocks behind the first start take
    // 100 + 1500 + 50; that of rank 2, which comes over a neighbour, 150 + 100 + 500 + 50.
    near(of(Collective::Allgather), 1650.0);
    // Half of the blocks cross a cut of two wires: 100 + 2000 + 50.
    near(of(Collective::Alltoall), 2150.0);
    // Rank 2 gets nothing before 150 + 100, and then 4000 B over two wires.
    near(of(Collective::Broadcast), 2300.0);
    // 2 x 3 x 4000 B into all eight ends of wires.
    near(of(Collective::Allreduce), 3150.0);
}

/// Start 100, a wire 50; what is relayed starts anew.
#[test]
fn only_who_has_something_sends_on() {
    let pairs: Vec<String> = (0..5)
        .map(|i| format!("\"rank {i} - rank {}\"", (i + 1) % 5))
        .collect();
    let ring = graph(5, "", &pairs.join(", "));
    let of = |collective| limits_ns(collective, 4000, &ring, &How::default())["arrival"];
    // Rank 2 hears over rank 1, whose wire brings nothing before 150 + 100 and its last byte 50 later, and over 4 and 3,
    // 150 later: 4000 = (T - 300) + (T - 450).
    near(of(Collective::Broadcast), 2375.0);
    // The same backwards: what rank 2 sends over 3 and 4 must leave it 150 sooner.
    near(of(Collective::Reduce), 2375.0);
    // Everything of everybody over ten wires, from 100 on: 2 x 4 x 4000 B.
    near(of(Collective::Allreduce), 3350.0);
}

#[test]
fn what_comes_late_comes_for_each() {
    // Two ranks at each of two switches, which one wire joins: the two on the other side need 4000 B that leave no rank on
    // this side before 100 and come 150 behind the last. What has not left by 200 = one hop before that comes twice:
    // 2 x 4000 = (T - 250) + (T - 450).
    let pairs = machine("tests/cases/machines/flow.toml");
    let of = |collective, bytes| limits_ns(collective, bytes, &pairs, &How::default())["arrival"];
    near(of(Collective::Broadcast, 4000), 4350.0);
    near(of(Collective::Reduce, 4000), 4350.0);
    // 80 B: rank 0 has sent them to three others at 240 + 200, before rank 1 could have sent any on at 200 + 250.
    near(of(Collective::Broadcast, 80), 440.0);
}

#[test]
fn a_tree_that_is_narrow_at_its_top() {
    // Four ranks at each of two leaves, one wire each; a wire from each leaf to each of two spines.
    let edges = r#""leaf 0 - rank 0..3", "leaf 1 - rank 4..7", "spine 0 - leaf 0", "spine 0 - leaf 1", "spine 1 - leaf 0", "spine 1 - leaf 1""#;
    let tree = graph(8, r#""leaf 0..1", "spine 0..1""#, edges);
    let alltoall = limits_ns(Collective::Alltoall, 8000, &tree, &How::default());
    near(alltoall["port"], 7000.0);
    // 4 x 4 blocks of 1000 B. Both spines are equally near, so messages are spread over two wires.
    near(alltoall["cut"], 8_000.0);
    // start 100, four wires.
    near(alltoall["latency"], 300.0);
    let shape = Shape::new(8, 2000);
    let found = limits_of(Collective::Alltoall, &shape, &tree, &How::default()).unwrap();
    let largest = found.largest().unwrap();
    assert_eq!(
        (largest.name, largest.what.as_str()),
        ("arrival", "across the narrowest cut, none before 100.0 ns")
    );
    // That cut, behind a start of 100, and four wires of 50 behind it.
    near(largest.time.0 as f64 / 1e3, 8_300.0);
    assert_eq!((largest.bytes, largest.rate.unwrap().0), (16_000, 2e9));
}

/// Five ranks around a switch; a receiver needs 30 ns for each message, an addition takes 40 ns.
#[test]
fn news_and_additions_come_one_after_another() {
    let text = std::fs::read_to_string(file("tests/cases/machines/flow.toml")).unwrap();
    let number = |key: &str, value: &str, unit: &str| {
        format!("{key} = {{ value = {value}, unit = \"{unit}\", status = \"assumed\", source = \"by definition\" }}\n")
    };
    let text = (text.replace("count = 4", "count = 5"))
        .replace(
            r#"edges = ["A - rank 0..1", "B - rank 2..3", "A - B"]"#,
            r#"edges = ["A - rank 0..4"]"#,
        )
        .replace("fused_combine = true", "fused_combine = false")
        + &number("receive", "30", "ns")
        + &number("combine_start", "40", "ns");
    let star = Machine::parse(&text.replace(r#", "B"]"#, "]"), "star.toml").unwrap();
    let of = |collective| limits_ns(collective, 4000, &star, &How::default());
    // start 100 + two wires of 50: the first comes at 200 and is handled at 230, then one every 30: the fourth and last
    // at 320. Only from 430 on could a message bring news of two ranks.
    near(of(Collective::Allgather)["latency"], 320.0);
    // In a broadcast, nothing gathers at one rank: its one message is handled once.
    near(of(Collective::Broadcast)["latency"], 230.0);
    // The first operand at 200, added at 240, and the others at 280, 320, 360; all 4/5 of 4000 B in one addition of 40
    // come behind the first as well.
    near(of(Collective::ReduceScatter)["compute"], 360.0);
}

#[test]
fn dgx1_is_narrow_between_its_halves() {
    let dgx1 = machine("python/linkwright/machines/dgx1-p100.toml");
    let on = |path: &str| How {
        path: Some(path.to_string()),
        ..How::default()
    };
    // By NVLink alone: three links within the half and one across, 18.5 GB/s each.
    let (size, link) = (8_000_000, 18.5);
    let dma = |collective| limits_ns(collective, size, &dgx1, &on("dma"));
    near(
        dma(Collective::Allreduce)["cut"],
        size as f64 / (4.0 * link),
    );
    // 4 x 4 blocks of an eighth from half to half over four links.
    near(
        dma(Collective::Alltoall)["cut"],
        2.0 * size as f64 / (4.0 * link),
    );
    // A ring kernel may also use PCIe, 15.75 GB/s x 0.832, and the sockets: what passes one is received and sent. Of an
    // NVLink, the messages of its pair take 0.866.
    let fused = 0.866 * link;
    let ring = |collective| limits_ns(collective, size, &dgx1, &on("ring"));
    near(
        ring(Collective::Allreduce)["cut"],
        size as f64 / (4.0 * fused + 15.75 * 0.832),
    );
    near(
        ring(Collective::Alltoall)["cut"],
        2.0 * size as f64 / (4.0 * fused + 35.6 / 2.0),
    );
}

#[test]
fn all_links_together_hold_more_up_than_any_cut() {
    // Ranks 0 and 1 are joined to each of 2, 3 and 4. Cuts let an all-to-all of 5 x 1000 B pass in 2000 ns: 4 blocks
    // out of rank 2 over two wires. But 12 of the 20 blocks go over one wire and 8 over two: 28 uses of 12 wires.
    let edges: Vec<String> = (0..6)
        .map(|i| format!("\"rank {} - rank {}\"", i % 2, 2 + i / 2))
        .collect();
    let two_by_three = graph(5, "", &edges.join(", "));
    let of = |collective| limits_ns(collective, 5000, &two_by_three, &How::default());
    let alltoall = of(Collective::Alltoall);
    near(alltoall["cut"], 2000.0);
    near(alltoall["links"], 28_000.0 / 12.0);
    // A start of 100 before the first byte, and a wire of 50 behind the last.
    near(alltoall["arrival"], 28_000.0 / 12.0 + 150.0);
    // 2 x 4 vectors over 12 wires: no tree is cheaper where all links are equal.
    near(of(Collective::Allreduce)["links"], 8.0 * 5000.0 / 12.0);
}

#[test]
fn sums_of_a_riser_pass_its_link_or_its_gpus() {
    let gx8 = machine("python/linkwright/machines/gx8-p100.toml");
    let size = 64 << 20;
    let found = limits_ns(Collective::Allreduce, size, &gx8, &How::default());
    // Four GPUs and the rest of the machine are five groups. They need 2 x 4 messages for each element, into one of the
    // GPUs or out of their riser. The host may add and relay, so the root complex does not limit them.
    let pcie = 15.75 * 0.832;
    let best = 8.0 * size as f64 / (5.0 * pcie);
    assert!(found["links"] <= best && found["links"] > 0.99 * best);
    let dgx1 = machine("python/linkwright/machines/dgx1-p100.toml");
    let found = limits_ns(Collective::Allreduce, size, &dgx1, &How::default());
    // 2 x 7 vectors go over 32 NVLinks, or over the four links of each PCIe direction between switches and processors.
    let (nvlink, pcie) = (0.866 * 18.5, 15.75 * 0.832);
    let best = 14.0 * size as f64 / (32.0 * nvlink + 8.0 * pcie);
    assert!(found["links"] > 0.98 * best && found["links"] < 1.05 * best);
}

#[test]
fn an_ideal_switch_has_ports_only() {
    let crossbar = sized(&machine("python/linkwright/machines/crossbar.toml"), 8).unwrap();
    let found = limits_ns(Collective::Allreduce, 1 << 20, &crossbar, &How::default());
    // 2 x 7 vectors into eight ports of 25 GB/s; start 100 ns, then 500 ns through the switch.
    near(found["port"], 14.0 * (1u64 << 20) as f64 / (8.0 * 25.0));
    near(found["latency"], 600.0);
    assert!(!found.contains_key("cut"));
}

#[test]
fn half_of_a_torus_exchanges_over_its_borders() {
    let torus = machine("python/linkwright/machines/torus-2d.toml");
    let torus = torus.with_grid(Grid::new(4, 4)).unwrap();
    let shape = Shape::new(16, 16 * 4096);
    let found = limits_of(Collective::Alltoall, &shape, &torus, &How::default()).unwrap();
    let of = |name| found.0.iter().find(|limit| limit.name == name).unwrap();
    // 8 x 8 blocks of 16 KiB leave half of the columns. Four rows cross two borders; a rank has one port.
    assert_eq!(of("cut").bytes, 64 << 14);
    near(of("cut").rate.unwrap().0, 8.0 * of("port").rate.unwrap().0);
    assert_eq!(of("port").bytes, 15 << 14);
}

/// Nodes of as many ranks around switch B, each behind a switch of its own, whose wire to B is its NIC.
fn nodes(count: u32, ranks: u32) -> Machine {
    let switches: Vec<String> = (0..count).map(|i| format!("\"N{i}\"")).collect();
    let of = |i: u32| {
        let (first, last) = (ranks * i, ranks * (i + 1) - 1);
        format!("\"N{i} - rank {first}..{last}\", \"N{i} - B\"")
    };
    let edges: Vec<String> = (0..count).map(of).collect();
    let text = std::fs::read_to_string(file("tests/cases/machines/flow.toml")).unwrap();
    let node = format!("count = {count}\nsource = \"by definition\"\n\n[[level]]\nname = \"rank\"\ncount = {ranks}");
    let endpoints = format!("[endpoints]\ncount = {}", count * ranks);
    let text = (text.replace("[endpoints]\ncount = 4", &endpoints))
        .replacen("count = 4", &node, 1)
        .replace(
            r#"switches = ["A", "B"]"#,
            &format!("switches = [{}, \"B\"]", switches.join(", ")),
        )
        .replace(
            r#"edges = ["A - rank 0..1", "B - rank 2..3", "A - B"]"#,
            &format!("edges = [{}]", edges.join(", ")),
        );
    Machine::parse(&text, "nodes.toml").unwrap()
}

/// Vectors of bytes, with counts for each pair.
fn counted(ranks: u32, counts: Vec<u64>) -> Shape {
    let most = counts.chunks(ranks as usize).map(|row| row.iter().sum());
    let most = most.max().unwrap();
    Shape {
        element_bytes: 1,
        exchange: Some(Arc::new(UnevenExchange::Counts(counts))),
        ..Shape::new(ranks, most)
    }
}

fn uneven_limit(shape: &Shape, machine: &Machine, name: &str) -> Limit {
    let found = limits_of(Collective::Alltoallv, shape, machine, &How::default()).unwrap();
    let found = found.0.into_iter().find(|limit| limit.name == name);
    found.unwrap()
}

#[test]
fn skewed_counts_pass_the_nic_of_the_fullest_node() {
    // Two nodes of two ranks. Rank 0 has 1000 B for rank 2 and 2000 B for rank 3, rank 1 has 3000 B for rank 3 and 500 B
    // for rank 0. Into rank 3: 5000 B over its wire. Into node 1: 6000 B over its NIC, none before a start of 100, with
    // four wires of 50 behind the last.
    let mut counts = vec![0; 16];
    (counts[2], counts[3], counts[7], counts[4]) = (1000, 2000, 3000, 500);
    let (shape, two) = (counted(4, counts), nodes(2, 2));
    near(uneven_limit(&shape, &two, "port").time.0 as f64, 5e6);
    let nic = uneven_limit(&shape, &two, "cut");
    assert_eq!((nic.time, nic.bytes), (TimePs(6_000_000), 6000));
    assert_eq!(nic.what, "out of ranks 0, 1, over N0 -> B");
    let behind = uneven_limit(&shape, &two, "arrival");
    assert_eq!(behind.time, TimePs(6_300_000));
}

#[test]
fn a_full_node_anywhere_is_found() {
    // Four nodes of three ranks, where the cuts that divide the ranks in order are those of rank 0 and of quarters. All
    // others send 100 B to each rank of node 2: 9 x 3 x 100 B over its NIC, of which 9 x 100 into each rank.
    for full in 0..4 {
        let counts = (0..144).map(|pair| match (pair / 12 / 3, pair % 12 / 3) {
            (from, to) if to == full && from != full => 100,
            _ => 1,
        });
        let (shape, four) = (counted(12, counts.collect()), nodes(4, 3));
        let nic = uneven_limit(&shape, &four, "cut");
        assert_eq!(nic.bytes, 2700);
        let ranks: Vec<String> = (0..3).map(|i| (3 * full + i).to_string()).collect();
        let ranks = ranks.join(", ");
        assert_eq!(nic.what, format!("into ranks {ranks}, over B -> N{full}"));
    }
}

/// Random counts and machines: `ask` fails where an algorithm is faster than its limit.
#[test]
fn no_uneven_exchange_is_faster_than_its_limit() {
    let mut random = Random::new(36);
    let mut share = 0.0f64;
    for run in 0..60 {
        let (rows, columns) = (2 + random.below(4) as u32, 1 + random.below(4) as u32);
        let (ranks, machine) = (rows * columns, nodes(rows, columns));
        let full = random.below(ranks.into());
        let counts = (0..u64::from(ranks).pow(2)).map(|pair| match random.below(3) {
            0 => 0,
            _ if pair % u64::from(ranks) == full => 1 + random.below(9000),
            _ => 1 + random.below(3000),
        });
        let counted = counted(ranks, counts.collect());
        let experts = ranks * (1 + random.below(3) as u32);
        let routing = Routing {
            experts,
            topk: 1 + random.below(experts.min(8).into()) as u32,
            token_elements: 16,
            skew_permille: random.below(2000) as u32,
            seed: run,
            owners: Vec::new(),
        };
        let routed = Shape {
            exchange: Some(Arc::new(UnevenExchange::Routed(routing))),
            ..Shape::new(ranks, 16 * (1 + random.below(64)))
        };
        let grid = |shape: Shape| shape.with_grid(columns, rows);
        for (collective, shape) in [
            (Collective::Alltoallv, grid(counted)),
            (Collective::Dispatch, grid(routed.clone())),
            (Collective::Combine, grid(routed)),
        ] {
            let found = all(collective, &machine, &shape, &How::default());
            assert!(found.len() > 1, "{collective:?} {shape:?}");
            for (time, limit) in found.into_values() {
                let limit = limit.map_or(TimePs::ZERO, |limit| limit.time);
                share = share.max(limit.0 as f64 / time.0 as f64);
            }
        }
    }
    assert!(share > 0.9, "{share}");
}
