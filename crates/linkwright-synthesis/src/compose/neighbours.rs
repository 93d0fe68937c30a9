//! What is one change away from a recipe: the steps of a local search.
//!
//! ```text
//!   stages   another exchange; another way round; split in two by a factor; merged or swapped with the next one
//!   parts    one more or one fewer whole stage; twice as many, the new ones the other way round or in the other order;
//!            half as many
//!   all      twice or half as many slices
//! ```
//!
//! A change is made in one part, in the same stage of all parts, or in all stages along the same digits, because parts
//! run in step, and changing one of them alone seldom helps.

use super::enumerate::{serves, COPIES};
use super::recipe::{Composition, Digit, Part, Primitive, Stage, Way};
use crate::reads::Reads;
use linkwright_schedule::Collective;
use std::collections::BTreeSet;

/// Most parts, each of which has two lanes.
const MOST_PARTS: usize = 8;
/// Most slices.
const MOST_SLICES: u32 = 64;

/// Part and stage of all that changes at once.
type Places = Vec<(usize, usize)>;

/// All recipes that are one change away, in a fixed order, each once. Not all of them suit their ranks.
pub fn neighbours(recipe: &Composition) -> Vec<Composition> {
    let mut all = slices(recipe);
    all.extend(reads(recipe));
    for places in selections(recipe) {
        exchanges(recipe, &places, &mut all);
        ways(recipe, &places, &mut all);
        splits(recipe, &places, &mut all);
        joins(recipe, &places, &mut all);
        swaps(recipe, &places, &mut all);
    }
    wholes(recipe, &mut all);
    parts(recipe, &mut all);
    let mut seen = BTreeSet::from([recipe.tidy()]);
    let tidy = all.into_iter().map(|one| one.tidy());
    tidy.filter(|one| seen.insert(one.clone())).collect()
}

impl Composition {
    /// One recipe for all that make the same schedule: nothing is scattered along whole stages, partners of doubling
    /// and Swing are the same ahead and both ways, and a collective that only adds or only copies has one exchange.
    pub fn tidy(&self) -> Composition {
        let mut tidy = self.clone();
        for part in &mut tidy.parts {
            let whole = part.whole;
            for (k, stage) in part.stages.iter_mut().enumerate() {
                match self.collective {
                    Collective::Alltoall => {
                        (stage.scatter, stage.gather) = (Primitive::Direct, Primitive::Direct);
                    }
                    Collective::ReduceScatter => stage.gather = stage.scatter,
                    Collective::Allgather => stage.scatter = stage.gather,
                    _ if k < whole => stage.scatter = stage.gather,
                    _ if stage.scatter == Primitive::Multicast => stage.scatter = Primitive::Direct,
                    _ => {}
                }
                let pairs = [stage.scatter, stage.gather]
                    .iter()
                    .all(|one| matches!(one, Primitive::Doubling | Primitive::Swing));
                if pairs && stage.way == Way::Ahead {
                    stage.way = Way::Both;
                }
            }
        }
        tidy
    }
}

/// One stage of one part; the same stage of all parts; all stages along the same digits.
fn selections(recipe: &Composition) -> Vec<Places> {
    let of = |part: usize| (0..recipe.parts[part].stages.len()).map(move |k| (part, k));
    let every: Places = (0..recipe.parts.len()).flat_map(of).collect();
    let digits = |&(part, k): &(usize, usize)| &recipe.parts[part].stages[k].digits;
    let mut all: Vec<Places> = Vec::new();
    for place in &every {
        let alike = |same: &dyn Fn(&(usize, usize)) -> bool| {
            every.iter().copied().filter(|other| same(other)).collect()
        };
        all.push(alike(&|other| other.1 == place.1));
        all.push(alike(&|other| digits(other) == digits(place)));
    }
    all.extend(every.iter().map(|&place| vec![place]));
    let mut seen = BTreeSet::new();
    all.retain(|places| seen.insert(places.clone()));
    all
}

/// Add the recipe with other stages at `places`, unless one of them cannot change.
fn changed(
    recipe: &Composition,
    places: &Places,
    change: impl Fn(&Stage) -> Option<Stage>,
    all: &mut Vec<Composition>,
) {
    let mut other = recipe.clone();
    for &(part, k) in places {
        let stage = &mut other.parts[part].stages[k];
        match change(stage) {
            Some(changed) => *stage = changed,
            None => return,
        }
    }
    all.push(other);
}

fn exchanges(recipe: &Composition, places: &Places, all: &mut Vec<Composition>) {
    for primitive in COPIES {
        let fits = |stage: &Stage| serves(primitive, stage.members(), stage.digits.len());
        let gather = |stage: &Stage| {
            fits(stage).then(|| Stage {
                gather: primitive,
                ..stage.clone()
            })
        };
        let scatter = |stage: &Stage| {
            (fits(stage) && primitive != Primitive::Multicast).then(|| Stage {
                scatter: primitive,
                ..stage.clone()
            })
        };
        changed(recipe, places, gather, all);
        changed(recipe, places, scatter, all);
    }
}

fn ways(recipe: &Composition, places: &Places, all: &mut Vec<Composition>) {
    for way in [Way::Ahead, Way::Back, Way::Both] {
        let turned = |stage: &Stage| {
            Some(Stage {
                way,
                ..stage.clone()
            })
        };
        changed(recipe, places, turned, all);
    }
    changed(recipe, places, |stage| Some(opposite(stage)), all);
}

/// The same stage the other way round.
fn opposite(stage: &Stage) -> Stage {
    let way = match stage.way {
        Way::Ahead => Way::Back,
        Way::Back => Way::Ahead,
        Way::Both => Way::Both,
    };
    Stage {
        way,
        ..stage.clone()
    }
}

/// Add the recipe with other parts where stages are selected, unless one of them cannot change.
fn rebuilt(
    recipe: &Composition,
    places: &Places,
    change: impl Fn(&mut Part, usize) -> Option<()>,
    all: &mut Vec<Composition>,
) {
    let mut other = recipe.clone();
    // From the last to the first, because a change moves what is behind it.
    for &(part, k) in places.iter().rev() {
        if change(&mut other.parts[part], k).is_none() {
            return;
        }
    }
    all.push(other);
}

/// A stage of one digit as two, for each factor and in either order.
fn splits(recipe: &Composition, places: &Places, all: &mut Vec<Composition>) {
    let (part, k) = places[0];
    let members = recipe.parts[part].stages[k].members();
    for factor in (2..members).filter(|factor| members % factor == 0) {
        for far_first in [false, true] {
            let split = |part: &mut Part, k: usize| {
                let mut two = halves(&part.stages[k], factor)?;
                if far_first {
                    two.reverse();
                }
                part.stages.splice(k..=k, two);
                part.whole += usize::from(k < part.whole);
                Some(())
            };
            rebuilt(recipe, places, split, all);
        }
    }
}

fn halves(stage: &Stage, factor: u32) -> Option<[Stage; 2]> {
    let &[digit] = &stage.digits[..] else {
        return None;
    };
    let near = Digit {
        radix: factor,
        ..digit
    };
    let far = Digit {
        stride: digit.stride * factor,
        radix: digit.radix / factor,
        ..digit
    };
    (digit.radix % factor == 0).then(|| [along(stage, vec![near]), along(stage, vec![far])])
}

/// The stage along other digits, with its exchanges as far as they serve.
fn along(stage: &Stage, digits: Vec<Digit>) -> Stage {
    let members = digits.iter().map(|digit| digit.radix).product();
    let fit = |primitive| match serves(primitive, members, digits.len()) {
        true => primitive,
        false => Primitive::Direct,
    };
    Stage {
        scatter: fit(stage.scatter),
        gather: fit(stage.gather),
        way: stage.way,
        digits,
    }
}

/// A stage and the next one as one; neighbouring digits of an axis become one digit.
fn joins(recipe: &Composition, places: &Places, all: &mut Vec<Composition>) {
    let join = |part: &mut Part, k: usize| {
        let after = part.stages.get(k + 1)?.clone();
        let stage = &mut part.stages[k];
        let mut digits = [&stage.digits[..], &after.digits[..]].concat();
        digits.sort();
        if let [near, far] = digits[..] {
            if near.axis == far.axis && near.stride * near.radix == far.stride {
                digits = vec![Digit {
                    radix: near.radix * far.radix,
                    ..near
                }];
            }
        }
        *stage = along(stage, digits);
        part.stages.remove(k + 1);
        part.whole -= usize::from(k < part.whole);
        Some(())
    };
    rebuilt(recipe, places, join, all);
}

/// A stage and the next one in the other order.
fn swaps(recipe: &Composition, places: &Places, all: &mut Vec<Composition>) {
    let swap =
        |part: &mut Part, k: usize| (k + 1 < part.stages.len()).then(|| part.stages.swap(k, k + 1));
    rebuilt(recipe, places, swap, all);
}

/// One more and one fewer whole stage, of all parts and of each.
fn wholes(recipe: &Composition, all: &mut Vec<Composition>) {
    if !matches!(
        recipe.collective,
        Collective::Allreduce | Collective::Broadcast
    ) {
        return;
    }
    let each = (0..recipe.parts.len()).map(|part| vec![part]);
    for chosen in std::iter::once((0..recipe.parts.len()).collect()).chain(each) {
        for more in [false, true] {
            let mut other = recipe.clone();
            let fits = chosen.iter().all(|&part| {
                let part = &mut other.parts[part];
                let whole = match more {
                    true => Some(part.whole + 1).filter(|&whole| whole <= part.stages.len()),
                    false => part.whole.checked_sub(1),
                };
                part.whole = whole.unwrap_or(part.whole);
                whole.is_some()
            });
            if fits {
                all.push(other);
            }
        }
    }
}

/// Twice as many parts and half as many.
fn parts(recipe: &Composition, all: &mut Vec<Composition>) {
    let with = |parts: Vec<Part>| Composition {
        parts,
        ..recipe.clone()
    };
    let each = |change: &dyn Fn(&Part) -> Part| recipe.parts.iter().map(change).collect::<Vec<_>>();
    let n = recipe.parts.len();
    if n > 1 {
        all.push(with(recipe.parts[..n / 2].to_vec()));
        all.push(with(recipe.parts.iter().step_by(2).cloned().collect()));
    }
    if 2 * n <= MOST_PARTS {
        let ahead = each(&|part| altered(part, one_way, false));
        let back = |reversed| each(&|part| altered(part, |s| opposite(&one_way(s)), reversed));
        let other_order = each(&|part| altered(part, Stage::clone, true));
        all.push(with([&ahead[..], &back(false)].concat()));
        all.push(with([&ahead[..], &back(true)].concat()));
        all.push(with([&recipe.parts[..], &other_order].concat()));
    }
    // Parts that go round one way each may do better with both.
    all.push(with(each(&|part| altered(part, both_ways, false))));
}

fn one_way(stage: &Stage) -> Stage {
    match stage.way {
        Way::Both => Stage {
            way: Way::Ahead,
            ..stage.clone()
        },
        _ => stage.clone(),
    }
}

fn both_ways(stage: &Stage) -> Stage {
    Stage {
        way: Way::Both,
        ..stage.clone()
    }
}

/// The part with each stage altered, perhaps in the opposite order.
fn altered(part: &Part, change: impl Fn(&Stage) -> Stage, reversed: bool) -> Part {
    let mut stages: Vec<Stage> = part.stages.iter().map(change).collect();
    if reversed {
        stages.reverse();
    }
    Part {
        stages,
        whole: part.whole,
    }
}

/// Everything written, and the other ways to read.
fn reads(recipe: &Composition) -> Vec<Composition> {
    let ways = std::iter::once(None).chain(Reads::all(recipe.collective).iter().copied().map(Some));
    let with = |reads| Composition {
        reads,
        ..recipe.clone()
    };
    ways.filter(|reads| *reads != recipe.reads)
        .map(with)
        .collect()
}

fn slices(recipe: &Composition) -> Vec<Composition> {
    let with = |slices: u32| Composition {
        slices,
        ..recipe.clone()
    };
    let now = recipe.slices.max(1);
    let both = [now * 2, now / 2];
    let fit = |slices: &u32| (1..=MOST_SLICES).contains(slices);
    both.into_iter().filter(fit).map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{compose, enumerate};
    use super::*;
    use linkwright_schedule::error::ScheduleError;
    use linkwright_schedule::{verify, Shape};

    const COLLECTIVES: [Collective; 5] = [
        Collective::Allreduce,
        Collective::Allgather,
        Collective::ReduceScatter,
        Collective::Broadcast,
        Collective::Alltoall,
    ];

    #[test]
    fn neighbours_are_right_and_have_names_of_their_own() {
        let (sides, shape) = ([4, 2], Shape::new(8, 192));
        for collective in COLLECTIVES {
            let recipes = enumerate::recipes(collective, &sides);
            let mut right = 0;
            for recipe in recipes.iter().step_by(recipes.len().div_ceil(12)) {
                let all = neighbours(recipe);
                let mut names: BTreeSet<String> = all.iter().map(|one| one.to_string()).collect();
                assert_eq!(names.len(), all.len());
                assert!(names.insert(recipe.tidy().to_string()), "{recipe}");
                for one in &all {
                    match compose(one, &shape) {
                        Ok(schedule) => {
                            verify(&schedule).unwrap_or_else(|error| panic!("{one}: {error}"));
                            right += 1;
                        }
                        Err(ScheduleError::Waived { .. }) => {}
                        Err(error) => panic!("{one}: {error}"),
                    }
                }
            }
            assert!(right > 100, "{collective:?}: {right}");
        }
    }

    #[test]
    fn tidy_recipes_say_the_same() {
        let shape = Shape::new(8, 192);
        for collective in COLLECTIVES {
            for recipe in enumerate::recipes(collective, &[8]) {
                let schedules = [compose(&recipe, &shape), compose(&recipe.tidy(), &shape)];
                let [Ok(before), Ok(tidy)] = schedules else {
                    continue;
                };
                assert_eq!(before, tidy, "{recipe}");
            }
        }
    }

    /// Both stages of a plane in two, and back: 8@1 as 2@1 and 4@2.
    #[test]
    fn what_is_split_can_be_joined() {
        let named = |words: &str, all: Vec<Composition>| {
            let found = all.into_iter().find(|one| one.to_string() == words);
            found.unwrap_or_else(|| panic!("{words}"))
        };
        let whole = "1 part: [8@1 direct both ways, 8@8 ring both ways]";
        let recipe = named(whole, enumerate::recipes(Collective::Allgather, &[8, 8]));
        let split = "1 part: [2@1 direct both ways, 4@2 direct both ways, 8@8 ring both ways]";
        let split = named(split, neighbours(&recipe));
        assert_eq!(named(whole, neighbours(&split)), recipe);
        let slices = "1 part in 2 slices: [8@1 direct both ways, 8@8 ring both ways]";
        let swapped = "1 part: [8@8 ring both ways, 8@1 direct both ways]";
        for words in [slices, swapped] {
            named(words, neighbours(&recipe));
        }
    }

    /// A part never has more whole stages than stages, even if two are merged.
    #[test]
    fn whole_stages_stay_the_first_ones() {
        for recipe in enumerate::recipes(Collective::Allreduce, &[4, 2]) {
            for one in neighbours(&recipe).iter().flat_map(|one| &one.parts) {
                assert!(one.whole <= one.stages.len());
            }
        }
    }
}
