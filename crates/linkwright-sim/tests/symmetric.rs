//! One rank on behalf of all gives the times of the ordinary simulation, to the picosecond; where ranks differ, it is
//! refused, and a streamed collective is simulated whole.

mod files;

use linkwright_core::{Machine, Skew, TimePs};
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::{build, program, REGISTRY};
use linkwright_schedule::verify::verify;
use linkwright_sim::placement::Placement;
use linkwright_sim::sweep::{answer, Finding, Question};
use linkwright_sim::symmetric;
use linkwright_sim::{ask, lowered, Answer, How, Issue, Limits, SimError, Simulation};

fn machine(name: &str, changes: &[(&str, &str)]) -> Machine {
    files::machine(&format!("python/linkwright/machines/{name}.toml"), changes)
}

fn loggp() -> Machine {
    machine("loggp", &[])
}

/// A path that copies, pays for runs and checks completions, on LogGP.
fn copying() -> Machine {
    let costs = r#"fused_combine = false
per_run = { value = 30, unit = "ns", status = "assumed", source = "a test" }
barrier = { value = 70, unit = "ns", status = "assumed", source = "a test" }
copy_start = { value = 11, unit = "ns", status = "assumed", source = "a test" }"#;
    let combines =
        "fused_combine = true          # the receiver adds what it receives, as a library does";
    machine(
        "loggp",
        &[
            (combines, costs),
            (
                "completion = \"source_free\"",
                "completion = \"acknowledged\"",
            ),
        ],
    )
}

/// The ordinary simulation over all ranks.
fn ordinary(
    key: &str,
    shape: &Shape,
    machine: &Machine,
    options: &How,
) -> (Simulation, [Limits; 2]) {
    let schedule = build(key, shape).unwrap();
    let lower = lowered(&schedule, machine, None, &Placement::Identity).unwrap();
    let schedule = lower.unwrap_or(schedule);
    verify(&schedule).unwrap();
    let modelled = ask(machine, &schedule, options).unwrap();
    (modelled.simulation, [modelled.limits, modelled.bounds])
}

/// Whether one rank represents all; checks the result if so.
fn folds(key: &str, shape: &Shape, machine: &Machine, options: &How) -> bool {
    if program(key, shape).is_err() {
        return false;
    }
    match symmetric::simulate(key, shape, machine, options) {
        Ok(found) => agrees(found, key, shape, machine, options),
        Err(SimError::Unsuited { problem }) => {
            assert!(problem.contains("fewer ranks"), "{problem}");
            return false;
        }
        Err(error) => panic!("{key} {shape:?}: {error:?}"),
    }
    true
}

/// What was found is what the ordinary simulation finds.
fn agrees(found: Answer, key: &str, shape: &Shape, machine: &Machine, options: &How) {
    let (simulation, limits) = (found.simulation, [found.limits, found.bounds]);
    let (due, due_limits) = ordinary(key, shape, machine, options);
    let what = format!("{key} {shape:?} on {} {options:?}", machine.name());
    assert_eq!(simulation.finish, due.finish, "{what}");
    assert_eq!(simulation.start, due.start, "{what}");
    assert_eq!(simulation.makespan, due.makespan, "{what}");
    assert_eq!(simulation.totals, due.totals, "{what}");
    assert_eq!(simulation.peak_load(), due.peak_load(), "{what}");
    if machine.fabric_kind() == "loggp" {
        assert_eq!(
            simulation.critical.totals(),
            due.critical.totals(),
            "{what}"
        );
    } else {
        // The engine may name another of several causes that release an operation at one instant.
        let length = |s: &Simulation| s.critical.totals().iter().sum::<u64>();
        assert_eq!(length(&simulation), length(&due), "{what}");
    }
    assert_eq!(limits[0], due_limits[0], "{what}");
    let of = |limits: &Limits| -> Vec<_> {
        limits
            .0
            .iter()
            .map(|limit| (limit.name, limit.time))
            .collect()
    };
    assert_eq!(of(&limits[1]), of(&due_limits[1]), "{what}");
}

const ISSUES: [Issue; 3] = [Issue::Blocking, Issue::Batch(3), Issue::Unlimited];

fn keys() -> impl Iterator<Item = String> {
    let folds = REGISTRY.iter().filter(|a| a.program.is_some());
    folds.map(|algorithm| algorithm.key())
}

fn shapes() -> impl Iterator<Item = Shape> {
    let sizes = |p: u32| [u64::from(p) * 250, u64::from(p) * 3 + 1, 1].map(|n| Shape::new(p, n));
    (1..=6).chain([8, 11, 16]).flat_map(sizes)
}

#[test]
fn one_rank_represents_all() {
    let (mut all, mut simulated) = (0, 0);
    for machine in [loggp(), machine("crossbar", &[]), copying()] {
        for (key, shape) in keys().flat_map(|key| shapes().map(move |shape| (key.clone(), shape))) {
            for issue in ISSUES {
                let options = How {
                    issue,
                    ..How::default()
                };
                all += 1;
                simulated += u32::from(folds(&key, &shape, &machine, &options));
            }
        }
    }
    assert!(simulated * 2 > all, "{simulated} of {all} folded");
}

/// The answer to a streamed collective, which has a program.
fn streamed(key: &str, shape: &Shape, machine: &Machine, options: &How) -> Answer {
    let question = Question::Streamed(key.into(), shape.clone());
    match answer(machine, &question, options) {
        Ok(Finding::Times(found)) => *found,
        other => panic!("{key} {shape:?}: {other:?}"),
    }
}

#[test]
fn ranks_that_differ_are_simulated_one_by_one() {
    let mut simulated = 0;
    let skews = [
        Skew::None,
        Skew::Uniform(TimePs::from_ns(2500)),
        Skew::Late {
            rank: 0,
            by: TimePs::from_ns(4000),
        },
    ];
    for machine in [loggp(), copying()] {
        for (key, shape) in keys().flat_map(|key| shapes().map(move |shape| (key.clone(), shape))) {
            if program(&key, &shape).is_err() {
                continue;
            }
            for (issue, skew) in ISSUES.into_iter().zip(&skews) {
                let options = How {
                    issue,
                    skew: skew.clone(),
                    ..How::default()
                };
                let found = streamed(&key, &shape, &machine, &options);
                agrees(found, &key, &shape, &machine, &options);
                simulated += 1;
            }
        }
    }
    assert!(simulated > 1000, "{simulated} streamed");
}

#[test]
fn streamed_ranks_may_sit_anywhere() {
    let machine = loggp().with_endpoints(12).unwrap();
    let options = How {
        placement: Placement::Shuffle(3),
        ..How::default()
    };
    let shape = Shape::new(8, 100);
    let found = streamed("allreduce/ring", &shape, &machine, &options);
    agrees(found, "allreduce/ring", &shape, &machine, &options);
}

#[test]
fn a_refusal_names_the_reason_and_the_cure() {
    let refused = |file: &str, elements: u64, options: How| {
        let shape = Shape::new(4, elements);
        let error = symmetric::simulate("allreduce/ring", &shape, &machine(file, &[]), &options);
        error.unwrap_err().to_string()
    };
    let plain = How::default;
    let uneven = refused("loggp", 9, plain());
    assert_eq!(uneven, "cannot be folded: 36 bytes do not cut into 4 equal chunks; use a multiple of 16 bytes, such as 48, or fewer ranks");
    let late = How {
        skew: Skew::Late {
            rank: 1,
            by: TimePs::from_ns(1),
        },
        ..plain()
    };
    let skewed = refused("loggp", 8, late);
    assert!(skewed.contains("arrive at different times"), "{skewed}");
    let grid = How {
        grid: vec![2, 2],
        ..plain()
    };
    let torus = refused("torus-2d", 8, grid);
    assert!(torus.contains("endpoints are not alike"), "{torus}");
    let window = How {
        issue: Issue::Window(2),
        ..plain()
    };
    assert!(refused("loggp", 8, window).contains("frees its places one by one"));
}

/// The purpose of the mode: more ranks than fit into a schedule.
#[test]
fn a_ring_over_more_ranks_than_fit_into_a_schedule() {
    let shape = Shape::new(1 << 14, 1 << 14);
    let found = symmetric::simulate("allreduce/ring", &shape, &loggp(), &How::default());
    let simulation = found.unwrap().simulation;
    assert_eq!(simulation.totals.transfers, 2 * ((1 << 14) - 1) * (1 << 14));
    // Each of 2 (p-1) rounds: 0.2 us to send, 1 us + 3 x 80 ps on the way, 0.2 us to receive, and half of
    // them 4 B at 10 GB/s to combine.
    let round = 200_000 + 1_000_000 + 240 + 200_000;
    let rounds = (1u64 << 14) - 1;
    assert_eq!(simulation.makespan.0, rounds * (2 * round + 400));
}
