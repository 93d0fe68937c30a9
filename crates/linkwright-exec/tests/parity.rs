//! Threads leave in memory what the reference leaves, for every algorithm there is.

#![cfg(not(loom))]

use linkwright_exec::buffers::{Buffers, Contents, Data};
use linkwright_exec::dtype::{DType, ReduceOp};
use linkwright_exec::lowered::without_aggregations;
use linkwright_exec::threads::Threads;
use linkwright_exec::{reference, ExecError};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives::REGISTRY as ALGORITHMS;
use linkwright_schedule::{verify, Buffer, Collective, Schedule, ScheduleError};

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
    let lowered = without_aggregations(schedule, "threads").unwrap();
    let prepared = Threads::new().prepare(&lowered, data).unwrap();
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

/// An allreduce by aggregations: each rank's part, then from its rank to all others.
fn in_the_network(shape: &Shape) -> Schedule {
    let ranks = shape.ranks;
    let everyone: Vec<u32> = (0..ranks).collect();
    let mut b = Builder::new(Collective::Allreduce, shape);
    let output = b.buffer(Buffer::vector("output", ranks));
    b.step();
    for rank in 0..ranks {
        b.aggregate(&everyone, output.at(rank), &[rank], output.at(rank));
    }
    b.step();
    for rank in 0..ranks {
        let others: Vec<u32> = (rank + 1..ranks).chain(0..rank).collect();
        let all = [&[rank], &others[..]].concat();
        b.aggregate(&[rank], output.at(rank), &all, output.at(rank));
    }
    b.finish().unwrap()
}

#[test]
fn aggregations_agree_in_every_type() {
    for ranks in 1..6 {
        for dtype in DType::ALL {
            for op in ReduceOp::ALL {
                let schedule = in_the_network(&shape(ranks, 37, dtype).with_root(0));
                verify(&schedule).unwrap();
                let data = Data { dtype, op, seed: 5 };
                agree(&schedule, data, &format!("p={ranks} {dtype} {op}"));
            }
        }
    }
}

#[test]
fn threads_refuse_what_only_a_network_does() {
    let schedule = in_the_network(&shape(2, 8, DType::I32).with_root(0));
    let refused = Threads::new().prepare(&schedule, Data::sums(DType::I32, 1));
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("make gets and puts of it first"), "{error}");
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
