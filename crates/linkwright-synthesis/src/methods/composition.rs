//! Compositions: stages over the dimensions and levels of the machine, each with an exchange of its own.
//!
//! ```text
//!   recipes of a small grid --stretched--> estimated --the best--> priced in one piece --the best--> in slices, too
//!                                                        or on a small machine --the best--> on the large one
//! ```
//!
//! Of the thousands of recipes, an estimate from a few costs of the machine ([`crate::compose::costs`]) leaves some tens
//! for the simulator, and their times a few for all issue policies and slices. A side beyond [`MOST_SIDE`] is stretched
//! from that one, so that a large torus has as many recipes as a small one.

use crate::candidate::{Draft, Recipe};
use crate::compose::costs::{self, Costs};
use crate::compose::estimate::estimate;
use crate::compose::staging::slots;
use crate::compose::{compose, enumerate, Composition, Primitive};
use crate::judge::{Judge, Verdict};
use crate::method::Method;
use crate::problem::Problem;
use crate::Result;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::Shape;
use std::sync::Arc;

/// The method.
pub static METHOD: Method = Method {
    key: "composition",
    weight: 3,
    summary: "stages over the dimensions and levels of the machine, each with its own exchange",
    description: "Cuts the vector in parts and goes over the digits of the ranks, with direct exchange, rings one way or \
                  both ways, doubling, Swing, or multicast along each, and whole vectors along the first. An \
                  estimate chooses what is simulated. For tori, chips and machines of several levels.",
    source: "Barnett and others, Interprocessor collective communication library (1994), for building blocks along the \
             dimensions of a mesh",
    propose,
};

/// Longest side whose recipes are listed; longer ones are stretched.
const MOST_SIDE: u32 = 8;

/// Recipes that are priced once, those that are priced with every policy in slices, and those in more slices.
const ROUNDS: [usize; 3] = [48, 10, 3];

/// Schedules between two looks at the clock.
const BATCH: usize = 8;

/// Times of the incumbent beyond which neither slices nor policies help.
const PROMISING: u64 = 3;

/// Ranks above which recipes are chosen on a smaller machine.
const MANY_RANKS: u32 = 256;

/// Pieces of a message, besides one.
const SLICES: [&[u32]; 2] = [&[1, 2, 4], &[8, 16]];

/// A recipe and about how many messages it has.
#[derive(Clone)]
struct Likely {
    recipe: Composition,
    /// The same on short sides.
    rehearsed: Composition,
    messages: u64,
    /// The same in less memory, where scratch of their own for all contributions may be too much.
    staged: Option<Box<Likely>>,
}

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    let mut likely = ranked(problem)?;
    likely.truncate(ROUNDS[0]);
    match rehearsal(problem)? {
        Some(small) => confirm(problem, judge, small, &likely),
        None => halve(problem, judge, &likely),
    }
}

/// Price all once, the best with every policy and in slices, the best of those in more slices.
fn halve(problem: &Problem, judge: &mut Judge, likely: &[Likely]) -> Result<()> {
    let issues = problem.issues();
    let mut best = fastest(judge, problem, likely, |one| &one.recipe);
    for (slices, &keep) in SLICES.into_iter().zip(&ROUNDS[1..]) {
        best.truncate(keep);
        let drafts = best.iter().flat_map(|one| {
            let draft = |&slices: &u32| draft(problem, one, &one.recipe, slices, issues.clone());
            slices.iter().map(draft)
        });
        let drafts: Vec<Draft> = drafts.collect();
        for batch in drafts.chunks(BATCH) {
            if !judge.time_left() {
                return Ok(());
            }
            judge.consider_drafts(batch);
        }
    }
    Ok(())
}

/// Choose on a small machine, and price the best on the large one, one after another.
fn confirm(problem: &Problem, judge: &mut Judge, small: Problem, likely: &[Likely]) -> Result<()> {
    let small = Arc::new(small);
    let mut beside = judge.beside(small.clone());
    let best = fastest(&mut beside, &small, likely, |one| &one.rehearsed);
    for one in best.iter().take(ROUNDS[2]) {
        let whole = |one: &Likely| draft(problem, one, &one.recipe, 1, problem.issues());
        let verdicts = judge.consider_drafts(&[whole(one)]);
        if let ([Verdict::Refused(_)], Some(staged)) = (&verdicts[..], &one.staged) {
            judge.consider_drafts(&[whole(staged)]);
        }
        if !judge.time_left() {
            break;
        }
    }
    Ok(())
}

/// The problem on a torus of short sides, where many ranks would take long: its vectors are as much shorter as its
/// first stretched side, so that steps and bytes count as they do on the large one.
fn rehearsal(problem: &Problem) -> Result<Option<Problem>> {
    let (machine, shape) = (&problem.machine, &problem.shape);
    let small = shortened(&shape.grid);
    let stretched = shape
        .grid
        .iter()
        .zip(&small)
        .find(|(large, small)| large != small);
    let Some((&large, &short)) =
        stretched.filter(|_| shape.ranks > MANY_RANKS && machine.open_size().is_some())
    else {
        return Ok(None);
    };
    let ranks = small.iter().product();
    let elements = (shape.elements * u64::from(short) / u64::from(large)).max(1);
    let shape = Shape {
        ranks,
        root: 0,
        grid: small.clone(),
        elements,
        ..shape.clone()
    };
    let machine = machine.with_sides(&small)?;
    Problem::new(
        &machine,
        problem.collective,
        shape,
        problem.path.clone(),
        problem.seed,
    )
    .map(Some)
}

/// Sides that are listed, of which `sides` are multiples.
fn shortened(sides: &[u32]) -> Vec<u32> {
    let short = |&side: &u32| match side > MOST_SIDE && side % MOST_SIDE == 0 {
        true => MOST_SIDE,
        false => side,
    };
    sides.iter().map(short).collect()
}

/// Recipes for the grids of the problem, the likeliest first.
fn ranked(problem: &Problem) -> Result<Vec<Likely>> {
    let mut all: Vec<(f64, Likely)> = Vec::new();
    for sides in grids(problem) {
        let hops = problem.machine.sides() == sides;
        let costs = costs::measure(&problem.machine, problem.path.as_deref(), &sides)?;
        all.extend(
            recipes(problem, &sides)
                .into_iter()
                .filter_map(|recipes| rate(problem, recipes, &costs, hops)),
        );
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(interleaved(all.into_iter().map(|one| one.1)))
}

/// In turn those without and with multicasts, whose times the estimate compares least well.
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

fn rate(
    problem: &Problem,
    (rehearsed, recipe): (Composition, Composition),
    costs: &Costs,
    hops: bool,
) -> Option<(f64, Likely)> {
    let slots = |memory| slots(&recipe, &problem.shape, memory).ok()?;
    let staged = Composition {
        slots: problem.memory().and_then(slots),
        ..recipe.clone()
    };
    let found = estimate(&staged, &problem.shape, costs, hops).ok()?;
    let reused = (staged.slots).is_some_and(|slots| found.arrivals > u64::from(slots));
    let staged = Likely {
        recipe: staged,
        rehearsed: rehearsed.clone(),
        messages: found.pieces,
        staged: None,
    };
    let likely = Likely {
        recipe,
        rehearsed,
        messages: found.messages,
        staged: reused.then(|| Box::new(staged)),
    };
    // Paths that combine on the way may need no scratch at all.
    let waits = match problem.path().fused_combine {
        true => 0.0,
        false => found.waits,
    };
    found
        .time
        .is_finite()
        .then_some((found.time + waits, likely))
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

/// `likely` by the times of what `of` says in one piece, staged where it has no room else; what is refused is left out.
fn fastest(
    judge: &mut Judge,
    problem: &Problem,
    likely: &[Likely],
    of: impl Fn(&Likely) -> &Composition,
) -> Vec<Likely> {
    let mut issues = problem.issues();
    issues.truncate(2);
    let priced = |judge: &mut Judge, batch: &[&Likely]| {
        let draft = |one: &&Likely| draft(problem, one, of(one), 1, issues.clone());
        judge.consider_within(&batch.iter().map(draft).collect::<Vec<Draft>>(), PROMISING)
    };
    // The other half of the time is for policies and slices.
    let half = judge.remaining().map(|left| left / 2);
    let mut timed: Vec<(TimePs, &Likely)> = Vec::new();
    for batch in likely.chunks(BATCH) {
        if half.is_some_and(|half| judge.remaining() < Some(half)) {
            break;
        }
        let batch: Vec<&Likely> = batch.iter().collect();
        let verdicts = priced(judge, &batch);
        let staged = (batch.iter().zip(&verdicts))
            .filter(|(_, verdict)| matches!(verdict, Verdict::Refused(_)))
            .filter_map(|(one, _)| one.staged.as_deref());
        let staged: Vec<&Likely> = staged.collect();
        let in_less = priced(judge, &staged);
        let all = batch.into_iter().chain(staged);
        let all = all.zip(verdicts.iter().chain(&in_less));
        timed.extend(all.filter_map(|(one, verdict)| Some((verdict.time()?, one))));
    }
    // The sort keeps the likelier first.
    timed.sort_by_key(|&(time, _)| time);
    timed.into_iter().map(|(_, one)| one.clone()).collect()
}

fn draft(
    problem: &Problem,
    likely: &Likely,
    recipe: &Composition,
    slices: u32,
    issues: Vec<Issue>,
) -> Draft {
    let recipe = Composition {
        slices,
        ..recipe.clone()
    };
    let shape = problem.shape.clone();
    Draft {
        method: METHOD.key,
        recipe: Recipe::new(recipe.clone()),
        issues,
        path: None,
        // A message, its addition and a notice; slots that it takes may have been of two messages.
        operations: (3 + u64::from(recipe.slots.is_some())) * likely.messages * u64::from(slices),
        make: Arc::new(move || Ok(Arc::new(compose(&recipe, &shape)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Control;
    use linkwright_core::Machine;
    use linkwright_schedule::Collective;

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
        assert_eq!((small.machine.ranks(), small.bytes()), (64, 1 << 18));
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
