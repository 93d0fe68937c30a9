//! Which gains last, on broadcasts over three ranks.
//!
//! ```text
//!   0 ---- direct, 1 B/ns ---- 2       1 MB from rank 0; each message starts in 20 us, or the starts of a rank follow
//!    \-- side --- 1 --- side -/        one another
//!        2.2 B/ns   2.2 B/ns
//!
//!   known    all to 1 and all to 2                         20 + 1000                       = 1020 us
//!   fragile  all to 1, all of it on to 2                   2 (20 + 454.5)                  =  949 us, 1.07 x
//!   lasting  19 parts of 20 directly, 1 over rank 1        20 + 950                        =  970 us, 1.05 x
//!   many     180 parts of 200 directly, 20 over rank 1,    20 + 900                        =  920 us, 1.11 x
//!            a message each; with serial starts it takes   180 * 20                        > 3600 us
//! ```
//!
//! When the direct link is faster than stated and the sides are slower, the fragile one loses. The direct link decides
//! the times of the known, the lasting and those of many messages on any drawn machine, so their gains stay.

use linkwright_core::{Issue, Machine};
use linkwright_schedule::builder::Builder;
use linkwright_schedule::ir::Buffer;
use linkwright_schedule::{Collective, Schedule, Shape};
use linkwright_synthesis::lasting::{answer, DRAWS};
use linkwright_synthesis::{Answer, Candidate, Control, Judge, Problem, Recipe};
use std::sync::Arc;
use std::time::Duration;

const TRIANGLE: &str = r#"
[machine]
name = "triangle"
summary = "three endpoints"
description = "a test"
format = 1
sources = ["a test"]

[[level]]
name = "node"
count = 3
source = "a test"

[endpoints]
count = 3
name = "node {i}"
source = "a test"

[fabric]
kind = "flow"

[fabric.links.direct]
edges = ["node 0 - node 2"]
source = "a test"
bandwidth = { value = 1, unit = "GB/s", status = "assumed", source = "a test" }

[fabric.links.side]
edges = ["node 0 - node 1", "node 1 - node 2"]
source = "a test"
bandwidth = { value = 2.2, unit = "GB/s", status = "assumed", source = "a test" }

[fabric.transport.wire]
links = ["direct", "side"]
start = { value = 20, unit = "us", status = "assumed", source = "a test" }

[path.put]
summary = "a put"
fused_combine = true
"#;

fn problem() -> Problem {
    let machine = Machine::parse(TRIANGLE, "triangle.toml").unwrap();
    let shape = Shape::new(3, 250_000);
    Problem::new(&machine, Collective::Broadcast, shape, None, 0).unwrap()
}

/// `relayed` of `parts` go to rank 2 over rank 1, each in a message of its own where `cut`, the rest directly.
fn broadcast(parts: u32, relayed: u32, cut: bool) -> Schedule {
    let mut b = Builder::new(Collective::Broadcast, &problem().shape);
    let data = b.buffer(Buffer::vector("output", parts));
    let pieces = |from: u32, to: u32| match cut {
        true => (from..to).map(|part| (part, 1)).collect(),
        false if from == to => Vec::new(),
        false => vec![(from, to - from)],
    };
    b.step();
    for (first, count) in pieces(relayed, parts) {
        b.put(0, data.chunks(first, count), 2, data.chunks(first, count));
    }
    for (first, count) in [(0, relayed), (relayed, parts - relayed)] {
        if count > 0 {
            b.put(0, data.chunks(first, count), 1, data.chunks(first, count))
                .lane(1);
        }
    }
    b.step();
    for (first, count) in pieces(0, relayed) {
        b.put(1, data.chunks(first, count), 2, data.chunks(first, count));
    }
    b.finish().unwrap()
}

fn candidate(words: &'static str) -> Candidate {
    let (method, schedule) = match words {
        "known" => ("library", broadcast(20, 0, false)),
        "fragile" => ("packing", broadcast(20, 20, false)),
        "lasting" => ("matching", broadcast(20, 1, false)),
        "many" => ("composition", broadcast(200, 20, true)),
        _ => unreachable!(),
    };
    Candidate {
        method,
        recipe: Recipe::new(words),
        schedule: Arc::new(schedule),
        issue: Issue::Unlimited,
        path: None,
    }
}

/// The answer among these, and the fastest where that is another one, as words.
fn chosen(among: &[&'static str], threads: usize, fastest: bool) -> (Answer, Option<Answer>) {
    let control = Control {
        threads,
        ..Control::default()
    };
    let mut judge = Judge::new(Arc::new(problem()), control, Box::new(|_| ()));
    // One after another, so that the fastest ones stop none of those behind them that is nearly as fast.
    for words in among {
        judge.consider(vec![candidate(words)]);
    }
    answer(&judge, fastest).unwrap()
}

fn words(answer: &Answer) -> String {
    answer.winner.candidate.recipe.to_string()
}

#[test]
fn the_fastest_whose_gain_lasts_is_the_answer() {
    let (best, passed) = chosen(&["known", "fragile", "lasting"], 1, false);
    assert_eq!(words(&best), "lasting");
    let lasting = best.lasting.unwrap();
    assert_eq!((lasting.draws, lasting.wins), (DRAWS, DRAWS));
    // The lasting takes 20 us and 950 us, the known 20 us and 1 ms: between 1 + 50 / (950 + 24 * 1.2) and 1 + 50 / 950.
    assert!(
        (1.045..1.0527).contains(&lasting.least.unwrap()),
        "{lasting:?}"
    );
    let passed = passed.unwrap();
    assert_eq!(words(&passed), "fragile");
    let lost = passed.lasting.unwrap();
    assert!(!lost.lasts() && lost.least.unwrap() < 1.0, "{lost:?}");
}

#[test]
fn the_same_answer_on_any_number_of_threads() {
    let of = |threads| {
        let (best, passed) = chosen(&["known", "fragile", "lasting"], threads, false);
        (words(&best), best.lasting, passed.unwrap().lasting)
    };
    assert_eq!(of(1), of(3));
}

#[test]
fn where_no_gain_lasts_the_best_known_is_the_answer() {
    let (best, passed) = chosen(&["known", "fragile"], 2, false);
    assert_eq!((words(&best), best.lasting), ("known".into(), None));
    assert_eq!(words(&passed.unwrap()), "fragile");
}

#[test]
fn who_asks_for_the_fastest_gets_it_with_how_it_lasts() {
    let (best, passed) = chosen(&["known", "fragile", "lasting"], 2, true);
    assert_eq!(words(&best), "fragile");
    assert!(!best.lasting.unwrap().lasts());
    assert!(passed.is_none());
}

#[test]
fn a_gain_with_serial_starts_is_worth_a_tenth_of_the_time() {
    let (best, passed) = chosen(&["known", "many", "lasting"], 2, false);
    assert_eq!(words(&best), "lasting");
    assert!(best.lasting.unwrap().stays_serial());
    let lost = passed.unwrap().lasting.unwrap();
    assert!(lost.lasts() && lost.serial < 0.3, "{lost:?}");
    // Where there is none, the gain as described counts.
    let (best, passed) = chosen(&["known", "many"], 2, false);
    assert_eq!(words(&best), "many");
    assert!(passed.is_none());
}

#[test]
fn without_time_the_fastest_is_the_answer_and_nobody_says_how_it_lasts() {
    let control = Control {
        budget: Duration::ZERO,
        ..Control::default()
    };
    let mut judge = Judge::new(Arc::new(problem()), control, Box::new(|_| ()));
    judge.consider(vec![candidate("known")]);
    let (best, passed) = answer(&judge, false).unwrap();
    assert_eq!((words(&best), best.lasting), ("known".into(), None));
    assert!(passed.is_none());
}
