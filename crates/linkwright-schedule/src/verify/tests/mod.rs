//! Verify and the oracle agree: on every algorithm, on schedules with one mistake, on random ones.

mod adversary;
mod mutants;
mod oracle;
mod place;

use super::contributions::{Exact, Fingerprint};
use super::semantics::replay;
use super::{bounds, order, race, verify, Cells, Verified, VerifyError};
use crate::builder::{Builder, Shape, Slot};
use crate::collectives::{find, Algorithm, REGISTRY};
use crate::ir::{Buffer, Combine, Schedule};
use crate::spec::Collective;
use crate::text::{parse, print};
use crate::transforms::repeat;
use mutants::{apply, changes, Change};
use oracle::{exhaust, judge, judge_order, try_at_random};
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
pub(super) fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (state >> 33) as usize % below
    }
}

/// Whether verify and the oracle agree that `schedule` is right.
pub(super) fn agree(name: &str, schedule: &Schedule, change: &dyn Debug) -> bool {
    let (found, due) = (verify(schedule), judge(schedule));
    assert_eq!(
        found.is_ok(),
        due.is_ok(),
        "{name}: {change:?}: verify says {found:?}, the oracle {due:?}\n{}",
        print(schedule)
    );
    if let Ok(cells) = bounds::check(schedule).and_then(|()| Cells::of(schedule)) {
        let exact = replay::<Exact>(schedule, &cells).is_ok();
        let quick = replay::<Fingerprint>(schedule, &cells).is_ok();
        assert_eq!(exact, quick, "{name}: {change:?}\n{}", print(schedule));
    }
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

/// Mutants of every kind over 2 to 9 ranks, 5,000 or as many as `LINKWRIGHT_MUTANTS` says, from the seed
/// `LINKWRIGHT_FUZZ_SEED`.
#[test]
fn agrees_on_mutants_of_every_kind() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|said| said.parse().ok());
    let most = asked("LINKWRIGHT_MUTANTS").unwrap_or(5000u64);
    let mut choose = random(asked("LINKWRIGHT_FUZZ_SEED").unwrap_or(24));
    let mut seen = std::collections::BTreeMap::new();
    let mut tried = 0;
    while tried < most {
        let algorithm = REGISTRY[choose(REGISTRY.len())];
        let made = schedule(algorithm, 2 + choose(8) as u32);
        let Some(schedule) = made.filter(|made| made.ops().len() < 300) else {
            continue;
        };
        let mut kinds: Vec<Vec<Change>> = Vec::new();
        for change in changes(&schedule) {
            let same = |kind: &&mut Vec<Change>| kind[0].kind() == change.kind();
            match kinds.iter_mut().find(same) {
                Some(kind) => kind.push(change),
                None => kinds.push(vec![change]),
            }
        }
        for kind in &kinds {
            let change = &kind[choose(kind.len())];
            let right = agree(&algorithm.key(), &apply(&schedule, change), change);
            let (all, wrong) = seen.entry(change.kind()).or_insert((0, 0));
            (*all, *wrong) = (*all + 1, *wrong + u64::from(!right));
            tried += 1;
        }
    }
    assert_eq!(seen.len(), 11, "{seen:?}");
    assert!(
        seen.values().all(|&(all, wrong)| wrong > all / 50),
        "{seen:?}"
    );
}

/// A schedule over two ranks and what verify says of it.
fn refusal(spec: &str, operations: &str) -> String {
    let text = format!(
        "linkwright-schedule 1\nranks 2\nelements 8\nspec {spec}\nbuffer output 2\nbuffer scratch 2\n\
         buffer third 3\nset s0 0,1\nedges given\nstep 1\n{operations}end\n"
    );
    let schedule = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&schedule).expect_err(operations).to_string()
}

#[test]
fn mistakes_are_named_with_place_and_cure() {
    let exchange = "t0 put 0:output[0..2] -> 1:scratch[0..2] replace\n\
                    t1 put 1:output[0..2] -> 0:scratch[0..2] replace\nstep 2\n";
    let own = "t3 local 1:scratch[0..2] -> 1:output[0..2] reduce after=t0,t1\n";
    let cases = [
        (
            format!("{exchange}t2 local 0:scratch[0..2] -> 0:output[0..2] reduce after=t0,t1\n\
                     step 3\n{own}t4 put 0:output[0] -> 1:output[0] reduce src_after=t2 dst_after=t3\n"),
            "step 3: rank 1: output[0] ends with rank 0's contribution twice instead of once; combine \
             it on one way only, or replace instead of reduce",
        ),
        (
            format!("{exchange}t2 local 0:scratch[0..2] -> 0:output[0..2] replace after=t0,t1\n{own}"),
            "step 2: rank 0: output[0] ends without rank 0's contribution; send it there before the \
             last step, or reduce instead of replace",
        ),
        (
            format!("{exchange}t2 local 0:scratch[0..2] -> 0:output[0..2] reduce after=t1\n{own}"),
            "step 2: rank 0: output[0] is accessed by t2 while t0 of step 1 may still read it; let rank \
             0 wait for the source of t0, by an edge where it can see that, else by a notice",
        ),
        (
            format!("{exchange}t2 local 0:scratch[0..2] -> 0:output[0..2] reduce after=t0\n{own}"),
            "step 2: rank 0: scratch[0] is accessed by t2 while t1 of step 1 may still write it; let \
             rank 0 wait for the delivery of t1, by an edge where it can see that, else by a notice",
        ),
        (
            format!("{exchange}t2 local 0:scratch[0..2] -> 0:output[0..2] reduce after=t1,t0!\n\
                     t3 local 1:scratch[0..2] -> 1:output[0..2] reduce after=t0!,t1\n"),
            "step 2: rank 1: t3 waits for the acknowledgement of t0, which rank 1 cannot see; let rank \
             0 send a notice",
        ),
        (
            "t0 put 0:scratch[1] -> 1:output[1] replace\n".into(),
            "step 1: rank 0: scratch[1] is read before anything is in it; fill it in an earlier step, \
             or send a chunk that has data",
        ),
        (
            "t0 put 0:output[1] -> 1:scratch[1] reduce\n".into(),
            "step 1: rank 1: scratch[1] is combined into before anything is in it; replace instead of \
             reduce, or fill it in an earlier step",
        ),
        (
            "t0 put 0:output[0] -> 1:third[0] replace\n".into(),
            "step 1: t0: output[0] has 4 elements and third[0] has 3; pair chunks of equal length",
        ),
        (
            "t0 local 0:output[0] -> 0:output[0] reduce\n".into(),
            "step 1: t0: reads and writes the same chunk; go through scratch",
        ),
        (
            "t0 multicast 0:output[0] -> s0:scratch[0] replace\n".into(),
            "step 1: t0: rank 0 multicasts to itself; leave it out of set s0 and add a local copy",
        ),
        (
            "t0 barrier 0 s0\n".into(),
            "step 1: rank 0: t0 waits at a barrier of set s0 at which rank 1 never arrives; let it \
             arrive or leave it out of the set",
        ),
        (
            "t0 barrier 0 s0\nt1 fence 0 after=t0\nt2 barrier 1 s0\n".into(),
            "step 1: rank 0: t1 waits for the barrier of t0, at which t2 arrives only later; put all \
             arrivals before it",
        ),
        (
            String::new(),
            "at the end: rank 0: output[0] never gets data; send some there",
        ),
    ];
    for (operations, expected) in cases {
        assert_eq!(refusal("allreduce", &operations), expected);
    }
    let broadcast = "t0 put 1:output[0..2] -> 0:output[0..2] replace\n";
    assert_eq!(
        refusal("gather", broadcast),
        "gather: there is no buffer `input`; declare it"
    );
    assert_eq!(
        refusal("broadcast", broadcast),
        "step 1: rank 1: output[0] is read before anything is in it; fill it in an earlier step, or \
         send a chunk that has data"
    );
}

/// Fingerprints see what multisets see.
#[test]
fn large_schedules_are_checked_too() {
    let schedule = (find("allreduce/ring").unwrap().build)(&Shape::new(128, 128)).unwrap();
    let report = verify(&schedule).unwrap();
    assert!(!report.exact);
    let mut twice = schedule.clone();
    let op = twice.ops.last_mut().unwrap();
    op.combine = Combine::Reduce;
    let (error, rank) = (verify(&twice).unwrap_err().to_string(), op_target(&twice));
    let expected = format!("step 254: rank {rank}: output");
    assert!(
        error.starts_with(&expected) && error.contains("twice"),
        "{error}"
    );
    assert!(verify(&repeat(&schedule, 8).unwrap()).is_ok());
    // 128^9 contributions are 2^63, more than are counted.
    let error = verify(&repeat(&schedule, 9).unwrap()).unwrap_err();
    assert!(error.to_string().contains("repeat it less often"));
}

fn op_target(schedule: &Schedule) -> u32 {
    schedule.ops().last().unwrap().to
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
pub(super) fn random_schedule(choose: &mut impl FnMut(usize) -> usize) -> Option<Schedule> {
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
            let some = [&all[..], &others, &all[..2], &others[..1]];
            let (sources, targets) = (some[choose(4)], some[choose(4)]);
            let written = match choose(12) {
                10 => b.aggregate(sources, src, targets, dst),
                11 => b.aggregate(sources, src, targets, src),
                0 | 1 => b.get(from, src, to, dst),
                2 => b.multicast(from, src, &others, dst),
                3 => b.local(from, src, dst),
                4 => b.put(from, src, memory, there),
                5 => b.get(memory, there, to, dst),
                6 if choose(3) == 0 => {
                    b.fence(from);
                    continue;
                }
                6 => {
                    b.barrier(if choose(2) == 0 { &all } else { &others });
                    continue;
                }
                _ => b.put(from, src, to, dst),
            };
            let mut written = written.lane(choose(2) as u8);
            if choose(3) == 0 {
                written = written.reduce();
            }
            if choose(6) == 0 {
                written.fenced();
            }
        }
    }
    b.finish().ok()
}

fn ordered(schedule: &Schedule) -> Result<(), VerifyError> {
    bounds::check(schedule)?;
    let barriers = order::check(schedule, &mut Verified::default())?;
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
