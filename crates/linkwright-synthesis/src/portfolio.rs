//! The library and its transforms, under every issue policy: the fastest of what is known.
//!
//! ```text
//!   1  every registered algorithm, every dual run backwards      x issue policies    none left out
//!   2  two collectives as a third, from the fastest parts        x the best policies
//!   3  the fastest eighth and more: own scratch, other orders
//!   4  the fastest: 2, 4, 8, ... slices, one after the other or on lanes, while they gain; half of them go on
//!   5  the winner under every policy
//! ```
//!
//! Each round begins with what the rounds before found fastest. So the result is never slower than a registered
//! algorithm under any of the policies; a combination of transforms that only pays together may be missed.

use crate::candidate::{Recipe, Source, Step};
use crate::error::Result;
use crate::judge::{Judge, Verdict};
use crate::method::Method;
use crate::problem::Problem;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::collectives;
use linkwright_schedule::concatenate::JOINS;
use linkwright_schedule::reverse::counterpart;
use linkwright_schedule::Collective;

/// Registry entry.
pub static METHOD: Method = Method {
    key: "portfolio",
    summary: "every known algorithm, forwards, backwards and joined, with every transform and issue policy",
    description: "Prices the whole library under every issue policy, then joins collectives, gives arrivals scratch of \
                  their own, orders operations by their longest chain, and cuts messages into slices, going on with \
                  the fastest half. Never slower than a registered algorithm.",
    source: "",
    propose,
};

/// Policies under which every registered algorithm is priced.
const POLICIES: [Issue; 4] = [
    Issue::Blocking,
    Issue::Window(2),
    Issue::Window(8),
    Issue::Unlimited,
];
/// Parts of each kind that are joined with each other.
const JOINED: usize = 4;
/// Recipes that are transformed.
const KEPT: usize = 12;
/// Recipes whose messages are cut into slices at first.
const SLICED: usize = 8;
/// Most slices.
const MOST_SLICES: u32 = 256;

/// A recipe with its best policy and time.
#[derive(Clone, Debug)]
struct Priced {
    recipe: Recipe,
    issue: Issue,
    time: TimePs,
}

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    let plain = |source| Recipe::plain(source);
    let first: Vec<Recipe> = sources(problem.collective).into_iter().map(plain).collect();
    let mut priced = price(judge, &first, &POLICIES);
    let joined = joins(problem, judge)?;
    priced.extend(price(judge, &joined, &[Issue::Blocking, Issue::Unlimited]));
    sort(&mut priced, KEPT);
    let steps = [Step::OwnScratch, Step::ByBytes, Step::ByCount];
    let mut transformed = each(judge, &priced, &steps);
    let after = [Step::ByBytes, Step::ByCount];
    let owned: Vec<Priced> = transformed
        .iter()
        .filter(|p| p.recipe.steps[..] == [Step::OwnScratch])
        .cloned()
        .collect();
    priced.extend(each(judge, &owned, &after));
    priced.append(&mut transformed);
    sort(&mut priced, SLICED);
    slice(problem, judge, priced);
    if let Some(best) = judge.incumbent().map(|best| best.recipe.clone()) {
        let all = [
            POLICIES.as_slice(),
            &[Issue::Window(4), Issue::Window(16), Issue::Batch(4)],
        ];
        price(judge, &[best], &all.concat());
    }
    Ok(())
}

/// Registered algorithms of a collective, and those of its dual, backwards.
fn sources(collective: Collective) -> Vec<Source> {
    let own = collectives::of(collective).map(|a| Source::Library(a.key()));
    let dual = counterpart(collective)
        .into_iter()
        .flat_map(collectives::of);
    own.chain(dual.map(|a| Source::Reversed(a.key()))).collect()
}

/// Two collectives as the one that is asked for, from the parts that are fastest alone.
fn joins(problem: &Problem, judge: &Judge) -> Result<Vec<Recipe>> {
    let mut found = Vec::new();
    let pairs = JOINS.iter().filter(|join| join.2 == problem.collective);
    for &(first, second, _) in pairs {
        let (first, second) = (
            fastest(problem, judge, first),
            fastest(problem, judge, second),
        );
        for (a, b) in first
            .iter()
            .flat_map(|a| second.iter().map(move |b| (a, b)))
        {
            found.push(Recipe::plain(Source::Joined(
                Box::new(a.clone()),
                Box::new(b.clone()),
            )));
        }
    }
    Ok(found)
}

/// The sources of a part that are fastest alone.
fn fastest(problem: &Problem, judge: &Judge, collective: Collective) -> Vec<Source> {
    let part = Problem {
        collective,
        ..problem.clone()
    };
    let mut judge = judge.of_part(part);
    let recipes: Vec<Recipe> = sources(collective).into_iter().map(Recipe::plain).collect();
    let mut priced = price(&mut judge, &recipes, &[Issue::Blocking, Issue::Unlimited]);
    sort(&mut priced, JOINED);
    priced.into_iter().map(|one| one.recipe.source).collect()
}

/// Each recipe with its best policy, where it runs at all.
fn price(judge: &mut Judge, recipes: &[Recipe], policies: &[Issue]) -> Vec<Priced> {
    let asked: Vec<(Recipe, Issue)> = recipes
        .iter()
        .flat_map(|recipe| policies.iter().map(|&issue| (recipe.clone(), issue)))
        .collect();
    let verdicts = judge.try_recipes(METHOD.key, &asked);
    let best = |(recipe, found): (&Recipe, &[Verdict])| {
        let times = policies
            .iter()
            .zip(found)
            .filter_map(|(&issue, v)| Some((v.time()?, issue)));
        let (time, issue) = times.min_by_key(|&(time, _)| time)?;
        Some(Priced {
            recipe: recipe.clone(),
            issue,
            time,
        })
    };
    recipes
        .iter()
        .zip(verdicts.chunks(policies.len()))
        .filter_map(best)
        .collect()
}

/// Each recipe with each of `steps` behind it, under its own policy.
fn each(judge: &mut Judge, priced: &[Priced], steps: &[Step]) -> Vec<Priced> {
    let asked: Vec<(Recipe, Issue)> = priced
        .iter()
        .flat_map(|one| steps.iter().map(|&step| (one.recipe.then(step), one.issue)))
        .collect();
    let verdicts = judge.try_recipes(METHOD.key, &asked);
    let found = asked.into_iter().zip(verdicts);
    let known = |((recipe, issue), verdict): ((Recipe, Issue), Verdict)| {
        Some(Priced {
            recipe,
            issue,
            time: verdict.time()?,
        })
    };
    found.filter_map(known).collect()
}

/// Cut messages into 2, 4, 8, ... slices while that gains; half of the recipes go on each time.
fn slice(problem: &Problem, judge: &mut Judge, whole: Vec<Priced>) {
    for cut in [Step::Pipeline as fn(u32) -> Step, Step::Stripe] {
        let mut survivors: Vec<(Recipe, Priced)> = whole
            .iter()
            .map(|one| (one.recipe.clone(), one.clone()))
            .collect();
        let mut slices = 2;
        while !survivors.is_empty()
            && slices <= MOST_SLICES.min(most_slices(problem))
            && judge.time_left()
        {
            let asked: Vec<(Recipe, Issue)> = survivors
                .iter()
                .map(|(base, before)| (base.then(cut(slices)), before.issue))
                .collect();
            let verdicts = judge.try_recipes(METHOD.key, &asked);
            let gained = survivors.into_iter().zip(asked).zip(verdicts).filter_map(
                |(((base, before), (recipe, issue)), verdict)| {
                    let time = verdict.time().filter(|&time| time < before.time)?;
                    Some((
                        base,
                        Priced {
                            recipe,
                            issue,
                            time,
                        },
                    ))
                },
            );
            survivors = gained.collect();
            survivors.sort_by_key(|one| one.1.time);
            survivors.truncate(survivors.len().div_ceil(2).max(2));
            slices *= 2;
        }
    }
}

/// Slices of one element are the smallest.
fn most_slices(problem: &Problem) -> u32 {
    u32::try_from(problem.shape.elements).unwrap_or(u32::MAX)
}

fn sort(priced: &mut Vec<Priced>, kept: usize) {
    priced.sort_by_key(|one| one.time);
    priced.truncate(kept);
}
