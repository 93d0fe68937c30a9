//! Threads leave in memory what the reference leaves, for every algorithm there is.

#![cfg(not(loom))]

use linkwright_exec::buffers::{Buffers, Contents, Data};
use linkwright_exec::dtype::{DType, ReduceOp};
use linkwright_exec::threads::Threads;
use linkwright_exec::{reference, ExecError};
use linkwright_schedule::builder::Shape;
use linkwright_schedule::collectives::REGISTRY as ALGORITHMS;
use linkwright_schedule::{Schedule, ScheduleError};

const RANKS: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16];

/// Vector lengths that leave chunks empty, full, or unequal.
fn lengths(ranks: u32) -> [u64; 6] {
    let p = u64::from(ranks);
    [0, 1, p - 1, p, p + 1, 1000]
}

/// What is compared: everything but scratch.
fn visible(schedule: &Schedule, state: &Buffers) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for participant in 0..schedule.ranks + schedule.memories {
        for (index, buffer) in schedule.buffers.iter().enumerate() {
            if !buffer.name.starts_with("scratch") {
                all.push(state.buffer(participant, index).to_vec());
            }
        }
    }
    all
}

fn agree(schedule: &Schedule, data: Data, what: &str) {
    let contents = Contents::new(schedule, data).unwrap();
    let want = reference::execute(&contents).unwrap();
    want.check(&contents, "reference")
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let prepared = Threads::new().prepare(schedule, data).unwrap();
    let got = prepared
        .execute()
        .unwrap_or_else(|error: ExecError| panic!("{what}: {error}"));
    assert!(
        visible(schedule, &got) == visible(schedule, &want),
        "{what}: memory differs from the reference"
    );
    got.check(&contents, "threads")
        .unwrap_or_else(|error| panic!("{what}: {error}"));
}

fn shape(ranks: u32, elements: u64, dtype: DType) -> Shape {
    let mut shape = Shape::new(ranks, elements).with_root(ranks / 2);
    shape.element_bytes = dtype.size() as u32;
    shape
}

#[test]
fn all_algorithms_ranks_and_lengths_agree_on_integers() {
    for algorithm in ALGORITHMS {
        for ranks in RANKS {
            for elements in lengths(ranks) {
                let schedule = match (algorithm.build)(&shape(ranks, elements, DType::I32)) {
                    Ok(schedule) => schedule,
                    Err(ScheduleError::Waived { .. }) => continue,
                    Err(error) => panic!("{}: {error}", algorithm.key()),
                };
                let data = Data::sums(DType::I32, 7);
                let what = format!("{} p={ranks} n={elements}", algorithm.key());
                agree(&schedule, data, &what);
            }
        }
    }
}

#[test]
fn all_types_and_reductions_agree() {
    for algorithm in ALGORITHMS.iter().filter(|a| a.collective.reduces()) {
        for dtype in DType::ALL {
            for op in ReduceOp::ALL {
                let Ok(schedule) = (algorithm.build)(&shape(4, 37, dtype)) else {
                    continue;
                };
                let data = Data { dtype, op, seed: 2 };
                let what = format!("{} {dtype} {op}", algorithm.key());
                agree(&schedule, data, &what);
            }
        }
    }
}
