//! The library and its transforms: the fastest of what is known.
//!
//! ```text
//!   1  every registered algorithm, every algorithm of the dual collective backwards     none is left out
//!   2  two collectives as a third, from the parts that are fastest alone
//!   3  of the fastest 12: own scratch, operations in the order of their longest chain
//!   4  of the fastest 12 of these: reads instead of writes
//!   5  of the fastest 8: 2, 4, 8, ... slices, one after the other or on lanes, while they gain; half of them go on
//! ```
//!
//! Everything is priced under all issue policies, and each round begins with what the rounds before found fastest. So
//! the result is never slower than a member of round 1; transforms that pay only together may be missed.

use super::transformed::{sources, Source, Step, Transformed};
use crate::candidate::{Draft, Recipe, TRANSFORMED};
use crate::judge::Judge;
use crate::method::Method;
use crate::problem::Problem;
use crate::reads::Reads;
use crate::Result;
use linkwright_core::TimePs;
use linkwright_schedule::concatenate::JOINS;
use linkwright_schedule::Collective;
use std::sync::Arc;

/// The method.
pub static METHOD: Method = Method {
    key: TRANSFORMED,
    weight: 1,
    serves: |_| true,
    summary: "known algorithms forwards, backwards and joined, with every transform and issue policy",
    description: "Prices the library and the duals of its algorithms, joins collectives, gives arrivals scratch of \
                  their own, orders operations by their longest chain, lets receivers read, and cuts messages into \
                  slices, going on with the fastest half. Never slower than a registered algorithm.",
    source: "Chan, Heimlich, Purkayastha and van de Geijn, CCPE 2007 (duals and joins); Graham, SIAM J. Appl. Math. \
             1969 (list scheduling)",
    propose,
};

/// Schedules between two looks at the clock.
const BATCH: usize = 8;
/// Parts of each kind that are joined with each other.
const JOINED: usize = 4;
/// Recipes that are transformed.
const KEPT: usize = 12;
/// Recipes whose messages are cut into slices at first.
const SLICED: usize = 8;
/// Most slices.
const MOST_SLICES: u64 = 256;

/// A recipe with its time under the best policy.
type Priced = (TimePs, Transformed);

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    let plain: Vec<Transformed> = recipes(problem.collective);
    let mut best = price(judge, plain);
    let joined = joins(problem, judge);
    best.extend(price(judge, joined));
    keep(&mut best, KEPT);
    let mut owned = price(judge, each(&best, &[Step::OwnScratch]));
    let orders = [Step::ByBytes, Step::ByCount];
    let mut ordered = price(judge, each(&best, &orders));
    ordered.extend(price(judge, each(&owned, &orders)));
    best.append(&mut owned);
    best.append(&mut ordered);
    keep(&mut best, KEPT);
    let reads: Vec<Step> = Reads::all(problem.collective)
        .iter()
        .map(|&reads| Step::Read(reads))
        .collect();
    let mut read = price(judge, each(&best, &reads));
    best.append(&mut read);
    keep(&mut best, SLICED);
    slice(judge, &best, Step::Pipeline);
    slice(judge, &best, Step::Stripe);
    Ok(())
}

fn recipes(collective: Collective) -> Vec<Transformed> {
    let plain = sources(collective).into_iter().map(Transformed::plain);
    plain.collect()
}

/// Two collectives as the one that is asked for, from the parts that are fastest alone.
fn joins(problem: &Problem, judge: &Judge) -> Vec<Transformed> {
    let mut found = Vec::new();
    for &(first, second, _) in JOINS.iter().filter(|join| join.2 == problem.collective) {
        let second = fastest(problem, judge, second);
        for a in fastest(problem, judge, first) {
            found.extend(second.iter().map(|b| {
                let parts = (Box::new(a.clone()), Box::new(b.clone()));
                Transformed::plain(Source::Joined(parts.0, parts.1))
            }));
        }
    }
    found
}

/// The sources of a part that are fastest alone; none where the part makes no sense, as blocks of less than an element.
fn fastest(problem: &Problem, judge: &Judge, collective: Collective) -> Vec<Source> {
    let (shape, path) = (problem.shape.clone(), problem.path.clone());
    let Ok(part) = Problem::new(&problem.machine, collective, shape, path, problem.seed) else {
        return Vec::new();
    };
    let mut judge = judge.beside(Arc::new(part));
    let mut best = price(&mut judge, recipes(collective));
    keep(&mut best, JOINED);
    best.into_iter().map(|(_, recipe)| recipe.source).collect()
}

/// The recipes that run, with their times; the fastest may become the incumbent.
fn price(judge: &mut Judge, recipes: Vec<Transformed>) -> Vec<Priced> {
    let mut found = Vec::new();
    for batch in recipes.chunks(BATCH) {
        if !judge.time_left() {
            break;
        }
        let drafts: Vec<Draft> = batch
            .iter()
            .map(|recipe| draft(judge.problem(), recipe))
            .collect();
        let verdicts = judge.consider_within(&drafts, TimePs::MAX);
        let times = verdicts.iter().map(|one| one.0.time());
        let priced = times.zip(batch);
        found.extend(priced.filter_map(|(time, recipe)| Some((time?, recipe.clone()))));
    }
    found
}

fn draft(problem: &Problem, recipe: &Transformed) -> Draft {
    let (shape, made) = (problem.shape.clone(), recipe.clone());
    let ranks = u64::from(problem.shape.ranks);
    Draft {
        method: METHOD.key,
        recipe: Recipe::new(recipe.clone()),
        issues: problem.issues(),
        path: None,
        operations: 2 * ranks * ranks * recipe.factor(),
        make: Arc::new(move || Ok(Arc::new(made.make(&shape)?))),
    }
}

/// Each recipe with each of `steps` behind it.
fn each(priced: &[Priced], steps: &[Step]) -> Vec<Transformed> {
    let all = priced
        .iter()
        .flat_map(|one| steps.iter().map(|&step| one.1.then(step)));
    all.collect()
}

/// Cut messages into 2, 4, 8, ... slices while that gains; half of the recipes go on each time.
fn slice(judge: &mut Judge, whole: &[Priced], cut: fn(u32) -> Step) {
    let most = MOST_SLICES.min(judge.problem().shape.elements) as u32;
    let mut going = whole.to_vec();
    let mut before = whole.to_vec();
    let mut slices = 2;
    while slices <= most && !going.is_empty() {
        let cuts: Vec<Transformed> = going.iter().map(|one| one.1.then(cut(slices))).collect();
        let priced = price(judge, cuts);
        let gains = |base: &Priced| {
            let now = priced.iter().find(|one| one.1 == base.1.then(cut(slices)));
            let then = before.iter().find(|one| one.1 == base.1);
            now.zip(then)
                .and_then(|(now, then)| (now.0 < then.0).then(|| (now.0, base.1.clone())))
        };
        let mut gained: Vec<Priced> = going.iter().filter_map(gains).collect();
        let half = gained.len().div_ceil(2);
        keep(&mut gained, half);
        before.clone_from(&gained);
        going = gained;
        slices *= 2;
    }
}

/// The fastest, the first of equals.
fn keep(priced: &mut Vec<Priced>, most: usize) {
    priced.sort_by_key(|one| one.0);
    priced.truncate(most);
}
