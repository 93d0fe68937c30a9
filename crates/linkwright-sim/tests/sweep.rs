//! Many experiments at once: the same results on any number of threads.

mod files;

use linkwright_core::Machine;
use linkwright_schedule::patterns::Traffic;
use linkwright_schedule::{ScheduleError, Shape};
use linkwright_sim::sweep::{Experiment, Finding, Next, Question, Sweep};
use linkwright_sim::{How, SimError};
use std::time::Duration;

fn machine() -> Machine {
    files::machine("python/linkwright/machines/wormhole-n150.toml", &[])
}

fn plan() -> Vec<Question> {
    let mut plan = Vec::new();
    for elements in [64, 256, 1024] {
        for key in [
            "allreduce/ring",
            "allreduce/swing_latency",
            "alltoall/linear",
        ] {
            plan.push(Question::Collective(key.into(), Shape::new(16, elements)));
        }
        let traffic = Traffic {
            shape: Shape::new(8, elements),
            seed: 0,
            count: 2,
            both_ways: true,
        };
        plan.push(Question::Pattern("pairs".into(), traffic));
    }
    plan
}

fn experiments(plan: Vec<Question>) -> Vec<Experiment> {
    let experiment = |(place, question)| Experiment {
        place,
        question,
        how: How::default(),
    };
    plan.into_iter().enumerate().map(experiment).collect()
}

/// Places in the order in which they ended, and the times of all ranks in the order of the plan.
fn run(jobs: usize) -> (Vec<usize>, Vec<Vec<u64>>) {
    let sweep = Sweep::start(machine(), experiments(plan()), jobs).unwrap();
    let mut ended = Vec::new();
    loop {
        match sweep.next_within(Duration::from_secs(60)) {
            Next::Result(place, Ok(Finding::Times(modelled))) => {
                ended.push((place, modelled.simulation.finish));
            }
            Next::End => break,
            other => panic!("{other:?}"),
        }
    }
    let places = ended.iter().map(|(place, _)| *place).collect();
    ended.sort();
    (places, ended.into_iter().map(|(_, times)| times).collect())
}

#[test]
fn the_same_results_on_any_number_of_threads() {
    let (places, times) = run(1);
    assert_eq!(places, (0..plan().len()).collect::<Vec<_>>());
    for jobs in [2, 5] {
        assert_eq!(run(jobs).1, times);
    }
}

#[test]
fn a_failed_experiment_names_its_error_and_stops_no_other() {
    let plan = vec![
        Question::Collective("allreduce/none".into(), Shape::new(4, 4)),
        Question::Collective("allreduce/ring".into(), Shape::new(4, 4)),
        Question::Collective("allreduce/ring".into(), Shape::new(128, 128)),
    ];
    let sweep = Sweep::start(machine(), experiments(plan), 1).unwrap();
    let next = || sweep.next_within(Duration::from_secs(60));
    assert!(matches!(
        next(),
        Next::Result(
            0,
            Err(SimError::Schedule(ScheduleError::UnknownAlgorithm { .. }))
        )
    ));
    assert!(matches!(next(), Next::Result(1, Ok(Finding::Times(_)))));
    assert!(matches!(
        next(),
        Next::Result(2, Err(SimError::TooFewEndpoints { .. }))
    ));
    assert!(matches!(next(), Next::End));
}

#[test]
fn a_dropped_sweep_ends() {
    // Ten times the length of the queue: dropping the sweep must not leave threads waiting in a full one.
    let many = (0..10).flat_map(|_| plan()).collect();
    let sweep = Sweep::start(machine(), experiments(many), 2).unwrap();
    assert!(matches!(
        sweep.next_within(Duration::from_secs(60)),
        Next::Result(..)
    ));
    drop(sweep);
}
