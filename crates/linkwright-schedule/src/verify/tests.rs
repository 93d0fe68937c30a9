//! Verify and the oracle agree: on every algorithm, on schedules with one mistake, on random ones.

use super::mutants::{apply, changes};
use super::oracle::{exhaust, judge, judge_order, try_at_random};
use super::{bounds, order, race, verify, Cells, Verified, VerifyError};
use crate::builder::{Builder, Shape, Slot};
use crate::collectives::{Algorithm, REGISTRY};
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;
use crate::text::print;
use std::fmt::Debug;

/// The schedule of an algorithm over `p` ranks, where it has one. All chunks are equally long, so
/// that wrong ones are not caught by their length alone.
fn schedule(algorithm: &Algorithm, p: u32) -> Option<Schedule> {
    let root = match algorithm.collective.is_rooted() {
        true => p / 2,
        false => 0,
    };
    let shape = Shape::new(p, u64::from(p) * 4).with_root(root);
    (algorithm.build)(&shape).ok()
}

/// A multiplicative generator: the same numbers in every run.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (state >> 33) as usize % below
    }
}

/// Whether verify and the oracle agree that `schedule` is right.
fn agree(name: &str, schedule: &Schedule, change: &dyn Debug) -> bool {
    let (found, due) = (verify(schedule), judge(schedule));
    assert_eq!(
        found.is_ok(),
        due.is_ok(),
        "{name}: {change:?}: verify says {found:?}, the oracle {due:?}\n{}",
        print(schedule)
    );
    found.is_ok()
}

/// All mutants of all algorithms over `p` ranks, or `most` of them each.
fn agree_on_mutants(p: u32, most: usize) {
    let (mut right, mut wrong) = (0, 0);
    let mut choose = random(p.into());
    for algorithm in REGISTRY {
        let Some(schedule) = schedule(algorithm, p) else {
            continue;
        };
        assert!(agree(&algorithm.key(), &schedule, &"unchanged"));
        let mut all = changes(&schedule);
        while all.len() > most {
            all.swap_remove(choose(all.len()));
        }
        for change in &all {
            match agree(&algorithm.key(), &apply(&schedule, change), change) {
                true => right += 1,
                false => wrong += 1,
            }
        }
    }
    // Some swaps and edges do not matter; a test in which most do not would prove little.
    assert!(wrong > right, "{p} ranks: {right} right, {wrong} wrong");
}

#[test]
fn agrees_on_every_mutant_of_up_to_4_ranks() {
    (2..=4).for_each(|p| agree_on_mutants(p, 3500));
}

#[test]
fn agrees_on_mutants_of_up_to_8_ranks() {
    (5..=8).for_each(|p| agree_on_mutants(p, 500));
}

#[test]
#[ignore = "minutes: every swap of two operations"]
fn agrees_on_every_mutant_of_up_to_8_ranks() {
    (5..=8).for_each(|p| agree_on_mutants(p, 20_000));
}

#[test]
fn agrees_on_mutants_of_more_ranks() {
    let mut choose = random(9);
    let mut left = 1000;
    while left > 0 {
        let algorithm = REGISTRY[choose(REGISTRY.len())];
        let p = 9 + choose(8) as u32;
        let Some(schedule) = schedule(algorithm, p) else {
            continue;
        };
        // The largest take seconds each to judge and are like their smaller brothers.
        if schedule.ops().len() > 500 {
            continue;
        }
        let all = changes(&schedule);
        for _ in 0..20 {
            let change = &all[choose(all.len())];
            let mutant = apply(&schedule, change);
            if agree(&algorithm.key(), &mutant, change) {
                try_at_random(&mutant, &mut choose).expect("a random execution is right");
            }
            left -= 1;
        }
    }
}

/// The oracle withholds one completion at a time; trying all executions finds nothing more.
#[test]
fn the_oracle_is_as_good_as_all_executions() {
    let mut tried = 0;
    for algorithm in REGISTRY {
        for p in [2, 3, 4] {
            let Some(schedule) = schedule(algorithm, p).filter(|s| s.ops().len() <= 6) else {
                continue;
            };
            for change in changes(&schedule) {
                let mutant = apply(&schedule, &change);
                let (found, due) = (judge(&mutant), exhaust(&mutant));
                let text = || print(&mutant);
                let name = algorithm.key();
                assert_eq!(
                    found.is_ok(),
                    due.is_ok(),
                    "{name}: {found:?} {due:?}\n{}",
                    text()
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 1000);
}

/// Random operations of all kinds on all lanes, four steps of them, over three ranks, a memory.
fn random_schedule(choose: &mut impl FnMut(usize) -> usize) -> Option<Schedule> {
    let mut b = Builder::new(Collective::Pattern, &Shape::new(3, 12));
    let memory = b.memory();
    let slots: Vec<Slot> = vec![
        b.buffer(Buffer::vector("a", 3)),
        b.buffer(Buffer::vector("b", 3)),
    ];
    let far = b.buffer(Buffer::vector("far", 3).only_at(memory));
    for _ in 0..4 {
        b.step();
        for _ in 0..1 + choose(3) {
            let (from, to) = (choose(3) as u32, choose(3) as u32);
            let count = 1 + choose(2) as u32;
            let mut place = |slot: Slot| {
                let first = choose(4 - count as usize) as u32;
                slot.range(first..first + count)
            };
            let (src, dst, there) = (place(slots[0]), place(slots[1]), place(far));
            let (src, dst) = if choose(3) == 0 {
                (dst, src)
            } else {
                (src, dst)
            };
            let all: Vec<u32> = (0..3).collect();
            let others: Vec<u32> = (0..3).filter(|&rank| rank != from).collect();
            let written = match choose(10) {
                0 | 1 => b.get(from, src, to, dst),
                2 => b.multicast(from, src, &others, dst),
                3 => b.local(from, src, dst),
                4 => b.put(from, src, memory, there),
                5 => b.get(memory, there, to, dst),
                6 if choose(2) == 0 => {
                    b.fence(from);
                    continue;
                }
                6 => {
                    b.barrier(if choose(2) == 0 { &all } else { &others });
                    continue;
                }
                _ => b.put(from, src, to, dst),
            };
            let written = written.lane(choose(2) as u8);
            if choose(3) == 0 {
                written.reduce();
            }
        }
    }
    b.finish().ok()
}

fn ordered(schedule: &Schedule) -> Result<(), VerifyError> {
    bounds::check(schedule)?;
    let barriers = order::check(schedule)?;
    let cells = Cells::of(schedule)?;
    race::check(schedule, &cells, &barriers, &mut Verified::default())
}

#[test]
fn agrees_on_random_schedules_and_their_mutants() {
    let mut choose = random(4);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..1500 {
        let Some(schedule) = random_schedule(&mut choose) else {
            continue;
        };
        let unchanged = ordered(&schedule);
        let text = || print(&schedule);
        assert!(unchanged.is_ok(), "{unchanged:?}\n{}", text());
        let all = changes(&schedule);
        for _ in 0..60 {
            let change = &all[choose(all.len())];
            let mutant = apply(&schedule, change);
            let (found, due) = (ordered(&mutant), judge_order(&mutant));
            let text = || print(&mutant);
            assert_eq!(
                found.is_ok(),
                due.is_ok(),
                "{change:?} {found:?} {due:?}\n{}",
                text()
            );
            match found.is_ok() {
                true => right += 1,
                false => wrong += 1,
            }
        }
    }
    assert!(
        right > 10_000 && wrong > 10_000,
        "{right} right, {wrong} wrong"
    );
}
