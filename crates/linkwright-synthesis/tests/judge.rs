//! The judge: winners are proved and the best, whatever the threads; what is wrong is refused; time is kept.

use linkwright_core::{Issue, Machine, TimePs};
use linkwright_schedule::{collectives, Collective, Schedule, ScheduleError, Shape};
use linkwright_synthesis::methods::library;
use linkwright_synthesis::{
    synthesize, Candidate, Choices, Control, Draft, Judge, Problem, Recipe, Verdict, Winner,
};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn machine(name: &str) -> Machine {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/linkwright/machines");
    let text = std::fs::read_to_string(root.join(format!("{name}.toml"))).unwrap();
    Machine::parse(&text, name).unwrap()
}

fn problem(name: &str, collective: Collective, ranks: u32, bytes: u64) -> Problem {
    let shape = Shape::new(ranks, bytes / 4);
    Problem::new(&machine(name), collective, shape, None, 0).unwrap()
}

fn control(threads: usize) -> Control {
    Control {
        threads,
        ..Control::default()
    }
}

fn judge(problem: Problem) -> Judge {
    Judge::new(Arc::new(problem), control(2), Box::new(|_| ()))
}

fn candidate(problem: &Problem, algorithm: &str, issue: Issue) -> Candidate {
    Candidate {
        method: "library",
        recipe: Recipe::new(algorithm.to_string()),
        schedule: Arc::new(collectives::build(algorithm, &problem.shape).unwrap()),
        issue,
        path: None,
    }
}

/// What a search reports: words and times of its winners, in order, and how many candidates were priced.
fn reported(problem: Problem, control: Control) -> (Vec<(String, TimePs)>, u64) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let seen = all.clone();
    let choices = Choices {
        control,
        methods: vec!["library".into()],
        fastest: true,
    };
    let report = move |winner: &Winner| {
        let words = format!("{} {}", winner.candidate.recipe, winner.candidate.issue);
        seen.lock().unwrap().push((words, winner.time));
    };
    let found = synthesize(problem, choices, Box::new(report)).unwrap();
    let (winner, tried) = (found.answer.winner, found.tried);
    let all = all.lock().unwrap().clone();
    assert_eq!(all.last().unwrap().1, winner.time);
    (all, tried)
}

#[test]
fn the_same_winners_on_one_thread_and_on_three() {
    for (name, collective, bytes) in [
        ("dgx1-p100", Collective::Allreduce, 1 << 20),
        ("dgx1-p100", Collective::Alltoall, 4096),
        ("cell-be", Collective::Allgather, 8192),
    ] {
        let of = |threads| reported(problem(name, collective, 8, bytes), control(threads));
        let one = of(1);
        assert!(one.0.windows(2).all(|two| two[1].1 < two[0].1), "{one:?}");
        assert_eq!(one, of(3));
    }
}

#[test]
fn the_winner_is_the_best_of_all_that_run() {
    let problem = problem("dgx1-p100", Collective::Allreduce, 8, 1 << 16);
    let mut alone = judge(problem.clone());
    let drafts = library::drafts(&problem);
    let verdicts = alone.price(&drafts);
    let best = verdicts.iter().filter_map(Verdict::time).min().unwrap();
    assert!(alone.incumbent().is_none());
    let (all, tried) = reported(problem, control(2));
    assert_eq!(all.last().unwrap().1, best);
    assert_eq!(tried, drafts.len() as u64);
}

#[test]
fn what_is_slower_is_stopped_and_of_equals_the_first_wins() {
    let problem = problem("dgx1-p100", Collective::Allreduce, 8, 1 << 10);
    let mut judge = judge(problem.clone());
    let of = |algorithm| candidate(&problem, algorithm, Issue::Blocking);
    let fast = "allreduce/recursive_doubling_latency";
    let first = judge.consider(vec![of("allreduce/ring"), of(fast), of(fast)]);
    let best = judge.incumbent().unwrap().time;
    assert_eq!(first[1..], [Verdict::Time(best), Verdict::Time(best)]);
    let second = judge.consider(vec![of("allreduce/ring"), of(fast)]);
    assert_eq!(second, [Verdict::Slower, Verdict::Slower]);
    assert_eq!(judge.tried(), 5);
}

/// Times up to the limit are told, but only the best wins.
#[test]
fn what_is_slower_than_the_incumbent_has_a_time_within_a_limit() {
    let problem = problem("dgx1-p100", Collective::Allreduce, 8, 1 << 10);
    let mut judge = judge(problem.clone());
    let of = |algorithm| Draft::from(candidate(&problem, algorithm, Issue::Blocking));
    let (fast, slow) = (
        of("allreduce/recursive_doubling_latency"),
        of("allreduce/ring"),
    );
    let all = judge.consider_within(&[slow.clone(), fast], TimePs::ZERO);
    let (slower, best) = (all[0].0.time().unwrap(), all[1].0.time().unwrap());
    assert_eq!(judge.incumbent().unwrap().time, best);
    let mut within = |limit| judge.consider_within(std::slice::from_ref(&slow), TimePs(limit));
    assert_eq!(within(slower.0)[0].0, Verdict::Slower);
    assert_eq!(
        within(slower.0 + 1)[0],
        (Verdict::Time(slower), Issue::Blocking)
    );
    assert_eq!(judge.incumbent().unwrap().time, best);
}

/// An allgather that claims to be an allreduce.
fn wrong(problem: &Problem) -> Schedule {
    let right = collectives::build("allreduce/ring", &problem.shape).unwrap();
    let mut wrong = collectives::build("allgather/ring", &problem.shape).unwrap();
    wrong.spec = right.spec;
    wrong
}

#[test]
fn a_wrong_schedule_never_wins_however_fast() {
    let problem = problem("dgx1-p100", Collective::Allreduce, 8, 1 << 20);
    let mut judge = judge(problem.clone());
    let right = candidate(&problem, "allreduce/ring", Issue::Blocking);
    let wrong = Candidate {
        schedule: Arc::new(wrong(&problem)),
        ..right.clone()
    };
    let verdicts = judge.consider(vec![wrong, right]);
    assert!(
        matches!(&verdicts[0], Verdict::Refused(_)),
        "{:?}",
        verdicts[0]
    );
    assert_eq!(Verdict::Time(judge.incumbent().unwrap().time), verdicts[1]);
}

#[test]
fn without_time_there_is_a_correct_small_answer() {
    let none = Control {
        budget: Duration::ZERO,
        ..control(1)
    };
    let (all, tried) = reported(
        problem("dgx1-p100", Collective::Allreduce, 8, 1 << 10),
        none,
    );
    assert!(!all.is_empty() && tried <= 8, "{all:?} {tried}");
}

/// What was looked at and what was not are all algorithms together; an unhurried search leaves none out.
#[test]
fn known_algorithms_that_were_left_out_are_counted() {
    let asked = || problem("dgx1-p100", Collective::Allreduce, 8, 1 << 10);
    let all = library::drafts(&asked()).len() as u64;
    for (budget, complete) in [(Duration::ZERO, false), (Duration::MAX, true)] {
        let control = Control {
            budget,
            ..control(2)
        };
        let choices = Choices {
            control,
            methods: vec!["library".into()],
            fastest: true,
        };
        let found = synthesize(asked(), choices, Box::new(|_| ())).unwrap();
        assert_eq!(found.tried + found.unseen, all);
        assert_eq!(found.unseen == 0, complete, "{} unseen", found.unseen);
    }
}

#[test]
fn a_search_that_is_stopped_keeps_what_it_has() {
    let stopped = control(1);
    stopped.stop.store(true, Ordering::Relaxed);
    let (all, _) = reported(problem("cell-be", Collective::Allgather, 8, 8192), stopped);
    assert!(!all.is_empty());
}

#[test]
fn one_rank_needs_no_message() {
    let (all, _) = reported(
        problem("loggp", Collective::Allreduce, 1, 1 << 10),
        control(1),
    );
    assert_eq!(all.last().unwrap().1, TimePs::ZERO);
}

#[test]
fn what_the_machine_cannot_have_is_refused_with_the_cure() {
    let of = |collective, ranks, elements| {
        let shape = Shape::new(ranks, elements);
        let asked = Problem::new(&machine("dgx1-p100"), collective, shape, None, 0);
        asked.unwrap_err().to_string()
    };
    let error = of(Collective::Allgather, 8, 7);
    let cure = "7 elements are less than one for each of 8 ranks; ask for at least 32 bytes";
    assert!(error.contains(cure), "{error}");
    let error = of(Collective::Allreduce, 9, 64);
    assert!(error.contains("9 ranks"), "{error}");
}

#[test]
fn drafts_that_cannot_be_made_or_are_too_large_are_refused_as_values() {
    let problem = problem("dgx1-p100", Collective::Allreduce, 8, 1 << 10);
    let mut judge = judge(problem.clone());
    let mut drafts = library::drafts(&problem);
    drafts.truncate(2);
    drafts[0].operations = u64::MAX;
    drafts[1].make = Arc::new(|| Err(ScheduleError::Shape("odd".into()).into()));
    let verdicts = judge.consider_drafts(&drafts);
    assert!(matches!(&verdicts[0], Verdict::Refused(why) if why.contains("operations")));
    assert_eq!(verdicts[1], Verdict::Refused("shape: odd".into()));
    assert!(judge.incumbent().is_none());
    assert!(judge.refusal().unwrap().contains("operations"));
}

#[test]
fn serial_starts_are_never_faster() {
    let free = problem("dgx1-p100", Collective::Alltoall, 8, 4096);
    let serial = Problem {
        serial_starts: true,
        ..free.clone()
    };
    let times = |problem: &Problem| judge(problem.clone()).price(&library::drafts(problem));
    let pairs: Vec<_> = times(&free).into_iter().zip(times(&serial)).collect();
    let both = pairs
        .iter()
        .filter_map(|(a, b)| Some((a.time()?, b.time()?)));
    assert!(
        both.clone().all(|(free, serial)| free <= serial),
        "{pairs:?}"
    );
    assert!(
        both.clone().any(|(free, serial)| free < serial),
        "{pairs:?}"
    );
}

/// The price there is the time as described or the share of the time with serial starts, whichever is more.
#[test]
fn what_takes_long_with_serial_starts_is_dear_beside() {
    let free = problem("dgx1-p100", Collective::Alltoall, 8, 4096);
    let serial = Problem {
        serial_starts: true,
        ..free.clone()
    };
    let one_policy = |mut draft: Draft| {
        draft.issues.truncate(1);
        draft
    };
    let drafts: Vec<Draft> = library::drafts(&free).into_iter().map(one_policy).collect();
    let (as_described, with_serial) = (
        judge(free.clone()).price(&drafts),
        judge(serial).price(&drafts),
    );
    for share in [0.25, 2.0] {
        let priced = judge(free.clone()).beside_serial(share).price(&drafts);
        for ((time, serial), price) in as_described.iter().zip(&with_serial).zip(&priced) {
            let of = |serial: TimePs| TimePs((serial.0 as f64 * share) as u64);
            let dear = serial.time().map(of);
            assert_eq!(price.time(), time.time().max(dear));
        }
    }
}

#[test]
fn the_graph_knows_routes_costs_and_rates() {
    let judge = judge(problem("dgx1-p100", Collective::Allreduce, 8, 1 << 20));
    let graph = judge.graph();
    let (near, far) = (graph.wire(0, 1).unwrap(), graph.wire(0, 7).unwrap());
    assert_eq!(near.uses.len(), 1);
    // No NVLink from 0 to 7: over both processors.
    assert!(far.uses.len() > 3 && far.rate < near.rate);
    assert_eq!(graph.quiet(0, 1, 0), Some(near.start + near.latency));
}

#[test]
fn sizes_of_large_schedules_are_known_before_they_are_made() {
    let shape = Shape::new(256, 1 << 16).with_grid(16, 16);
    let problem = Problem::new(&machine("torus-2d"), Collective::Allreduce, shape, None, 0);
    for draft in library::drafts(&problem.unwrap()) {
        let Ok(made) = (draft.make)() else {
            continue;
        };
        let ratio = draft.operations as f64 / made.ops().len() as f64;
        assert!(
            (0.3..8.0).contains(&ratio),
            "{}: {ratio}, {} operations",
            draft.recipe,
            made.ops().len()
        );
    }
}

/// A schedule takes long to make. When the search is stopped meanwhile, the rest of it is not waited for.
#[test]
fn what_is_made_when_the_search_is_stopped_is_abandoned() {
    let problem = Arc::new(problem("loggp", Collective::Allgather, 256, 1 << 10));
    let hour = Control {
        budget: Duration::from_secs(3600),
        ..control(2)
    };
    let stop = hour.stop.clone();
    let mut judge = Judge::new(problem.clone(), hour, Box::new(|_| ()));
    judge.consider(vec![candidate(&problem, "allgather/ring", Issue::Blocking)]);
    let known = judge.bar();
    let shape = problem.shape.clone();
    let make = move || {
        stop.store(true, Ordering::Relaxed);
        let made = collectives::build("allgather/neighbor_exchange", &shape);
        assert!(matches!(made, Err(ScheduleError::Unwanted)));
        Ok(Arc::new(made?))
    };
    let verdicts = judge.consider_drafts(&[Draft {
        method: "library",
        recipe: Recipe::new("exchanges"),
        issues: vec![Issue::Blocking],
        path: None,
        operations: 1,
        make: Arc::new(make),
    }]);
    assert_eq!(verdicts, [Verdict::Late]);
    assert_eq!(judge.bar(), known);
}
