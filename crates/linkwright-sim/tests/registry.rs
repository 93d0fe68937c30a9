//! Invariants of every algorithm on every plain machine.

mod files;

use linkwright_core::machine::OpenSize;
use linkwright_core::{Machine, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives::{Algorithm, REGISTRY};
use linkwright_schedule::ir::OpKind;
use linkwright_schedule::patterns::{self, Traffic};
use linkwright_schedule::{Collective, Schedule, ScheduleError};
use linkwright_sim::fabrics::FABRICS;
use linkwright_sim::placement::Placement;
use linkwright_sim::run::sized;
use linkwright_sim::{ask, lowered, Answer, How, Issue, SimError};

fn machine(name: &str) -> Machine {
    let folder = match name {
        "exchange" => "tests/cases/machines",
        _ => "python/linkwright/machines",
    };
    match name.strip_suffix(" without its kernels") {
        // The path above the one that is marked as the default.
        Some(name) => {
            let once = [("default = true\n", "")];
            files::machine(&format!("{folder}/{name}.toml"), &once)
        }
        None => files::machine(&format!("{folder}/{name}.toml"), &[]),
    }
}

/// The schedule as the machine's default path needs it; `None` if the algorithm is waived or needs
/// memories that the machine lacks.
fn schedule(algorithm: &Algorithm, shape: &Shape, machine: &Machine) -> Option<Schedule> {
    let schedule = match (algorithm.build)(shape) {
        Err(ScheduleError::Waived { .. }) => return None,
        other => other.unwrap(),
    };
    if schedule.memories as usize > machine.memories() {
        return None;
    }
    let sized = sized(machine, shape.ranks, &shape.grid).unwrap();
    let own = lowered(&schedule, &sized, None, &Placement::Identity).unwrap();
    Some(own.unwrap_or(schedule))
}

/// All algorithms that are not waived, with their keys.
fn schedules<'a>(
    shape: &'a Shape,
    machine: &'a Machine,
) -> impl Iterator<Item = (String, Schedule)> + 'a {
    let one = |a: &&Algorithm| Some((a.key(), schedule(a, shape, machine)?));
    REGISTRY.iter().filter_map(one)
}

fn simulated(schedule: &Schedule, machine: &Machine, options: &How) -> Answer {
    let result = ask(machine, schedule, options);
    result.unwrap_or_else(|e| panic!("{e}"))
}

/// Simulate under every issue policy: `run` fails if a time is below its limit; every byte sent must arrive, and the
/// critical path must cover the time without a gap.
fn check(schedule: &Schedule, machine: &Machine, grid: Option<(u32, u32)>, what: &str) {
    let sent: u64 = (schedule.ops().iter())
        .filter(|op| op.is_message())
        .map(|op| schedule.op_bytes(op) * schedule.targets(op).len() as u64)
        .sum();
    for issue in ["blocking", "window(2)", "batch(3)", "unlimited"] {
        let options = How {
            issue: issue.parse().unwrap(),
            grid: grid.map_or_else(Vec::new, |(columns, rows)| vec![columns, rows]),
            ..How::default()
        };
        let result = match ask(machine, schedule, &options) {
            Err(SimError::NoMemory { .. }) => return, // one-shot exchanges on the local stores of a Cell
            result => result.unwrap_or_else(|e| panic!("{what}, {issue}: {e}")),
        };
        let simulation = &result.simulation;
        // A path with a protocol may repeat an algorithm and time one run.
        let repeats = u64::from(schedule.spec.repeats);
        assert_eq!(simulation.totals.bytes * repeats, sent, "{what}");
        let covered: u64 = simulation.critical.totals().iter().sum();
        assert_eq!(covered, simulation.makespan.0, "{what}");
        let shares: f64 = simulation.critical.shares().iter().sum();
        let empty = simulation.makespan.0 == 0;
        assert!(empty || (shares - 1.0).abs() < 1e-9, "{what}: {shares}");
    }
}

/// Check every algorithm on each machine, in each shape.
fn check_algorithms(machines: &[&str], shapes: &[Shape]) {
    for name in machines {
        let machine = machine(name);
        for shape in shapes {
            for (key, schedule) in schedules(shape, &machine) {
                let what = format!("{key} on {name}, {shape:?}");
                check(&schedule, &machine, shape.plane(), &what);
            }
        }
    }
}

/// Check every pattern on a machine.
fn check_patterns(name: &str, shape: &Shape) {
    let machine = machine(name);
    let traffic = Traffic {
        count: 3,
        both_ways: true,
        ..Traffic::new(shape.clone())
    };
    for pattern in patterns::REGISTRY {
        let schedule = match (pattern.build)(&traffic) {
            Err(ScheduleError::Waived { .. }) => continue,
            other => other.unwrap(),
        };
        let what = format!("{} on {name}, {shape:?}", pattern.key());
        check(&schedule, &machine, shape.plane(), &what);
    }
}

fn square(side: u32, elements: u64) -> Shape {
    Shape::new(side * side, elements).with_grid(side, side)
}

#[test]
fn no_algorithm_beats_its_limit_and_every_byte_arrives() {
    let shapes = [(1, 16), (2, 0), (3, 250), (5, 1), (8, 1024), (16, 1 << 18)];
    let shapes = shapes.map(|(ranks, elements)| Shape::new(ranks, elements));
    check_algorithms(&["loggp", "crossbar", "exchange"], &shapes);
}

#[test]
fn no_algorithm_beats_its_limit_on_a_torus() {
    for (name, side) in [
        ("torus-2d", 4),
        ("wormhole-n150", 4),
        ("wormhole-n150 without its kernels", 8),
    ] {
        check_algorithms(&[name], &[512, 8 << 10].map(|n| square(side, n)));
    }
}

#[test]
fn nothing_beats_its_limit_on_rings() {
    let shapes = [16, 250, 8 << 10].map(|elements| Shape::new(8, elements));
    check_algorithms(&["cell-be"], &shapes);
    shapes
        .iter()
        .for_each(|shape| check_patterns("cell-be", shape));
}

#[test]
fn no_algorithm_beats_its_limit_on_a_node() {
    let shapes = [(2, 250), (5, 1), (8, 0), (8, 1 << 18)];
    let shapes = shapes.map(|(ranks, elements)| Shape::new(ranks, elements));
    check_algorithms(&["dgx1-p100", "gx8-p100"], &shapes);
}

#[test]
fn no_pattern_beats_its_limit() {
    for name in ["loggp", "crossbar", "exchange", "torus-2d"] {
        check_patterns(name, &square(4, 1000));
    }
    check_patterns("wormhole-n150", &square(8, 1000));
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
                let time = simulated(&schedule, &machine, &How::default())
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
fn a_fabric_that_is_used_again_gives_what_a_new_one_gives() {
    let own = [
        ("wormhole-n150", square(8, 1000)),
        ("torus-2d", square(4, 1000)),
    ];
    let plain = ["loggp", "crossbar", "exchange", "cell-be", "dgx1-p100"];
    let plain = plain.map(|name| (name, Shape::new(8, 5000)));
    for (name, shape) in own.into_iter().chain(plain) {
        let used = machine(name);
        for (key, schedule) in schedules(&shape, &used).step_by(11) {
            let channels = Some(1 + schedule.ops().len() as u32 % 3);
            for channels in [None, channels] {
                let options = How {
                    channels,
                    grid: shape.grid.clone(),
                    ..How::default()
                };
                let [again, new] = [&used, &machine(name)].map(|machine| {
                    let modelled = simulated(&schedule, machine, &options);
                    (modelled.simulation.finish, modelled.limits)
                });
                assert_eq!(again, new, "{key} on {name}, {channels:?} channels");
            }
        }
    }
}

#[test]
fn two_threads_give_what_one_gives() {
    let shape = Shape::new(12, 10_000);
    let options = How {
        issue: Issue::Window(3),
        operations: true,
        ..How::default()
    };
    for machine in ["crossbar", "loggp"].map(machine) {
        for (key, schedule) in schedules(&shape, &machine) {
            let run = || simulated(&schedule, &machine, &options).simulation;
            let once = run();
            std::thread::scope(|scope| {
                for thread in [scope.spawn(run), scope.spawn(run)] {
                    assert_eq!(thread.join().unwrap(), once, "{key}");
                }
            });
        }
    }
}

#[test]
fn combinations_without_arithmetic_are_no_slower() {
    let machine = machine("crossbar");
    for algorithm in REGISTRY.iter().filter(|a| a.collective.reduces()) {
        let Some(schedule) = schedule(algorithm, &Shape::new(6, 60_000), &machine) else {
            continue;
        };
        let without = How {
            arithmetic: false,
            ..How::default()
        };
        let with = simulated(&schedule, &machine, &How::default()).simulation;
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
        let own = lowered(&barriers, &machine, None, &Placement::Identity).unwrap();
        let schedule = own.as_ref().unwrap_or(&barriers);
        let result = simulated(schedule, &machine, &How::default());
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
    let error = |machine: &Machine, options: &How| ask(machine, &ring, options).unwrap_err();
    let path = How {
        path: Some("putt".into()),
        ..How::default()
    };
    let text = error(&crossbar, &path).to_string();
    assert_eq!(text, "no path `putt`, did you mean `put`?; known: put");
    let text = error(&crossbar, &How::default()).to_string();
    assert!(
        text.contains("path `put` only copies; `lowered` makes it"),
        "{text}"
    );

    let small = crossbar.with_endpoints(4).unwrap();
    assert_eq!(small.open_size(), Some(OpenSize::Count));
    let n150 = machine("wormhole-n150");
    let big = (REGISTRY[0].build)(&Shape::new(65, 65)).unwrap();
    let text = ask(&n150, &big, &How::default()).unwrap_err().to_string();
    let expected = "the schedule has 65 ranks, machine `wormhole-n150` has 64; use fewer ranks";
    assert!(text.starts_with(expected), "{text}");

    for (from, to, due) in [
        (
            "kind = \"exchange\"",
            "kind = \"exchnage\"",
            "fabric.kind: unknown value `exchnage`; did you mean `exchange`?",
        ),
        (
            "sync ",
            "synk ",
            "fabric: missing key `sync`; did you mean it by `synk`?",
        ),
    ] {
        let machine = files::machine("tests/cases/machines/exchange.toml", &[(from, to)]);
        let text = error(&machine, &How::default()).to_string();
        assert!(text.ends_with(due), "{text}");
    }
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
