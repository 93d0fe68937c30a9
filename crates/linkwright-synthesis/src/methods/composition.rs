//! Compositions: stages over the dimensions and levels of the machine, each with an exchange of its own.
//!
//! ```text
//!   recipes of a small grid --stretched--> estimated
//!   estimated --the best--> priced in one piece --the best--> changed step by step
//!   of a large torus, all this on a small one   --the best--> priced on the large one
//! ```
//!
//! Of thousands of recipes, an estimate from a few costs of the machine ([`crate::compose::costs`]) leaves some tens
//! for the simulator. A local search starts from the fastest of them, and tries policies and slices, too
//! ([`super::refinement`]). Recipes for a side beyond [`super::rehearsal::MOST_SIDE`] are stretched from that side, so
//! a large torus has as many recipes as a small one. Contributions that do not fit into a rank's memory go through
//! slots.

use super::descent::{price, refine, Trial, BATCH, FIRST};
use super::rehearsal::{rehearsal, shortened};
use crate::compose::costs;
use crate::compose::explored::{in_slots, Explored, Scale, Timed};
use crate::compose::{enumerate, Composition, Primitive};
use crate::judge::Judge;
use crate::method::Method;
use crate::problem::Problem;
use crate::reads::Reads;
use crate::Result;
use linkwright_core::clock::Instant;
use linkwright_core::TimePs;
use linkwright_schedule::pull::Pulled;
use linkwright_schedule::Collective;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The method.
pub static METHOD: Method = Method {
    key: "composition",
    weight: 3,
    serves: |problem| serves(problem.collective),
    summary: "stages over the dimensions and levels of the machine, each with its own exchange",
    description: "Cuts the vector in parts and goes over the digits of the ranks, with direct exchange, rings one way \
                  or both ways, doubling, Swing, or multicast along each, and whole vectors along the first. An \
                  estimate chooses what is simulated. For tori, chips and machines of several levels.",
    source: "Barnett and others, Interprocessor collective communication library (1994), for building blocks along the \
             dimensions of a mesh",
    propose,
};

/// Recipes that are priced before a local search.
const LISTED: usize = 48;

/// Number of changes that are priced before other methods have their turn.
const STEPS: u64 = 256;

/// Number of recipes of a small machine that are priced on the large one.
const CONFIRMED: usize = 3;

/// A recipe that takes more than this many times as long as the incumbent is no start for a local search.
const PROMISING: u64 = 3;

/// A recipe and about how many messages it has.
#[derive(Clone)]
struct Likely {
    recipe: Composition,
    /// The same on short sides.
    rehearsed: Composition,
    messages: u64,
    scale: Arc<Scale>,
}

/// Whether `collective` has stages.
fn serves(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::Allreduce
            | Collective::Allgather
            | Collective::ReduceScatter
            | Collective::Broadcast
            | Collective::Alltoall
    )
}

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    let mut likely = ranked(problem)?;
    likely.truncate(LISTED);
    match rehearsal(problem)? {
        Some(small) => confirm(problem, judge, small, &likely),
        None => {
            let starts = fastest(judge, problem, &likely, |one| &one.recipe);
            judge.explored = Explored::new(&problem.issues()[..FIRST], starts);
            refine(METHOD.key, problem, judge, STEPS);
            Ok(())
        }
    }
}

/// Search on a small machine, and price the best on the large one, one after another.
fn confirm(problem: &Problem, judge: &mut Judge, small: Problem, likely: &[Likely]) -> Result<()> {
    let small = Arc::new(small);
    let mut beside = judge.beside(small.clone());
    let starts = fastest(&mut beside, &small, likely, |one| &one.rehearsed);
    let half = judge.remaining().map(|left| left / 2);
    beside.end_at(half.and_then(|half| Instant::now().checked_add(half)));
    beside.explored = Explored::new(&small.issues()[..FIRST], starts);
    refine(METHOD.key, &small, &mut beside, u64::MAX);
    let mut best = beside.explored.found;
    best.sort_by_key(|one| one.time);
    for one in best.iter().take(CONFIRMED) {
        let recipe = one.recipe.stretched(&small.shape.grid, &problem.shape.grid);
        let Some((_, messages)) = one.scale.estimate(&recipe, &problem.shape) else {
            continue;
        };
        let trial = Trial {
            recipe,
            issues: problem.issues(),
            messages,
            scale: one.scale.clone(),
        };
        price(METHOD.key, judge, &[trial], TimePs::ZERO);
        if !judge.time_left() {
            break;
        }
    }
    Ok(())
}

/// Recipes for the grids of the problem, the likeliest first.
fn ranked(problem: &Problem) -> Result<Vec<Likely>> {
    let mut all: Vec<(f64, Likely)> = Vec::new();
    for sides in grids(problem) {
        let hops = problem.machine.sides() == sides;
        let costs = costs::measure(&problem.machine, problem.path.as_deref(), &sides)?;
        let scale = Arc::new(Scale { costs, hops });
        all.extend(
            recipes(problem, &sides)
                .into_iter()
                .flat_map(|recipes| rated(problem, recipes, &scale)),
        );
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Grids have recipes in common.
    let mut seen = BTreeSet::new();
    all.retain(|(_, one)| seen.insert(one.recipe.tidy().to_string()));
    Ok(interleaved(all.into_iter().map(|one| one.1)))
}

/// Those without and with multicasts in turn, because the estimate compares the two kinds badly.
fn interleaved(likely: impl Iterator<Item = Likely>) -> Vec<Likely> {
    let multicasts = |one: &Likely| one.recipe.uses(Primitive::Multicast);
    let (with, without): (Vec<Likely>, Vec<Likely>) = likely.partition(multicasts);
    let (mut with, mut without) = (with.into_iter(), without.into_iter());
    let mut all = Vec::new();
    loop {
        let pair = [without.next(), with.next()];
        if pair.iter().all(Option::is_none) {
            return all;
        }
        all.extend(pair.into_iter().flatten());
    }
}

/// A recipe as it is, and with the reads that save most, if any do.
fn rated(
    problem: &Problem,
    (rehearsed, recipe): (Composition, Composition),
    scale: &Arc<Scale>,
) -> Vec<(f64, Likely)> {
    let found = scale.found(&recipe, &problem.shape);
    let Some(found) = found.filter(|found| (found.time + found.waits).is_finite()) else {
        return Vec::new();
    };
    let mut time = found.time + found.waits;
    // Paths that combine on the way may need no scratch at all.
    if !problem.path().fused_combine {
        let staged = in_slots(&recipe, problem);
        let staged = staged.and_then(|staged| scale.estimate(&staged, &problem.shape));
        time = staged.map_or(time, |(time, _)| time);
    }
    let written = Likely {
        recipe,
        rehearsed,
        messages: found.messages,
        scale: scale.clone(),
    };
    let ways = found.saved.into_iter().zip(Pulled::ALL);
    let (saved, which) = ways.min_by(|a, b| b.0.total_cmp(&a.0)).expect("two ways");
    if saved <= 0.0 {
        return vec![(time, written)];
    }
    let with = |recipe: &Composition| Composition {
        reads: Some(Reads {
            which,
            // Whole vectors are added to while others read them.
            aside: recipe.parts.iter().any(|part| part.whole > 0)
                && problem.collective == Collective::Allreduce,
        }),
        ..recipe.clone()
    };
    let read = Likely {
        recipe: with(&written.recipe),
        rehearsed: with(&written.rehearsed),
        ..written.clone()
    };
    vec![(time, written), (time - saved, read)]
}

/// The grid of the ranks; without one, the levels of the machine, a line and the squarest plane.
fn grids(problem: &Problem) -> Vec<Vec<u32>> {
    let ranks = problem.shape.ranks;
    if !problem.shape.grid.is_empty() {
        return vec![problem.shape.grid.clone()];
    }
    let levels = problem
        .machine
        .levels()
        .iter()
        .rev()
        .map(|level| level.count as u32);
    let levels: Vec<u32> = levels.filter(|&count| count > 1).collect();
    let side = (1..=ranks)
        .take_while(|s| s * s <= ranks)
        .filter(|s| ranks % s == 0)
        .last()
        .unwrap_or(1);
    let mut grids = vec![levels, vec![side, ranks / side], vec![ranks]];
    grids.retain(|sides| sides.iter().product::<u32>() == ranks && !sides.contains(&1));
    grids.dedup();
    grids
}

/// All recipes for `sides`, each behind the one for short sides that it is stretched from.
fn recipes(problem: &Problem, sides: &[u32]) -> Vec<(Composition, Composition)> {
    let small = shortened(sides);
    let recipes = enumerate::recipes(problem.collective, &small).into_iter();
    recipes
        .map(|recipe| (recipe.clone(), recipe.stretched(&small, sides)))
        .collect()
}

/// The recipes that `of` takes from `likely`, priced in one piece, the fastest first; without those that are refused or
/// far behind.
fn fastest(
    judge: &mut Judge,
    problem: &Problem,
    likely: &[Likely],
    of: impl Fn(&Likely) -> &Composition,
) -> Vec<Timed> {
    let mut issues = problem.issues();
    issues.truncate(FIRST);
    let trial = |one: &Likely| Trial {
        recipe: of(one).clone(),
        issues: issues.clone(),
        messages: one.messages,
        scale: one.scale.clone(),
    };
    let trials: Vec<Trial> = likely.iter().map(trial).collect();
    // Most of the time is for the local search.
    let enough = judge.remaining().map(|left| left * 2 / 3);
    let mut found: Vec<Timed> = Vec::new();
    for batch in trials.chunks(BATCH) {
        if enough.is_some_and(|enough| judge.remaining() < Some(enough)) {
            break;
        }
        let limit = TimePs(judge.bar().0.saturating_mul(PROMISING));
        found.extend(price(METHOD.key, judge, batch, limit).into_iter().flatten());
    }
    // The sort keeps the likelier first.
    found.sort_by_key(|one| one.time);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::compose;
    use crate::judge::Control;
    use linkwright_core::Machine;
    use linkwright_schedule::Shape;

    const TORUS: &str = include_str!("../../../../python/linkwright/machines/torus-2d.toml");

    fn problem(collective: Collective, sides: &[u32], bytes: u64) -> Problem {
        problem_on(TORUS, collective, sides, bytes)
    }

    fn problem_on(text: &str, collective: Collective, sides: &[u32], bytes: u64) -> Problem {
        let machine = Machine::parse(text, "torus-2d.toml").unwrap();
        let ranks = sides.iter().product();
        let shape = Shape::new(ranks, bytes / 4).with_sides(sides);
        Problem::new(&machine, collective, shape, None, 0).unwrap()
    }

    #[test]
    fn finds_something_for_every_collective_with_stages() {
        for collective in [
            Collective::Allreduce,
            Collective::Allgather,
            Collective::ReduceScatter,
            Collective::Broadcast,
            Collective::Alltoall,
        ] {
            let problem = Arc::new(problem(collective, &[4, 2], 4096));
            let mut judge = Judge::new(problem.clone(), Control::default(), Box::new(|_| ()));
            propose(&problem, &mut judge).unwrap();
            let winner = judge.incumbent().unwrap();
            assert_eq!(winner.candidate.method, "composition");
        }
    }

    /// Both digits of 8 become 16, and the second begins at 16.
    #[test]
    fn a_large_torus_has_the_recipes_of_a_small_one() {
        let large = problem(Collective::Allgather, &[16, 16], 4096);
        let recipes = recipes(&large, &[16, 16]);
        assert_eq!(
            recipes.len(),
            enumerate::recipes(Collective::Allgather, &[8, 8]).len()
        );
        assert!(recipes.iter().any(|(_, recipe)| recipe.to_string()
            == "1 part: [16@1 ring both ways, 16@16 ring both ways]"));
        for (_, recipe) in recipes.iter().step_by(40) {
            compose(recipe, &large.shape).unwrap();
        }
    }

    #[test]
    fn many_ranks_are_rehearsed_by_few() {
        let small = rehearsal(&problem(Collective::Allreduce, &[32, 16], 1 << 20))
            .unwrap()
            .unwrap();
        assert_eq!(small.shape.grid, [8, 8]);
        let bytes = small.shape.elements * u64::from(small.shape.element_bytes);
        assert_eq!((small.machine.ranks(), bytes), (64, 1 << 18));
        assert!(rehearsal(&problem(Collective::Allreduce, &[16, 16], 4096))
            .unwrap()
            .is_none());
    }

    /// Memory for a vector of 64 KiB and `more` bytes besides.
    fn searched(collective: Collective, more: u64) -> Judge {
        let capacity = format!(
            "[endpoints]\ncapacity = {{ value = {}, unit = \"B\", status = \"assumed\", source = \"test\" }}\n",
            (64 << 10) + more
        );
        let text = TORUS.replacen("[endpoints]\n", &capacity, 1);
        let problem = Arc::new(problem_on(&text, collective, &[4, 2], 64 << 10));
        let mut judge = Judge::new(problem.clone(), Control::default(), Box::new(|_| ()));
        propose(&problem, &mut judge).unwrap();
        judge
    }

    /// Contributions of 56 KiB come to every rank, in chunks of at most 8 KiB: 16 KiB hold two of them.
    #[test]
    fn little_memory_is_used_in_turn() {
        for collective in [Collective::ReduceScatter, Collective::Allreduce] {
            let recipe = |more: u64| {
                let judge = searched(collective, more);
                judge.incumbent().unwrap().candidate.recipe.to_string()
            };
            assert!(recipe(16 << 10).contains("slots"), "{}", recipe(16 << 10));
            assert!(!recipe(512 << 10).contains("slots"));
        }
    }

    #[test]
    fn no_memory_is_told() {
        let judge = searched(Collective::ReduceScatter, 0);
        assert!(judge.incumbent().is_none());
        assert!(judge.refusal().unwrap().contains("scratch included"));
    }
}
