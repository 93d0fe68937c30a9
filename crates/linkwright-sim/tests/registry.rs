//! What must hold for every algorithm on every plain machine.

use linkwright_core::machine::OpenSize;
use linkwright_core::{Machine, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives::{Algorithm, REGISTRY};
use linkwright_schedule::ir::OpKind;
use linkwright_schedule::patterns::{self, Traffic};
use linkwright_schedule::{Collective, Schedule, ScheduleError};
use linkwright_sim::fabrics::FABRICS;
use linkwright_sim::run::sized;
use linkwright_sim::{lowered, run, Issue, Modelled, Options};

const EXCHANGE: &str = r#"
[machine]
name = "exchange"
summary = "for tests"
description = "for tests"
sources = ["by definition"]
format = 1
[[level]]
name = "tile"
count = "any"
source = "by definition"
[endpoints]
count = "any"
source = "by definition"
[fabric]
kind = "exchange"
sync = { value = 150, unit = "ns", status = "assumed", source = "a round number" }
bandwidth = { value = 8, unit = "GB/s", status = "assumed", source = "a round number" }
[path.copy]
summary = "a compiled copy"
fused_combine = true
combine_rate = { value = 10, unit = "GB/s", status = "assumed", source = "a round number" }
"#;

fn machine(name: &str) -> Machine {
    if name == "exchange" {
        return Machine::parse(EXCHANGE, "exchange.toml").unwrap();
    }
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/linkwright/machines"
    );
    let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap();
    Machine::parse(&text, name).unwrap()
}

/// The schedule as the machine's default path needs it; `None` where the algorithm is waived or
/// needs memories that the machine lacks.
fn schedule(algorithm: &Algorithm, shape: &Shape, machine: &Machine) -> Option<Schedule> {
    let schedule = match (algorithm.build)(shape) {
        Err(ScheduleError::Waived { .. }) => return None,
        other => other.unwrap(),
    };
    if schedule.memories as usize > machine.memories() {
        return None;
    }
    let sized = sized(machine, shape.ranks, shape.grid).unwrap();
    Some(
        lowered(&schedule, &sized, None)
            .unwrap()
            .unwrap_or(schedule),
    )
}

fn simulated(schedule: &Schedule, machine: &Machine, options: &Options) -> Modelled {
    let result = run(schedule, machine, options);
    result.unwrap_or_else(|e| panic!("{e}"))
}

/// Simulate by every issue policy: `run` fails where a time is below its limit; every byte sent must
/// arrive, and the critical path cover the time without a gap.
fn check(schedule: &Schedule, machine: &Machine, grid: Option<(u32, u32)>, what: &str) {
    let sent: u64 = (schedule.ops().iter())
        .filter(|op| op.is_message())
        .map(|op| schedule.op_bytes(op) * schedule.targets(op).len() as u64)
        .sum();
    for issue in ["blocking", "window(2)", "batch(3)", "unlimited"] {
        let options = Options {
            issue: issue.parse().unwrap(),
            grid,
            ..Options::default()
        };
        let result = run(schedule, machine, &options);
        let result = result.unwrap_or_else(|e| panic!("{what}, {issue}: {e}"));
        let simulation = &result.simulation;
        assert_eq!(simulation.totals.bytes, sent, "{what}");
        let covered: u64 = simulation.critical.totals().iter().sum();
        assert_eq!(covered, simulation.makespan.0, "{what}");
        let shares: f64 = simulation.critical.shares().iter().sum();
        let empty = simulation.makespan.0 == 0;
        assert!(empty || (shares - 1.0).abs() < 1e-9, "{what}: {shares}");
    }
}

#[test]
fn no_algorithm_beats_its_limit_and_every_byte_arrives() {
    for name in ["loggp", "crossbar", "exchange"] {
        let machine = machine(name);
        for algorithm in REGISTRY {
            for (ranks, bytes) in [(1, 64), (2, 0), (3, 1000), (5, 4), (8, 4096), (16, 1 << 20)] {
                let shape = Shape::new(ranks, bytes / 4);
                if let Some(schedule) = schedule(algorithm, &shape, &machine) {
                    let what = format!("{} on {name}, {ranks} ranks", algorithm.key());
                    check(&schedule, &machine, None, &what);
                }
            }
        }
    }
}

#[test]
fn no_algorithm_beats_its_limit_on_a_torus() {
    for (name, side) in [("torus-2d", 4), ("wormhole-n150", 8)] {
        let machine = machine(name);
        for algorithm in REGISTRY {
            for bytes in [2048, 32 << 10] {
                let shape = Shape::new(side * side, bytes / 4).with_grid(side, side);
                if let Some(schedule) = schedule(algorithm, &shape, &machine) {
                    let what = format!("{} on {name}, {bytes} bytes", algorithm.key());
                    check(&schedule, &machine, Some((side, side)), &what);
                }
            }
        }
    }
}

#[test]
fn nothing_beats_its_limit_on_rings() {
    let machine = machine("cell-be");
    for bytes in [64, 1000, 32 << 10] {
        let shape = Shape::new(8, bytes / 4);
        for algorithm in REGISTRY {
            if let Some(schedule) = schedule(algorithm, &shape, &machine) {
                let what = format!("{} on cell-be, {bytes} bytes", algorithm.key());
                check(&schedule, &machine, None, &what);
            }
        }
        for pattern in patterns::REGISTRY {
            let traffic = Traffic {
                count: 3,
                both_ways: true,
                ..Traffic::new(shape.clone())
            };
            let schedule = match (pattern.build)(&traffic) {
                Err(ScheduleError::Waived { .. }) => continue,
                other => other.unwrap(),
            };
            let what = format!("{} on cell-be, {bytes} bytes", pattern.key());
            check(&schedule, &machine, None, &what);
        }
    }
}

#[test]
fn no_algorithm_beats_its_limit_on_a_node() {
    for name in ["dgx1-p100", "gx8-p100"] {
        let machine = machine(name);
        for algorithm in REGISTRY {
            for (ranks, bytes) in [(2, 1000), (5, 4), (8, 0), (8, 1 << 20)] {
                let shape = Shape::new(ranks, bytes / 4);
                if let Some(schedule) = schedule(algorithm, &shape, &machine) {
                    let what = format!("{} on {name}, {ranks} ranks", algorithm.key());
                    check(&schedule, &machine, None, &what);
                }
            }
        }
    }
}

#[test]
fn no_pattern_beats_its_limit() {
    for name in ["loggp", "crossbar", "exchange", "torus-2d", "wormhole-n150"] {
        let machine = machine(name);
        let side = if name == "wormhole-n150" { 8 } else { 4 };
        for pattern in patterns::REGISTRY {
            let shape = Shape::new(side * side, 1000).with_grid(side, side);
            let traffic = Traffic {
                count: 3,
                both_ways: true,
                ..Traffic::new(shape)
            };
            let schedule = (pattern.build)(&traffic).unwrap();
            let what = format!("{} on {name}", pattern.key());
            check(&schedule, &machine, Some((side, side)), &what);
        }
    }
}

#[test]
fn time_grows_with_the_message() {
    // Not on `exchange`: where blocks differ by an element, combinations end at different
    // instants, which tears phases apart; equal but larger blocks join them again.
    for name in ["loggp", "crossbar"] {
        let machine = machine(name);
        for algorithm in REGISTRY {
            let mut before = 0;
            for elements in [0, 1, 7, 64, 1000, 1 << 14, 1 << 20] {
                let Some(schedule) = schedule(algorithm, &Shape::new(8, elements), &machine) else {
                    continue;
                };
                let time = simulated(&schedule, &machine, &Options::default())
                    .simulation
                    .makespan;
                let what = format!("{} on {name} with {elements} elements", algorithm.key());
                assert!(time.0 >= before, "{what}: {time} after {before} ps");
                before = time.0;
            }
        }
    }
}

#[test]
fn two_threads_give_what_one_gives() {
    let machine = machine("crossbar");
    let shape = Shape::new(12, 10_000);
    for algorithm in REGISTRY {
        let Some(schedule) = schedule(algorithm, &shape, &machine) else {
            continue;
        };
        let options = Options {
            issue: Issue::Window(3),
            record_operations: true,
            ..Options::default()
        };
        let once = simulated(&schedule, &machine, &options).simulation;
        std::thread::scope(|scope| {
            let run = || simulated(&schedule, &machine, &options).simulation;
            let threads = [scope.spawn(run), scope.spawn(run)];
            for thread in threads {
                assert_eq!(thread.join().unwrap(), once, "{}", algorithm.key());
            }
        });
    }
}

#[test]
fn combinations_without_arithmetic_are_no_slower() {
    let machine = machine("crossbar");
    for algorithm in REGISTRY.iter().filter(|a| a.collective.reduces()) {
        let Some(schedule) = schedule(algorithm, &Shape::new(6, 60_000), &machine) else {
            continue;
        };
        let without = Options {
            arithmetic: false,
            ..Options::default()
        };
        let with = simulated(&schedule, &machine, &Options::default()).simulation;
        let without = simulated(&schedule, &machine, &without).simulation;
        assert!(without.makespan <= with.makespan, "{}", algorithm.key());
        assert!(schedule.ops().iter().any(|op| op.kind == OpKind::Local));
    }
}

#[test]
fn a_barrier_becomes_notices_where_the_machine_has_none() {
    // On `exchange` two barriers are two syncs of 150 ns; on `crossbar` three rounds each for five
    // ranks, each round 100 ns for the notice and 500 ns on the way.
    let mut b = Builder::new(Collective::Pattern, &Shape::new(5, 4));
    b.barrier(&[0, 1, 2, 3, 4]);
    b.barrier(&[0, 1, 2, 3, 4]);
    let barriers = b.finish().unwrap();
    for (name, time) in [("exchange", 300), ("crossbar", 2 * 3 * 600)] {
        let machine = machine(name);
        let own = lowered(&barriers, &machine, None).unwrap();
        let schedule = own.as_ref().unwrap_or(&barriers);
        let result = simulated(schedule, &machine, &Options::default());
        assert_eq!(result.simulation.makespan, TimePs::from_ns(time), "{name}");
    }
}

#[test]
fn mistakes_name_the_cure() {
    let ring = REGISTRY
        .iter()
        .find(|a| a.key() == "allreduce/ring")
        .unwrap();
    let ring = (ring.build)(&Shape::new(4, 16)).unwrap();
    let crossbar = machine("crossbar");
    let error = |machine: &Machine, options: &Options| run(&ring, machine, options).unwrap_err();
    let path = Options {
        path: Some("putt".into()),
        ..Options::default()
    };
    let text = error(&crossbar, &path).to_string();
    assert_eq!(text, "no path `putt`, did you mean `put`?; known: put");
    let text = error(&crossbar, &Options::default()).to_string();
    assert!(
        text.contains("path `put` only copies; `lowered` makes it"),
        "{text}"
    );

    let small = crossbar.with_endpoints(4).unwrap();
    assert_eq!(small.open_size(), Some(OpenSize::Count));
    let n150 = machine("wormhole-n150");
    let big = (REGISTRY[0].build)(&Shape::new(65, 65)).unwrap();
    let text = run(&big, &n150, &Options::default())
        .unwrap_err()
        .to_string();
    let expected = "the schedule has 65 ranks, machine `wormhole-n150` has 64; use fewer ranks";
    assert!(text.starts_with(expected), "{text}");

    let text = EXCHANGE.replace("kind = \"exchange\"", "kind = \"exchnage\"");
    let unknown = Machine::parse(&text, "exchange.toml").unwrap();
    let text = error(&unknown, &Options::default()).to_string();
    let expected = "fabric.kind: unknown value `exchnage`; did you mean `exchange`?";
    assert!(text.ends_with(expected), "{text}");
    let text = EXCHANGE.replace("sync =", "synk =");
    let misspelt = Machine::parse(&text, "exchange.toml").unwrap();
    let text = error(&misspelt, &Options::default()).to_string();
    assert!(text.contains("sync") && text.contains("synk"), "{text}");
}

#[test]
fn every_fabric_describes_itself() {
    for fabric in FABRICS.iter().map(|entry| entry.kind) {
        for text in [
            fabric.key,
            fabric.summary,
            fabric.description,
            fabric.source,
        ] {
            assert!(!text.trim().is_empty(), "{}", fabric.key);
        }
        assert!(!fabric.summary.ends_with('.'), "{}", fabric.key);
    }
}
