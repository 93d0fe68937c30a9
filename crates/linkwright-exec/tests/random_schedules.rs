//! Schedules that no algorithm would write: random operations of every kind on small chunks.
//!
//! What threads leave in memory, whatever the interleaving, must be what the reference leaves.
//! Chunks are of 1 to 40 elements, so that mail and plain messages mix.

#![cfg(not(loom))]

use linkwright_exec::buffers::{Buffers, Contents, Data};
use linkwright_exec::dtype::DType;
use linkwright_exec::reference;
use linkwright_exec::threads::Threads;
use linkwright_schedule::aggregations::gather_and_put;
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::ir::{Buffer, Schedule};
use linkwright_schedule::spec::Collective;
use linkwright_schedule::{text, transforms};
use proptest::prelude::*;

const BLOCKS: u32 = 4;

/// Numbers from which one operation is made; each is taken modulo what there is.
type Numbers = (u8, u32, u32, u32, u32, bool);

fn build(ranks: u32, elements: u64, steps: &[Vec<Numbers>]) -> Option<Schedule> {
    let mut b = Builder::new(Collective::Allreduce, &Shape::new(ranks, elements));
    let memory = b.memory();
    let buffers = [
        b.buffer(Buffer::vector("output", BLOCKS)),
        b.buffer(Buffer::vector("work", BLOCKS)),
    ];
    let held = b.buffer(Buffer::vector("held", BLOCKS).only_at(memory));
    let everyone: Vec<u32> = (0..ranks).collect();
    for step in steps {
        b.step();
        for &(kind, from, to, src, dst, reduce) in step {
            let (from, to) = (from % ranks, to % ranks);
            let count = 1 + src / 16 % 2;
            let chunk = |n: u32| n % (BLOCKS + 1 - count);
            let source = |n: u32| buffers[(n as usize / 8) % 2];
            let (s, d) = (chunk(src), chunk(dst));
            // All blocks but the last ones may differ in length: keep source and target alike.
            let (at, into) = (
                source(src).range(s..s + count),
                source(dst).range(s..s + count),
            );
            let in_memory = held.range(s..s + count);
            let around: Vec<u32> = (to..ranks).chain(0..to).collect();
            let written = match kind % 14 {
                12 => b.aggregate(&everyone, at, &around, into),
                13 => b.aggregate(&around[..around.len().min(2)], at, &[from], into),
                0..=3 => b.put(from, at, to, into),
                4..=5 => b.get(from, at, to, into),
                6 => b.multicast(from, at, &everyone, into),
                7 => b.local(from, at, into),
                8 => b.put(from, at, memory, in_memory),
                9 => b.get(memory, in_memory, to, into),
                10 if d == 0 => {
                    b.barrier(&everyone);
                    continue;
                }
                11 if d == 0 => {
                    b.fence(from);
                    continue;
                }
                _ => b.put_blocks(from, source(src), to, source(dst), &[0, 2]),
            };
            if reduce {
                written.reduce();
            }
        }
    }
    b.finish().ok()
}

fn agree(schedule: &Schedule) {
    let data = Data::sums(DType::I32, 11);
    let contents = Contents::new(schedule, data).unwrap();
    let want = reference::execute(&contents).unwrap();
    let Ok(lowered) = gather_and_put(schedule) else {
        assert!(transforms::has_own_waits(schedule).unwrap());
        return;
    };
    let prepared = Threads::new().prepare(&lowered, data).unwrap();
    for _ in 0..3 {
        let got = prepared.execute().unwrap();
        assert!(same(schedule, &got, &want), "{schedule:?}");
    }
}

fn same(schedule: &Schedule, got: &Buffers, want: &Buffers) -> bool {
    (0..schedule.ranks + schedule.memories).all(|participant| {
        (0..schedule.buffers.len())
            .all(|buffer| got.buffer(participant, buffer) == want.buffer(participant, buffer))
    })
}

fn steps() -> impl Strategy<Value = Vec<Vec<Numbers>>> {
    let numbers = (
        any::<u8>(),
        0..64u32,
        0..64u32,
        0..64u32,
        0..64u32,
        any::<bool>(),
    );
    prop::collection::vec(prop::collection::vec(numbers, 1..6), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn threads_agree_with_the_reference(
        ranks in 1..6u32,
        elements in 4..160u64,
        steps in steps(),
        pipelined in any::<bool>(),
    ) {
        let Some(schedule) = build(ranks, elements, &steps) else {
            return Err(TestCaseError::reject("a step that contradicts itself"));
        };
        agree(&schedule);
        if pipelined {
            if let Ok(schedule) = transforms::pipeline(&schedule, 3) {
                agree(&schedule);
            }
        }
    }

    /// Also of a schedule whose steps are not simultaneous, as a file may have them.
    #[test]
    fn transforms_keep_what_a_schedule_does(
        ranks in 1..5u32,
        elements in 12..60u64,
        steps in steps(),
    ) {
        let Some(schedule) = build(ranks, elements, &steps) else {
            return Err(TestCaseError::reject("a step that contradicts itself"));
        };
        for schedule in [in_one_step(&schedule), schedule] {
            for (name, transform) in TRANSFORMS {
                if let Ok(made) = transform(&schedule) {
                    let want = executed(&schedule);
                    let got = executed(&made);
                    prop_assert!(same(&schedule, &got, &want), "{name}: {}", text::print(&schedule));
                    agree(&made);
                }
            }
        }
    }
}

type Transform = fn(&Schedule) -> linkwright_schedule::error::Result<Schedule>;
const TRANSFORMS: [(&str, Transform); 7] = [
    ("gather and put", gather_and_put),
    ("refine", |s| transforms::refine(s, 2)),
    ("pipeline", |s| transforms::pipeline(s, 3)),
    ("stripe", |s| transforms::stripe(s, 2)),
    ("unfuse", transforms::unfuse),
    ("unfuse and pipeline", |s| {
        transforms::pipeline(&transforms::unfuse(s)?, 2)
    }),
    ("one lane", |s| Ok(transforms::one_lane(s))),
];

fn executed(schedule: &Schedule) -> Buffers {
    let contents = Contents::new(schedule, Data::sums(DType::I32, 11)).unwrap();
    reference::execute(&contents).unwrap()
}

/// The same operations in the same order with the same waits, all in step 0.
fn in_one_step(schedule: &Schedule) -> Schedule {
    let text = text::print(schedule);
    let is_step = |line: &&str| line.starts_with("step ");
    let first = text.lines().position(|line| is_step(&line));
    let lines = text.lines().enumerate();
    let kept = lines.filter(|(at, line)| Some(*at) == first || !is_step(line));
    let joined: Vec<&str> = kept.map(|(_, line)| line).collect();
    text::parse(&(joined.join("\n") + "\n")).unwrap()
}
