//! What a path with a protocol does to a schedule, and how the timed run is read.

mod files;

use linkwright_core::machine::OpenSize;
use linkwright_core::{Machine, TimePs};
use linkwright_schedule::builder::Builder;
use linkwright_schedule::collectives::{build, REGISTRY};
use linkwright_schedule::ir::{OpKind, Schedule};
use linkwright_schedule::patterns::{self, Traffic};
use linkwright_schedule::{transforms, verify, Collective, Shape};
use linkwright_sim::placement::Placement;
use linkwright_sim::run::remark;
use linkwright_sim::{ask, lowered, symmetric, Answer, How, SimError};

const FILE: &str = "python/linkwright/machines/wormhole-n150.toml";

fn n150() -> Machine {
    files::machine(FILE, &[])
}

/// A wire of 1 byte per ns between any two ranks, over a path that runs an allreduce three times and times the second.
fn simple() -> Machine {
    let text = files::text("python/linkwright/machines/crossbar.toml");
    let plain = "[path.plain]\nlike = \"put\"\nsummary = \"plain\"\n";
    let kernels = "[path.kernels]\nlike = \"plain\"\nsummary = \"kernels\"\n";
    let number = |value: u32, unit: &str| {
        format!(
            "{{ value = {value}, unit = \"{unit}\", status = \"assumed\", source = \"test\" }}\n"
        )
    };
    let tile = format!("combine_tile = {}", number(1000, "B"));
    let mut table = format!("{plain}{tile}tile_handling = {}", number(10, "ns"));
    table += &format!("{kernels}[path.kernels.protocol]\n");
    for (key, value) in [
        ("window_tiles", 1),
        ("windows_at_least", 1),
        ("repeats", 3),
        ("evaluated", 2),
    ] {
        table += &format!("{key} = {}", number(value, "count"));
    }
    let machine = Machine::parse(&format!("{text}\n{table}"), "simple.toml").unwrap();
    assert_eq!(machine.open_size(), Some(OpenSize::Count));
    machine
}

fn on(path: &str) -> How {
    How {
        path: Some(path.to_string()),
        ..How::default()
    }
}

fn lower(schedule: &Schedule, machine: &Machine, path: &str) -> Schedule {
    let lower = lowered(schedule, machine, Some(path), &Placement::Identity).unwrap();
    let lower = lower.unwrap_or_else(|| schedule.clone());
    verify(&lower).unwrap();
    lower
}

fn modelled(schedule: &Schedule, machine: &Machine, path: &str) -> Answer {
    ask(machine, &lower(schedule, machine, path), &on(path)).unwrap()
}

#[test]
fn exchanges_go_window_by_window_and_other_allreduces_in_plain_writes() {
    let machine = n150();
    // Eight ranks, 64 tiles: 32 windows for each of three steps and five runs, where a vector goes whole.
    for (key, repeats, puts_into_scratch, told) in [
        ("swing_latency", 5, 5 * 3 * 8 * 32, false),
        ("recursive_doubling_latency", 5, 5 * 3 * 8 * 32, false),
        // Half, a quarter and an eighth of the vector: 16, 8 and 4 windows carry data.
        (
            "recursive_doubling_bandwidth",
            5,
            5 * (16 + 8 + 4) * 8,
            false,
        ),
        ("ring", 5, 5 * 7 * 8, true),
        ("hamiltonian_ring", 5, 5 * 7 * 8, true),
        ("hamiltonian_rings_bidirectional", 5, 5 * 7 * 8 * 4, true),
        ("reduce_broadcast", 5, 5 * 7, true),
        ("shared_memory", 1, 7 * 8, true),
    ] {
        let shape = Shape::new(8, 128 * 256).with_grid(4, 2);
        let built = build(&format!("allreduce/{key}"), &shape).unwrap();
        let made = lower(&built, &machine, "metalium");
        let scratch = |name: &str| name.starts_with("scratch");
        let into_scratch = made.ops().iter().filter(|op| {
            op.is_message()
                && op.kind != OpKind::Notice
                && scratch(&made.buffer(op.dst_buffer).name)
        });
        assert_eq!(
            (made.spec.repeats, into_scratch.count()),
            (repeats, puts_into_scratch),
            "{key}"
        );
        let said = remark(&built, &machine, Some("metalium"), &Placement::Identity).unwrap();
        assert_eq!(said.is_some(), told, "{key}: {said:?}");
        assert_eq!(
            remark(&built, &machine, Some("ideal"), &Placement::Identity).unwrap(),
            None
        );
    }
}

#[test]
fn whatever_is_no_allreduce_is_plain_writes_once() {
    let machine = n150();
    let shape = Shape::new(16, 16 << 10).with_grid(4, 4);
    let mut seen = 0;
    for algorithm in REGISTRY
        .iter()
        .filter(|a| a.collective != Collective::Allreduce)
    {
        let Ok(built) = build(&algorithm.key(), &shape) else {
            continue;
        };
        let (kernels, ideal) = ["metalium", "ideal"]
            .map(|path| lower(&built, &machine, path))
            .into();
        assert_eq!(kernels, ideal, "{}", algorithm.key());
        let times =
            ["metalium", "ideal"].map(|path| ask(&machine, &ideal, &on(path)).unwrap().simulation);
        assert_eq!(times[0], times[1], "{}", algorithm.key());
        let said = remark(&built, &machine, None, &Placement::Identity).unwrap();
        assert_eq!(
            said.is_some(),
            algorithm.collective.reduces(),
            "{}",
            algorithm.key()
        );
        seen += 1;
    }
    for pattern in patterns::REGISTRY {
        let Ok(built) = (pattern.build)(&Traffic::new(shape.clone())) else {
            continue;
        };
        assert_eq!(
            lowered(&built, &machine, None, &Placement::Identity).unwrap(),
            None,
            "{}",
            pattern.key()
        );
        assert_eq!(
            remark(&built, &machine, None, &Placement::Identity).unwrap(),
            None
        );
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn a_limit_is_that_of_one_run_and_no_allreduce_beats_it() {
    let machine = n150();
    for (side, elements) in [(2, 1), (4, 1000), (4, 30_000), (8, 8 << 10)] {
        let shape = Shape::new(side * side, elements).with_grid(side, side);
        for algorithm in REGISTRY
            .iter()
            .filter(|a| a.collective == Collective::Allreduce)
        {
            let Ok(built) = build(&algorithm.key(), &shape) else {
                continue;
            };
            let what = format!("{} of {elements} on {side}x{side}", algorithm.key());
            let plain = lower(&built, &machine, "ideal");
            if let Err(SimError::NoMemory { .. }) = ask(&machine, &plain, &on("ideal")) {
                continue; // 64 vectors at each rank, one for each of the others
            }
            let (kernels, ideal) = ["metalium", "ideal"]
                .map(|path| modelled(&built, &machine, path))
                .into();
            assert_eq!(kernels.limits, ideal.limits, "{what}");
            let (time, limit) = (
                kernels.simulation.makespan,
                kernels.limits.largest().unwrap().time,
            );
            assert!(time >= limit, "{what}: {time} {limit}");
            let bound = kernels.bounds.largest().unwrap().time;
            assert!(bound <= time, "{what}: {bound} {time}");
            let (of_kernels, of_ideal) = (kernels.simulation.totals, ideal.simulation.totals);
            assert_eq!(of_kernels.bytes, of_ideal.bytes, "{what}");
            assert_eq!(of_kernels.byte_hops, of_ideal.byte_hops, "{what}");
            let covered: u64 = kernels.simulation.critical.totals().iter().sum();
            assert_eq!(covered, time.0, "{what}");
            let bytes = |modelled: &Answer| modelled.simulation.links.bytes.iter().sum::<u64>();
            let ratio = bytes(&kernels) as f64 / bytes(&ideal) as f64;
            assert!(
                (1.0..1.6).contains(&ratio) || elements == 1,
                "{what}: {ratio}"
            );
        }
    }
}

#[test]
fn the_timed_run_lies_between_two_ends() {
    let machine = simple();
    for key in ["ring", "reduce_broadcast", "recursive_doubling_latency"] {
        let Ok(built) = build(&format!("allreduce/{key}"), &Shape::new(4, 4000)) else {
            continue;
        };
        let made = lower(&built, &machine, "kernels");
        let found = ask(&machine, &made, &on("kernels")).unwrap().simulation;
        assert_eq!(found.runs.len(), 4, "{key}");
        assert_eq!(
            (&found.runs[1], &found.runs[2]),
            (&found.start, &found.finish),
            "{key}"
        );
        assert!(
            found
                .runs
                .is_sorted_by(|a, b| a.iter().zip(b).all(|(a, b)| a < b)),
            "{key}"
        );
        let own = (found.start.iter().zip(&found.finish)).map(|(start, finish)| finish - start);
        assert_eq!(found.makespan, TimePs(own.max().unwrap()), "{key}");
        assert_eq!(found.operations, None, "{key}: nobody asked for them");
    }
}

#[test]
fn two_ranks_that_swap_a_vector_by_hand() {
    // One step of 4 windows of 1000 B each way: start 100 ns, 500 ns of latency, 40 ns at 25 B/ns.
    let machine = simple();
    let built = build("allreduce/recursive_doubling_latency", &Shape::new(2, 1000)).unwrap();
    let found = modelled(&built, &machine, "kernels").simulation;
    // Windows follow each other when the one before is delivered: 640 ns each. A run ends with its fourth
    // combination; the next one begins when its partner has reported the same, a notice of 100 + 500 ns.
    let combination = {
        let path = machine.path("kernels").unwrap();
        path.combine_time(linkwright_core::Bytes(1000), true)
    };
    let first = TimePs::from_ns(4 * 640) + combination;
    assert_eq!(found.runs[1], [first.0; 2]);
    assert_eq!(found.makespan, first + TimePs::from_ns(600));
}

#[test]
fn a_repeat_by_hand_is_the_same_schedule_and_another_number_is_timed_as_a_whole() {
    let machine = simple();
    let ring = build("allreduce/ring", &Shape::new(4, 4000)).unwrap();
    let own = modelled(&ring, &machine, "kernels");
    let thrice = transforms::repeat(&ring, 3).unwrap();
    assert_eq!(
        modelled(&thrice, &machine, "kernels").simulation,
        own.simulation
    );
    let twice = transforms::repeat(&ring, 2).unwrap();
    let plain = modelled(&twice, &machine, "plain").simulation;
    assert_eq!(modelled(&twice, &machine, "kernels").simulation, plain);
    let said = remark(&twice, &machine, Some("kernels"), &Placement::Identity)
        .unwrap()
        .unwrap();
    assert!(said.contains("does not repeat itself"), "{said}");
}

#[test]
fn what_an_author_computes_needs_a_rate_of_its_own() {
    let machine = simple();
    let mut b = Builder::new(Collective::Allreduce, &Shape::new(2, 1000));
    let data = b.buffer(linkwright_schedule::Buffer::vector("output", 1));
    b.step();
    b.compute(0, 1_000_000);
    b.put(0, data.at(0), 1, data.at(0)).reduce();
    b.step();
    b.put(1, data.at(0), 0, data.at(0));
    let built = b.finish().unwrap();
    let made = lower(&built, &machine, "kernels");
    assert_eq!(made.spec.repeats, 1);
    let error = ask(&machine, &made, &on("kernels")).unwrap_err();
    assert!(matches!(error, SimError::NoComputeRate { .. }), "{error}");
}

#[test]
fn a_vector_without_room_for_its_receive_buffer_is_refused() {
    // 1,464 KiB hold two vectors of 732 KiB, so 187,392 elements of 4 B.
    let machine = n150();
    let of = |elements: u64| build("allreduce/swing_latency", &Shape::new(4, elements)).unwrap();
    assert!(lowered(&of(187_392), &machine, None, &Placement::Identity).is_ok());
    let error = lowered(&of(187_393), &machine, None, &Placement::Identity)
        .unwrap_err()
        .to_string();
    let says = "a vector of 749572 B and its receive buffer do not fit `tile (1,1)`, which has 1499136 B, as path";
    assert!(error.starts_with(says), "{error}");
    assert!(lowered(&of(187_393), &machine, Some("ideal"), &Placement::Identity).is_ok());
}

#[test]
fn nothing_is_folded_on_a_path_with_a_protocol() {
    let machine = simple().with_endpoints(2).unwrap();
    let shape = Shape::new(2, 1000);
    let fold = |path| {
        let key = "allreduce/recursive_doubling_latency";
        symmetric::simulate(key, &shape, &machine, &on(path))
    };
    let error = fold("kernels").unwrap_err();
    let said = error.to_string();
    assert!(said.contains("in windows and several times"), "{said}");
    assert!(matches!(error, SimError::Unsuited { .. }), "{said}");
    fold("put").unwrap();
}
