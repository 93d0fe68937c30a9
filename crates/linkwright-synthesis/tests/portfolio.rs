//! The portfolio: never slower than its members, the same on any number of threads, small answers to small questions.

use linkwright_core::{Issue, Machine, TimePs};
use linkwright_schedule::ir::OpKind;
use linkwright_schedule::{collectives, verify, Collective, Shape};
use linkwright_sim::placement::Placement;
use linkwright_sim::run::limits_of;
use linkwright_sim::{ask, lowered};
use linkwright_synthesis::problem::MOST_RANKS;
use linkwright_synthesis::{synthesize, Choices, Control, Problem, Winner};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

fn machine(name: &str) -> Machine {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/linkwright/machines"
    );
    let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap();
    Machine::parse(&text, name).unwrap()
}

/// Eight ports of 1 GB/s behind one switch: small, and every algorithm runs on it.
fn crossbar() -> Machine {
    machine("crossbar")
}

fn problem(machine: &Machine, collective: Collective, ranks: u32, elements: u64) -> Problem {
    let shape = Shape::new(ranks, elements);
    Problem::new(machine, collective, shape, None, 0).unwrap()
}

fn search(problem: &Problem, control: Control) -> Winner {
    let choices = Choices {
        control,
        methods: vec!["library".into(), "portfolio".into()],
        fastest: true,
    };
    synthesize(problem.clone(), choices, Box::new(|_| ()))
        .unwrap()
        .answer
        .winner
}

/// The makespan on the machine of `problem`, where the schedule runs there.
fn time(
    problem: &Problem,
    schedule: &linkwright_schedule::Schedule,
    issue: Issue,
) -> Option<TimePs> {
    let made = lowered(schedule, &problem.machine, None, &Placement::Identity).unwrap();
    let schedule = made.as_ref().unwrap_or(schedule);
    let found = ask(&problem.machine, schedule, &problem.options(issue, None));
    found.ok().map(|found| found.simulation.makespan)
}

#[test]
fn never_slower_than_a_registered_algorithm_under_any_policy() {
    let machine = crossbar();
    for collective in [
        Collective::Allreduce,
        Collective::Broadcast,
        Collective::Allgather,
        Collective::Alltoall,
    ] {
        for elements in [8, 4096] {
            let asked = problem(&machine, collective, 8, elements);
            let winner = search(&asked, Control::default());
            for algorithm in collectives::of(collective) {
                for issue in [Issue::Blocking, Issue::Unlimited, Issue::Window(2)] {
                    let built = (algorithm.build)(&asked.shape).ok();
                    if let Some(one) = built.and_then(|built| time(&asked, &built, issue)) {
                        assert!(winner.time <= one, "{} {issue}", algorithm.key());
                    }
                }
            }
            let (schedule, issue) = (&winner.candidate.schedule, winner.candidate.issue);
            verify(schedule).unwrap();
            assert_eq!(time(&asked, schedule, issue), Some(winner.time));
            let options = asked.options(issue, None);
            let limits = limits_of(collective, &asked.shape, &asked.machine, &options).unwrap();
            assert!(limits.largest().unwrap().time <= winner.time);
        }
    }
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let asked = problem(&machine("dgx1-p100"), Collective::Allreduce, 8, 256);
    let found = [1, 3].map(|threads| {
        let control = Control {
            threads,
            ..Control::default()
        };
        search(&asked, control)
    });
    let told = |winner: &Winner| {
        (
            winner.time,
            winner.candidate.recipe.to_string(),
            winner.candidate.issue,
        )
    };
    assert_eq!(told(&found[0]), told(&found[1]));
    assert_eq!(found[0].candidate.schedule, found[1].candidate.schedule);
}

/// Recursive doubling at 1 KiB on a DGX-1 waits for no one's scratch: 29.53 us instead of 49.09 us, 1.66 times faster.
#[test]
fn own_scratch_makes_recursive_doubling_faster() {
    let asked = problem(&machine("dgx1-p100"), Collective::Allreduce, 8, 256);
    let winner = search(&asked, Control::default());
    assert!(
        winner.time.0 <= 29_530_000,
        "{} takes {}",
        winner.candidate.recipe,
        winner.time
    );
}

/// An allgather of 1 KiB on Cell: seven messages of 128 bytes to each SPE, written and announced in 223.75 ns, read in
/// 139.375 ns, of which 3.125 are the wait for what was read. No rank waits for another.
#[test]
fn what_is_there_is_read() {
    let asked = problem(&machine("cell-be"), Collective::Allgather, 8, 256);
    let winner = search(&asked, Control::default());
    let recipe = winner.candidate.recipe.to_string();
    assert!(winner.time.0 <= 139_375, "{recipe} takes {}", winner.time);
    let mut ops = winner.candidate.schedule.ops().iter();
    assert!(ops.all(|op| op.kind == OpKind::Get), "{recipe}");
}

/// Without time there is still the answer of the smallest schedules.
#[test]
fn no_time_and_a_stop_give_the_best_so_far() {
    let asked = problem(&crossbar(), Collective::Allreduce, 8, 64);
    let no_time = Control {
        budget: Duration::ZERO,
        ..Control::default()
    };
    let stopped = Control {
        stop: Arc::new(AtomicBool::new(false)),
        ..Control::default()
    };
    stopped.stop.store(true, Ordering::Relaxed);
    for control in [no_time, stopped] {
        verify(&search(&asked, control).candidate.schedule).unwrap();
    }
}

#[test]
fn small_questions_have_small_answers() {
    for (ranks, elements) in [(1, 64), (2, 1), (3, 1), (7, 7), (8, 0)] {
        let asked = problem(&crossbar(), Collective::Allreduce, ranks, elements);
        let winner = search(&asked, Control::default());
        let schedule = &winner.candidate.schedule;
        verify(schedule).unwrap_or_else(|e| panic!("{ranks} {elements}: {e}"));
        if ranks == 1 {
            assert_eq!((schedule.ops().len(), winner.time.0), (0, 0));
        }
    }
}

/// Candidates are stopped in the middle of their messages; the fabric that served them must serve the next one.
#[test]
fn stopped_candidates_leave_nothing_behind() {
    let asked = problem(&machine("wormhole-n150"), Collective::Alltoall, 64, 64 * 64);
    let control = Control {
        budget: Duration::from_secs(2),
        ..Control::default()
    };
    let winner = search(&asked, control);
    let (schedule, issue) = (&winner.candidate.schedule, winner.candidate.issue);
    assert_eq!(time(&asked, schedule, issue), Some(winner.time));
}

/// Of millions of ranks, one known algorithm takes minutes to make and prove, which no budget could cut short.
#[test]
fn too_many_ranks_are_refused_before_anything_is_made() {
    let shape = Shape::new(MOST_RANKS + 1, 1 << 20);
    let refused = Problem::new(&machine("loggp"), Collective::Allreduce, shape, None, 0);
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("for up to 4096: search for fewer"), "{why}");
}
