//! Races are found as one finds them by asking, for every two steps, whether a way leads from one to the other.

use super::fuzz::stripped;
use crate::msccl::links::Links;
use crate::msccl::plan::{Cells, Kind, Plan};
use crate::msccl::{events, parse, write};
use crate::skeleton::NONE;
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives;

/// Steps that a step waits for by its place, its dependency and its message.
fn before(plan: &Plan, links: &Links, step: u32) -> Vec<u32> {
    let block = &plan.blocks[links.block_of[step as usize] as usize];
    let previous = if block.steps.start == step {
        NONE
    } else {
        step - 1
    };
    let all = [
        previous,
        links.after[step as usize],
        links.sent_by[step as usize],
    ];
    all.into_iter().filter(|&other| other != NONE).collect()
}

/// Everything that comes before each step, in running order.
fn pasts(plan: &Plan, links: &Links, order: &[u32]) -> Vec<Vec<bool>> {
    let mut pasts = vec![vec![false; plan.steps.len()]; plan.steps.len()];
    for &step in order {
        for other in before(plan, links, step) {
            let past = pasts[other as usize].clone();
            let own = &mut pasts[step as usize];
            own[other as usize] = true;
            own.iter_mut()
                .zip(past)
                .for_each(|(known, more)| *known |= more);
        }
    }
    pasts
}

/// Cells that a step touches, and whether it writes them.
fn touched(plan: &Plan, links: &Links, cells: &Cells, step: u32) -> Vec<(u32, bool)> {
    let gpu = plan.blocks[links.block_of[step as usize] as usize].gpu;
    let step = &plan.steps[step as usize];
    let mut touched = Vec::new();
    for (used, place, writes) in [
        (step.kind.reads(), step.src, false),
        (step.kind.writes(), step.dst, true),
    ] {
        if used {
            let first = cells.of(gpu, plan.head.goal.canonical(gpu, place));
            touched.extend((first..first + step.count).map(|cell| (cell, writes)));
        }
    }
    touched
}

fn has_race(plan: &Plan, links: &Links, cells: &Cells, order: &[u32]) -> bool {
    let pasts = pasts(plan, links, order);
    let steps = 0..plan.steps.len() as u32;
    let all: Vec<_> = steps
        .clone()
        .map(|step| touched(plan, links, cells, step))
        .collect();
    let meet = |a: u32, b: u32| {
        all[a as usize].iter().any(|one| {
            let same = |other: &&(u32, bool)| other.0 == one.0 && (other.1 || one.1);
            all[b as usize].iter().any(|other| same(&other))
        })
    };
    steps.clone().any(|a| {
        (0..a)
            .any(|b| !pasts[a as usize][b as usize] && !pasts[b as usize][a as usize] && meet(a, b))
    })
}

#[test]
fn a_dependency_less_is_a_race_exactly_if_nothing_else_orders_the_steps() {
    let (mut races, mut plans) = (0, 0);
    for (key, ranks) in [
        ("allreduce/ring", 3),
        ("allreduce/recursive_doubling_bandwidth", 4),
        ("allgather/bruck", 3),
        ("alltoall/bruck", 4),
        ("reduce/binomial", 4),
    ] {
        let schedule = collectives::build(key, &Shape::new(ranks, 24)).unwrap();
        let whole = parse::parse(&stripped(&write(&schedule).unwrap())).unwrap();
        for step in 0..whole.steps.len() {
            let mut plan = whole.clone();
            if plan.steps[step].after.take().is_none() || plan.steps[step].kind == Kind::Nop {
                continue;
            }
            let Ok(links) = Links::of(&plan) else {
                continue;
            };
            let skeleton = events::skeleton(&plan, &links).unwrap();
            let order: Vec<u32> = skeleton.steps().collect();
            let cells = plan.cells();
            let found = events::prove(&plan, &skeleton, &cells).is_err();
            assert_eq!(
                found,
                has_race(&plan, &links, &cells, &order),
                "{key}, step {step}"
            );
            races += u32::from(found);
            plans += 1;
        }
    }
    assert!(races > 20 && races <= plans, "{races} of {plans}");
}
