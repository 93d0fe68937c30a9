//! What is written says what the schedule says.

use super::*;
use linkwright_core::Machine;
use linkwright_schedule::collectives::{Algorithm, REGISTRY};
use linkwright_schedule::ir::Combine;
use linkwright_schedule::transforms::has_own_waits;
use linkwright_schedule::{transforms, verify, Collective, Shape};
use linkwright_sim::{ask, How};

/// Every algorithm over `ranks` ranks, on a line and on a grid.
pub(super) fn built_in(ranks: u32) -> Vec<(&'static Algorithm, Schedule)> {
    let root = ranks - 1;
    let shape = Shape::new(ranks, u64::from(ranks) * 10);
    let grid = (2..ranks).find(|x| ranks % x == 0).map(|x| (x, ranks / x));
    let mut shapes = vec![shape.clone(), shape.clone().with_root(root)];
    shapes.extend(grid.map(|(x, y)| shape.with_grid(x, y)));
    let made = REGISTRY.iter().flat_map(|algorithm| {
        let built = shapes
            .iter()
            .filter_map(|shape| (algorithm.build)(shape).ok());
        built
            .map(|schedule| (*algorithm, schedule))
            .collect::<Vec<_>>()
    });
    made.collect()
}

fn machine() -> Machine {
    let text = include_str!("../../../../../python/linkwright/machines/crossbar.toml");
    Machine::parse(text, "crossbar.toml").expect("the machine is right")
}

/// Whether the format has nothing for it, and what is said then.
fn inexpressible(algorithm: &Algorithm, schedule: &Schedule) -> Option<&'static str> {
    let collective = algorithm.collective;
    match algorithm.name {
        _ if collective.is_uneven() => Some("the format has no"),
        _ if has_own_waits(schedule).unwrap() => Some("waits that its data do not need"),
        "shared_memory" => Some("memories"),
        "all_pairs" => Some("is a barrier"),
        "multicast" => Some("a multicast"),
        "nvls" if collective == Collective::Allgather => Some("a multicast"),
        "one_shot_multimem" | "nvls" | "nvls_tree" | "collnet_direct" | "collnet_chain" => {
            Some("an aggregation")
        }
        _ => (collective == Collective::Barrier).then_some("the format has no barrier"),
    }
}

#[test]
fn built_in_algorithms_come_back_equal() {
    let (machine, mut written) = (machine(), 0);
    for (algorithm, schedule) in (2..=8).flat_map(built_in) {
        let name = format!("{} over {}", algorithm.key(), schedule.ranks);
        let text = match (
            (FORMAT.write)(&schedule),
            inexpressible(algorithm, &schedule),
        ) {
            (Ok(text), None) => text,
            (Err(error), Some(why)) => {
                assert!(error.problem.contains(why), "{name}: {error}");
                continue;
            }
            (result, _) => panic!("{name}: {:?}", result.map(|text| text.len())),
        };
        let combines = schedule
            .ops()
            .iter()
            .any(|op| op.kind == OpKind::Put && op.combine == Combine::Reduce);
        let expected = if combines {
            transforms::unfuse(&schedule).unwrap()
        } else {
            schedule
        };
        let back = read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let back = transforms::resized(&back, expected.elements, expected.element_bytes).unwrap();
        verify(&back).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(back.spec, expected.spec, "{name}");
        assert_eq!(lines(&back), lines(&expected), "{name}");
        let time = |schedule: &Schedule| {
            let modelled = ask(&machine, schedule, &How::default()).unwrap();
            modelled.simulation.makespan
        };
        assert_eq!(time(&back), time(&expected), "{name}");
        written += 1;
    }
    assert!(written > 300, "{written}");
}

#[test]
fn a_plan_of_others_is_written_again() {
    let schedule = accepted(&gather());
    let text = (FORMAT.write)(&schedule).unwrap();
    assert_eq!(lines(&read(&text).unwrap()), lines(&schedule));
}

#[test]
fn transformed_schedules_are_written() {
    let (_, ring) = built_in(4)
        .into_iter()
        .find(|(a, _)| a.key() == "allreduce/ring")
        .unwrap();
    for schedule in [
        transforms::pipeline(&ring, 2).unwrap(),
        transforms::stripe(&ring, 3).unwrap(),
    ] {
        let back = read(&(FORMAT.write)(&schedule).unwrap()).unwrap();
        assert_eq!(back.buffers, transforms::unfuse(&schedule).unwrap().buffers);
    }
    let error = (FORMAT.write)(&transforms::repeat(&ring, 2).unwrap()).unwrap_err();
    assert!(error.problem.contains("runs 2 times"), "{error}");
}

/// Prints how long the plan of a large ring takes.
#[test]
#[ignore = "a measurement"]
fn a_large_plan() {
    let ring = REGISTRY
        .iter()
        .find(|a| a.key() == "allreduce/ring")
        .unwrap();
    let schedule = (ring.build)(&Shape::new(64, 64 * 4)).unwrap();
    let text = (FORMAT.write)(&schedule).unwrap();
    let start = std::time::Instant::now();
    let back = read(&text).unwrap();
    let took = start.elapsed();
    let machine = machine();
    let start = std::time::Instant::now();
    ask(&machine, &back, &How::default()).unwrap();
    let simulated = start.elapsed();
    let operations = text.matches("\"name\"").count();
    println!(
        "{operations} operations, {} bytes, {} of a schedule: {took:?}, simulated {simulated:?}",
        text.len(),
        back.ops().len()
    );
}
