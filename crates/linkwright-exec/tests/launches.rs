//! Launches of the threads executor: options are honoured, failures end everybody.

#![cfg(not(loom))]

use linkwright_core::{Issue, Skew, TimePs};
use linkwright_exec::buffers::Data;
use linkwright_exec::dtype::DType;
use linkwright_exec::executor::{Launch, RunOptions};
use linkwright_exec::sampling::Sampling;
use linkwright_exec::threads::Threads;
use linkwright_exec::ExecError;
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives;
use linkwright_schedule::ir::{Buffer, Schedule};
use linkwright_schedule::patterns::{self, Traffic};
use linkwright_schedule::spec::Collective;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DATA: Data = Data::sums(DType::F32, 5);

fn ring(ranks: u32, elements: u64) -> Schedule {
    let ring = collectives::find("allreduce/ring").unwrap();
    (ring.build)(&Shape::new(ranks, elements)).unwrap()
}

fn few_samples() -> RunOptions<'static> {
    RunOptions {
        sampling: Sampling::of(8, 3, Duration::from_secs(5)),
        ..RunOptions::default()
    }
}

fn run(schedule: &Schedule, options: &RunOptions) -> Result<Launch, ExecError> {
    Threads::new().prepare(schedule, DATA)?.run(options)
}

#[test]
fn of_five_in_a_row_the_first_and_the_last_are_told_where_the_clock_resolves_them() {
    // 48 kB take microseconds; on a busy machine some launches have no undisturbed row.
    let mut launches = (0..20).map(|_| run(&ring(2, 12_000), &few_samples()).unwrap());
    let (first, last) = launches.find_map(|launch| launch.row_ns).expect("a row");
    assert!(first > 500.0 && last > 500.0, "{first} {last}");
    let apart = RunOptions {
        skew: Skew::Late {
            rank: 0,
            by: TimePs::from_ns(1),
        },
        ..few_samples()
    };
    assert_eq!(run(&ring(2, 12_000), &apart).unwrap().row_ns, None);
}

#[test]
fn columns_have_one_entry_per_sample_and_rank() {
    let launch = run(&ring(2, 1000), &few_samples()).unwrap();
    let samples = launch.slowest_ns.len();
    assert_eq!(launch.start_ns.len(), 2 * samples);
    assert_eq!(launch.finish_ns.len(), 2 * samples);
    assert_eq!(
        launch.checked_elements,
        2 * 2 * 2 * 1000,
        "ranks, sets, before and after"
    );
    assert!(launch.first_ns > 0.0);
    assert!(launch.back_to_back);
    for sample in 0..samples {
        let ranks = 2 * sample..2 * sample + 2;
        let first = launch.start_ns[ranks.clone()]
            .iter()
            .copied()
            .fold(f64::MAX, f64::min);
        assert_eq!(first, 0.0);
        for rank in ranks {
            assert!(launch.finish_ns[rank] >= launch.start_ns[rank]);
        }
    }
}

#[test]
fn more_ranks_than_cores_are_marked_and_finish() {
    let begin = Instant::now();
    let launch = run(&ring(16, 4000), &few_samples()).unwrap();
    assert!(launch.oversubscribed);
    assert_eq!(launch.slowest_ns.len(), 8);
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_late_rank_makes_the_others_wait() {
    let options = RunOptions {
        skew: Skew::Late {
            rank: 1,
            by: TimePs::from_ns(200_000),
        },
        ..few_samples()
    };
    let launch = run(&ring(2, 10), &options).unwrap();
    assert!(!launch.back_to_back);
    // Where ranks share a core, rank 0 may not even run while rank 1 is late.
    if !launch.oversubscribed {
        let longest = launch.slowest_ns.iter().chain(&launch.disturbed_ns);
        let longest = longest.copied().fold(0.0, f64::max);
        assert!(longest > 190_000.0, "rank 0 waited only {longest} ns");
    }
}

#[test]
fn uniform_arrival_is_seeded_and_bounded() {
    let options = RunOptions {
        skew: Skew::Uniform(TimePs::from_ns(50_000)),
        batch: Some(20),
        ..few_samples()
    };
    let launch = run(&ring(2, 10), &options).unwrap();
    assert!(launch.start_ns.iter().any(|&start| start > 1_000.0));
}

#[test]
fn one_rank_and_no_data_are_fine() {
    for (ranks, elements) in [(1, 100), (1, 0), (3, 0)] {
        let launch = run(&ring(ranks, elements), &few_samples()).unwrap();
        assert_eq!(launch.ranks, ranks);
    }
}

#[test]
fn a_wrong_schedule_yields_no_number() {
    let mut b = Builder::new(Collective::Allreduce, &Shape::new(2, 64));
    let data = b.buffer(Buffer::vector("output", 1));
    b.step();
    b.put(0, data.at(0), 1, data.at(0)).reduce();
    let schedule = b.finish().unwrap();
    match run(&schedule, &few_samples()) {
        Err(ExecError::WrongResult { executor, rank, .. }) => {
            assert_eq!((executor, rank), ("threads", 0));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_messages_of_every_pattern_are_compared() {
    for pattern in patterns::REGISTRY {
        let traffic = Traffic {
            count: 2,
            ..Traffic::new(Shape::new(4, 1000))
        };
        let schedule = (pattern.build)(&traffic).unwrap();
        let launch = run(&schedule, &few_samples()).unwrap();
        // Before and after the samples, and every slot holds one message: of a ping-pong, one place for all.
        let distinct = if pattern.name == "ping_pong" { 4 } else { 1 };
        let moved = pattern.bytes(&traffic) / u64::from(schedule.element_bytes);
        assert!(
            launch.checked_elements >= 2 * moved / distinct,
            "{}",
            pattern.name
        );
    }
}

#[test]
fn rooted_collectives_are_not_run_back_to_back() {
    let mut b = Builder::new(Collective::Broadcast, &Shape::new(2, 16));
    let data = b.buffer(Buffer::vector("output", 1));
    b.step();
    b.put(0, data.at(0), 1, data.at(0));
    let schedule = b.finish().unwrap();
    assert!(!run(&schedule, &few_samples()).unwrap().back_to_back);
}

#[test]
fn the_time_budget_ends_a_launch() {
    let options = RunOptions {
        sampling: Sampling {
            samples: usize::MAX,
            time_budget: Duration::from_millis(200),
            ..Sampling::default()
        },
        ..RunOptions::default()
    };
    let begin = Instant::now();
    let launch = run(&ring(2, 1000), &options).unwrap();
    assert!(launch.out_of_time);
    assert!(begin.elapsed() < Duration::from_secs(3));
}

#[test]
fn cancelling_ends_a_launch() {
    let cancel = AtomicBool::new(false);
    let asked = || cancel.swap(true, Ordering::Relaxed);
    let options = RunOptions {
        sampling: Sampling {
            samples: usize::MAX,
            time_budget: Duration::from_secs(3600),
            ..Sampling::default()
        },
        cancelled: Some(&asked),
        ..RunOptions::default()
    };
    assert_eq!(run(&ring(2, 1000), &options), Err(ExecError::Cancelled));
}

#[test]
fn placement_is_checked_and_followed() {
    let threads = Threads::new();
    let cpu = threads.topology().cpus[0].id;
    let error = threads.clone().with_placement(&[cpu, 4_000]).unwrap_err();
    assert!(error
        .to_string()
        .starts_with("rank 1 is placed on processor 4000"));
    let shared = threads.with_placement(&[cpu, cpu]).unwrap();
    let schedule = ring(2, 10);
    let launch = shared
        .prepare(&schedule, DATA)
        .unwrap()
        .run(&few_samples())
        .unwrap();
    assert!(launch.oversubscribed);
    if launch.unpinned.is_none() {
        assert_eq!(launch.cpus, [cpu as i32; 2]);
    }
}

/// A pattern of three senders with four messages each, under an issue policy.
fn hot_spot(issue: Issue, options: &RunOptions) -> Launch {
    let traffic = Traffic {
        count: 4,
        ..Traffic::new(Shape::new(4, 100))
    };
    let schedule = (patterns::find("hot_spot").unwrap().build)(&traffic).unwrap();
    let threads = Threads::new().with_issue(issue);
    threads
        .prepare(&schedule, DATA)
        .unwrap()
        .run(options)
        .unwrap()
}

#[test]
fn every_message_of_a_pattern_has_a_latency() {
    for issue in [Issue::Blocking, Issue::Window(2), Issue::Unlimited] {
        // Repetitions that others disturbed are not counted, so a busy machine may have none.
        let mut launches = (0..20).map(|_| hot_spot(issue, &few_samples()));
        let launch = launches.find(|launch| !launch.message_ns.is_empty());
        let launch = launch.expect("an undisturbed repetition");
        assert_eq!(
            launch.message_ns.len() % 12,
            0,
            "whole repetitions of 3 x 4 messages"
        );
        let slowest = launch.message_ns.iter().copied().fold(0.0, f64::max);
        assert!(slowest < 5e9, "{slowest}");
        assert!(launch.checked_elements > 0);
    }
}

#[test]
fn the_messages_of_a_collective_are_not_timed() {
    let launch = run(&ring(2, 1000), &few_samples()).unwrap();
    assert!(launch.message_ns.is_empty());
}
