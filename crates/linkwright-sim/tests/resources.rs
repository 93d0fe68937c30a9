//! What schedules share at an endpoint: start-ups and memory; and simulations that stop.

use linkwright_core::machine::Path;
use linkwright_core::{Issue, Machine, TimePs};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives::build;
use linkwright_schedule::{Buffer, Collective, Schedule};
use linkwright_sim::placement::Placement;
use linkwright_sim::setup::Setup;
use linkwright_sim::{ask, fabrics, lowered, How, Pricer, SimError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn machine(name: &str) -> Machine {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/linkwright/machines");
    let text = std::fs::read_to_string(root.join(format!("{name}.toml"))).unwrap();
    Machine::parse(&text, name).unwrap()
}

/// Rank 0 puts 1 MiB to each of three others, in lanes of its own or in one.
fn three_puts(one_lane: bool) -> Schedule {
    let shape = Shape {
        element_bytes: 1,
        ..Shape::new(8, 1 << 20)
    };
    let mut b = Builder::new(Collective::Pattern, &shape);
    let data = b.buffer(Buffer::vector("data", 1));
    for to in 1..4u8 {
        let lane = if one_lane { 0 } else { to - 1 };
        b.put(0, data.at(0), u32::from(to), data.at(0)).lane(lane);
    }
    b.finish().unwrap()
}

#[test]
fn starts_of_a_rank_wait_for_each_other_where_the_run_says_so() {
    let machine = machine("dgx1-p100");
    let time = |one_lane, serial_starts| {
        let setup = Setup {
            issue: Issue::Unlimited,
            serial_starts,
            ..Setup::new(8, Path::default())
        };
        let mut fabric = fabrics::build(&machine).unwrap();
        let schedule = three_puts(one_lane);
        linkwright_sim::simulate(&schedule, &mut *fabric, &setup)
            .unwrap()
            .makespan
    };
    // Three links of GPU 0: each copy takes 9.78 us and 2^20 B / 18.5 GB/s = 56.68 us, whatever the others do.
    let alone = time(false, false);
    assert_eq!(alone, TimePs(66_459_784));
    assert_eq!(time(true, false), alone);
    // The third starts when two starts are over.
    assert_eq!(time(false, true), alone + TimePs(2 * 9_780_000));
    assert_eq!(time(true, true), alone + TimePs(2 * 9_780_000));
}

/// Four sums of 1 MiB in one lane, or in four.
#[test]
fn a_rank_combines_one_after_another_whatever_the_lanes() {
    let machine = machine("torus-2d").with_sides(&[2, 2]).unwrap();
    let time = |lanes: u8| {
        let mut b = Builder::new(Collective::Pattern, &Shape::new(4, 1 << 20));
        let (data, sums) = (
            b.buffer(Buffer::vector("data", 1)),
            b.buffer(Buffer::vector("sums", 4)),
        );
        for sum in 0..4u8 {
            let of = sums.at(u32::from(sum));
            b.local(0, data.at(0), of).lane(sum % lanes).reduce();
        }
        let schedule = b.finish().unwrap();
        let modelled = ask(&machine, &schedule, &How::default()).unwrap();
        modelled.simulation.makespan
    };
    assert!(time(1) > TimePs::ZERO);
    assert_eq!(time(4), time(1));
}

#[test]
fn buffers_that_do_not_fit_together_are_refused_with_the_figure() {
    let machine = machine("wormhole-n150");
    let options = How {
        path: Some("ideal".into()),
        ..How::default()
    };
    let asked = |elements| {
        let shape = Shape::new(64, elements).with_grid(8, 8);
        let built = build("allreduce/recursive_doubling_latency", &shape).unwrap();
        let schedule = lowered(&built, &machine, Some("ideal"), &Placement::Identity)
            .unwrap()
            .unwrap_or(built);
        ask(&machine, &schedule, &options).map(|_| ())
    };
    // The vector and a copy of it into which the partner writes: 2 MiB of a tile of 1.43 MiB.
    match asked(1 << 18).unwrap_err() {
        error @ SimError::NoMemory { bytes, room, .. } => {
            assert_eq!(
                (bytes, room),
                (2 << 20, machine.endpoints()[0].capacity.unwrap().0)
            );
            assert!(error.to_string().contains("need 2097152 B"), "{error}");
        }
        other => panic!("{other}"),
    }
    asked(1 << 17).unwrap();
}

/// With the engine (torus) and with the pass in order (crossbar); what was abandoned leaves nothing behind.
#[test]
fn a_simulation_for_which_nobody_waits_is_abandoned() {
    for name in ["torus-2d", "crossbar"] {
        let machine = match name {
            "torus-2d" => machine(name).with_sides(&[8, 8]).unwrap(),
            _ => machine(name).with_endpoints(64).unwrap(),
        };
        let built = build("allreduce/ring", &Shape::new(64, 4096)).unwrap();
        let schedule = lowered(&built, &machine, None, &Placement::Identity)
            .unwrap()
            .unwrap_or(built);
        let options = How::default();
        let mut pricer = Pricer::new(Arc::new(machine));
        let mut within = |until| pricer.time(&schedule, &options, TimePs::MAX, until);
        let whole = within(None).unwrap();
        let abandoned = within(Some(Instant::now()));
        assert!(
            matches!(abandoned, Err(SimError::Stopped { at }) if at < whole),
            "{name}: {abandoned:?}"
        );
        let later = Instant::now() + Duration::from_secs(3600);
        assert_eq!(within(Some(later)), Ok(whole), "{name}");
    }
}

#[test]
fn of_scratch_what_is_written_counts() {
    // Halves of the vector arrive first, then quarters of the half that a rank keeps: 900 KiB and half of that lie in a
    // tile of 1,464 KiB, and twice 900 KiB would not.
    let machine = machine("wormhole-n150");
    let options = How {
        path: Some("ideal".into()),
        ..How::default()
    };
    let shape = Shape::new(4, 225 << 10);
    let halving = build("allreduce/recursive_doubling_bandwidth", &shape).unwrap();
    let halving = lowered(&halving, &machine, Some("ideal"), &Placement::Identity)
        .unwrap()
        .unwrap();
    let vector = |name: &str| {
        let id = halving.buffer_named(name).unwrap();
        halving.buffer(id).elements(halving.elements)
    };
    assert_eq!(vector("scratch"), vector("output"));
    ask(&machine, &halving, &options).unwrap();
}

#[test]
fn a_simulation_stops_beyond_its_time_and_never_before() {
    let algorithms = [
        "allreduce/ring",
        "alltoall/linear",
        "allreduce/recursive_doubling_latency",
    ];
    for name in [
        "loggp",
        "crossbar",
        "dgx1-p100",
        "cell-be",
        "torus-2d",
        "ipu-c2-chip",
    ] {
        let machine = machine(name);
        let machine = match name {
            "torus-2d" => machine.with_sides(&[4, 2]).unwrap(),
            _ => machine.with_endpoints(8).unwrap_or(machine),
        };
        let mut pricer = Pricer::new(Arc::new(machine.clone()));
        for algorithm in algorithms {
            let built = build(algorithm, &Shape::new(8, 4096)).unwrap();
            let schedule = lowered(&built, &machine, None, &Placement::Identity)
                .unwrap()
                .unwrap_or(built);
            for issue in [Issue::Blocking, Issue::Unlimited] {
                let options = How {
                    issue,
                    ..How::default()
                };
                let whole = ask(&machine, &schedule, &options)
                    .unwrap()
                    .simulation
                    .makespan;
                let mut within = |stop_at| pricer.time(&schedule, &options, stop_at, None);
                let what = format!("{name} {algorithm} {issue}");
                assert_eq!(within(TimePs::MAX), Ok(whole), "{what}");
                assert_eq!(within(whole), Ok(whole), "{what}");
                let early = within(whole.saturating_sub(TimePs(1)));
                assert!(
                    matches!(early, Err(SimError::Stopped { .. })),
                    "{what}: {early:?}"
                );
                let half = within(TimePs(whole.0 / 2));
                assert!(
                    matches!(half, Err(SimError::Stopped { .. })),
                    "{what}: {half:?}"
                );
                // What was under way when it stopped is forgotten.
                assert_eq!(within(TimePs::MAX), Ok(whole), "{what}");
            }
        }
    }
}

/// Seven blocks of 64 KiB leave each rank: no time is spent on a simulation that is to stop before its port has let them
/// out.
#[test]
fn what_ports_cannot_move_in_time_is_not_begun() {
    let machine = machine("torus-2d").with_sides(&[4, 2]).unwrap();
    let schedule = build("alltoall/linear", &Shape::new(8, 8 << 14)).unwrap();
    let options = How::default();
    let modelled = ask(&machine, &schedule, &options).unwrap();
    let port = modelled.bounds.0.iter().find(|one| one.name == "port");
    let port = port.unwrap().time;
    let whole = modelled.simulation.makespan;
    assert!(
        TimePs(7 * (64 << 10) / 32 * 1000) <= port && port <= whole,
        "{port} {whole}"
    );
    let mut pricer = Pricer::new(Arc::new(machine));
    let stopped = pricer.time(&schedule, &options, TimePs(port.0 / 2), None);
    assert_eq!(stopped, Err(SimError::Stopped { at: port }));
}
