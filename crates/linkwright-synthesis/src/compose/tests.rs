//! Every recipe that is enumerated is right, on grids of any sides and for vectors shorter than its chunks.

use super::*;
use crate::reads::Reads;
use linkwright_schedule::ir::OpKind;
use linkwright_schedule::verify;

const COLLECTIVES: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Allgather,
    Collective::ReduceScatter,
    Collective::Broadcast,
    Collective::Alltoall,
];

/// Verify `recipe` for `shape`; whether it suits it.
fn proved(recipe: &Composition, shape: &Shape) -> bool {
    match compose(recipe, shape) {
        Ok(schedule) => {
            verify(&schedule).unwrap_or_else(|error| panic!("{recipe}: {error}"));
            true
        }
        Err(ScheduleError::Waived { .. }) => false,
        Err(error) => panic!("{recipe}: {error}"),
    }
}

/// Of some hundred recipes each, every `stride`-th; how many suit.
fn sweep(sides: &[u32], elements: u64, stride: usize) -> usize {
    let ranks = sides.iter().product();
    let mut served = 0;
    for collective in COLLECTIVES {
        let recipes = enumerate::recipes(collective, sides);
        for (k, recipe) in recipes.iter().enumerate().step_by(stride) {
            let shape = Shape::new(ranks, elements).with_root(k as u32 % ranks);
            let shape = if collective == Collective::Broadcast {
                shape
            } else {
                shape.with_root(0)
            };
            served += usize::from(proved(recipe, &shape));
        }
    }
    served
}

#[test]
fn right_on_a_plane() {
    assert!(sweep(&[4, 3], 12 * 9, 3) > 50);
    assert!(sweep(&[2, 2], 3, 1) > 50);
}

#[test]
fn right_on_a_line() {
    assert!(sweep(&[8], 8 * 7, 2) > 50);
    assert!(sweep(&[5], 5, 1) > 10);
}

/// Reads move what writes move.
#[test]
fn right_with_reads() {
    let shape = Shape::new(8, 8 * 9);
    for collective in COLLECTIVES {
        let recipes = enumerate::recipes(collective, &[4, 2]);
        for (k, recipe) in recipes.iter().enumerate().step_by(7) {
            let all = Reads::all(collective);
            let reads = Some(all[k % all.len()]);
            let slices = 1 + k as u32 % 2;
            let written = Composition {
                slices,
                ..recipe.clone()
            };
            let read = Composition {
                reads,
                ..written.clone()
            };
            if proved(&read, &shape) {
                let bytes = |recipe| compose(recipe, &shape).unwrap().sent_bytes();
                assert_eq!(bytes(&read), bytes(&written), "{read}");
            }
        }
    }
}

#[test]
fn right_in_space() {
    assert!(sweep(&[2, 3, 2], 24, 2) > 50);
}

#[test]
fn one_rank_has_nothing_to_do() {
    assert_eq!(enumerate::recipes(Collective::Allreduce, &[1]), []);
}

#[test]
fn slices_follow_each_other() {
    let mut recipe = enumerate::recipes(Collective::Allreduce, &[4, 2]).remove(0);
    recipe.slices = 3;
    assert!(proved(&recipe, &Shape::new(8, 240)));
}

#[test]
fn stages_that_do_not_cover_the_ranks_are_waived() {
    let recipe = enumerate::recipes(Collective::Allgather, &[4, 2]).remove(0);
    let error = compose(&recipe, &Shape::new(9, 90)).unwrap_err();
    assert!(error.to_string().contains("cover 8 of 9 ranks"), "{error}");
}

/// Whatever the number of slots, contributions come once, none lands on one that is not added yet, and the buffers are
/// the vector and the slots.
#[test]
fn few_slots_serve_every_recipe() {
    let mut served = 0;
    for sides in [&[4, 3][..], &[8], &[5], &[2, 2], &[2, 3, 2]] {
        let ranks: u32 = sides.iter().product();
        let shape = Shape::new(ranks, u64::from(ranks * ranks * 12));
        for collective in [Collective::Allreduce, Collective::ReduceScatter] {
            let recipes = enumerate::recipes(collective, sides);
            for (k, recipe) in recipes.iter().step_by(5).enumerate() {
                let mut recipe = recipe.clone();
                recipe.slots = Some([1, 2, 3, 5, 8, 13, 64][k % 7]);
                recipe.slices = 1 + (k % 3) as u32;
                if proved(&recipe, &shape) {
                    let schedule = compose(&recipe, &shape).unwrap();
                    let names = schedule.buffers.iter().map(|buffer| &buffer.name[..]);
                    assert_eq!(names.collect::<Vec<_>>(), ["output", "staging"]);
                    let pieces = estimated(&recipe, &shape).unwrap().pieces;
                    let likely = 4 * pieces * u64::from(recipe.slices);
                    let operations = schedule.ops().len() as u64;
                    assert!(operations <= likely, "{recipe}: {operations} {likely}");
                    served += 1;
                }
            }
        }
    }
    assert!(served > 100, "{served}");
}

/// All buffers together stay within the memory, whatever it has room for behind the vector.
#[test]
fn slots_stay_within_the_memory() {
    let shape = Shape::new(8, 8 * 8 * 4);
    let vector = shape.elements * u64::from(shape.element_bytes);
    let mut in_slots = 0;
    for memory in [vector + vector / 8, vector + vector / 2, 2 * vector - 1] {
        for recipe in enumerate::recipes(Collective::Allreduce, &[4, 2]) {
            let Ok(slots) = staging::slots(&recipe, &shape, memory) else {
                continue;
            };
            let Ok(schedule) = compose(&Composition { slots, ..recipe }, &shape) else {
                continue;
            };
            let elements = schedule.buffers.iter().map(|b| b.elements(shape.elements));
            let bytes = elements.sum::<u64>() * u64::from(shape.element_bytes);
            assert!(slots.is_none() || bytes <= memory);
            in_slots += u32::from(slots.is_some());
        }
    }
    assert!(in_slots > 100, "{in_slots}");
}

/// With as many slots as contributions, none is used twice, so no rank has to tell another that one is free.
#[test]
fn slots_for_all_contributions_need_no_notice() {
    let shape = Shape::new(12, 12 * 12 * 4);
    let mut served = 0;
    for mut recipe in enumerate::recipes(Collective::ReduceScatter, &[4, 3]) {
        recipe.slots = Some(1);
        let Ok(found) = estimated(&recipe, &shape) else {
            continue;
        };
        // Of all ranks together, everyone else's share of each block comes once.
        assert_eq!(found.arrivals, 11 * recipe.parts.len() as u64, "{recipe}");
        recipe.slots = Some(found.arrivals as u32);
        let schedule = compose(&recipe, &shape).unwrap();
        let told = schedule.ops().iter().any(|op| op.kind == OpKind::Notice);
        assert!(!told, "{recipe}");
        served += 1;
    }
    assert!(served > 50, "{served}");
}

fn estimated(recipe: &Composition, shape: &Shape) -> Result<estimate::Estimate> {
    let costs = costs::Costs {
        start: 1.0,
        hop: 1.0,
        message: 1.0,
        byte: vec![1.0; shape.ranks as usize],
        port: 1.0,
        sum: 1.0,
        copy_start: 1.0,
        copy: 1.0,
        reads: costs::ReadCosts::default(),
    };
    estimate::estimate(recipe, shape, &costs, true)
}

/// Windows keep what lies between stages within the slots, and every block comes.
#[test]
fn an_all_to_all_goes_in_windows() {
    let mut served = 0;
    for sides in [&[4, 3][..], &[4, 2], &[2, 3, 2]] {
        let ranks: u32 = sides.iter().product();
        let shape = Shape::new(ranks, u64::from(ranks * ranks * 12));
        for recipe in enumerate::recipes(Collective::Alltoall, sides)
            .iter()
            .step_by(3)
        {
            let parts = recipe.parts.len() as u64;
            let chunk = shape.elements / u64::from(ranks) / parts;
            for slots in [ranks / 2, ranks, 2 * ranks] {
                let mut recipe = recipe.clone();
                recipe.slots = Some(slots);
                let Ok(schedule) = compose(&recipe, &shape) else {
                    continue;
                };
                assert!(proved(&recipe, &shape));
                let elements = schedule.buffers.iter().map(|b| b.elements(shape.elements));
                let between = elements.sum::<u64>() - 2 * shape.elements;
                assert!(between <= u64::from(slots) * chunk, "{recipe}");
                served += 1;
            }
        }
    }
    assert!(served > 50, "{served}");
}
