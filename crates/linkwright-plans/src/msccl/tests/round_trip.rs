//! What is written is read as it was.

use crate::msccl::{read, write};
use linkwright_schedule::builder::{Builder, Shape};
use linkwright_schedule::collectives::{self, REGISTRY};
use linkwright_schedule::ir::{Buffer, Hint, OpKind};
use linkwright_schedule::transforms::{self, resized};
use linkwright_schedule::{Collective, Schedule};

/// Every algorithm over `ranks` ranks that has a schedule there.
fn built(ranks: u32) -> impl Iterator<Item = (String, Schedule)> {
    REGISTRY.iter().filter_map(move |algorithm| {
        // 840 elements for each rank: no remainders over 2 to 8 parts.
        let mut shape = Shape::new(ranks, 840 * u64::from(ranks));
        if ranks % 2 == 0 {
            shape = shape.with_grid(ranks / 2, 2);
        }
        let built = collectives::build(&algorithm.key(), &shape).ok()?;
        Some((algorithm.key(), built))
    })
}

/// The schedule read from what is written of `schedule`, at its size.
fn again(schedule: &Schedule) -> Schedule {
    let text = write(schedule).unwrap();
    let small = read(&text).unwrap();
    resized(&small, schedule.elements, schedule.element_bytes).unwrap()
}

#[test]
fn every_algorithm_that_the_format_can_express_comes_back_as_it_was() {
    let mut refused = Vec::new();
    for ranks in 2..=8 {
        for (key, schedule) in built(ranks) {
            match write(&schedule) {
                // Operations, lanes, waits and notices are equal, so every simulated time is.
                Ok(_) => assert_eq!(again(&schedule), schedule, "{key} over {ranks}"),
                Err(error) => refused.push(format!("{key}: {error}")),
            }
        }
    }
    for (key, problem) in [
        ("allreduce/all_pairs", "is a barrier"),
        ("allreduce/shared_memory", "1 memories"),
        ("barrier/dissemination", "the format has no barrier"),
        ("barrier/linear", "the format has no barrier"),
        ("broadcast/multicast", "is a multicast"),
        ("allreduce/one_shot_multimem", "is an aggregation"),
        ("allreduce/nvls", "is an aggregation"),
        ("allreduce/collnet_direct", "is an aggregation"),
        ("allreduce/collnet_chain", "is an aggregation"),
        ("reduce_scatter/nvls", "is an aggregation"),
        ("allgather/nvls", "is a multicast"),
        ("alltoall/by_rounds", "waits besides those"),
        ("alltoallv/", "the format has no alltoallv"),
        ("dispatch/", "the format has no dispatch"),
        ("combine/", "the format has no combine"),
    ] {
        let known = |line: &String| line.starts_with(key) && line.contains(problem);
        assert!(
            refused.iter().any(known),
            "{key} was not refused for: {problem}"
        );
        refused.retain(|line| !known(line));
    }
    assert_eq!(refused, [""; 0]);
}

#[test]
fn sizes_with_a_remainder_come_back_too() {
    for key in [
        "allreduce/recursive_doubling_bandwidth",
        "alltoall/bruck",
        "gather/binomial",
    ] {
        let schedule = collectives::build(key, &Shape::new(6, 6 * 841 + 5)).unwrap();
        assert_eq!(again(&schedule), schedule, "{key}");
    }
}

#[test]
fn transformed_schedules_come_back() {
    let ring = collectives::build("allreduce/ring", &Shape::new(4, 4096)).unwrap();
    for schedule in [
        transforms::pipeline(&ring, 3).unwrap(),
        transforms::stripe(&ring, 2).unwrap(),
    ] {
        assert_eq!(again(&schedule), schedule);
    }
}

#[test]
fn out_of_place_is_kept() {
    let mut b = Builder::new(Collective::Allgather, &Shape::new(2, 2));
    b.out_of_place();
    let input = b.buffer(Buffer::block("input", 2));
    let output = b.buffer(Buffer::vector("output", 2));
    b.step();
    for rank in 0..2 {
        b.local(rank, input.at(0), output.at(rank));
        b.put(rank, input.at(0), 1 - rank, output.at(rank));
    }
    let schedule = b.finish().unwrap();
    let text = write(&schedule).unwrap();
    assert!(text.contains("inplace=\"0\" outofplace=\"1\""), "{text}");
    assert_eq!(again(&schedule), schedule);
}

#[test]
fn who_pulls_and_which_way_is_kept() {
    let mut b = Builder::new(Collective::Allgather, &Shape::new(3, 12));
    let output = b.buffer(Buffer {
        slices: 4,
        ..Buffer::vector("output", 3)
    });
    b.step();
    for rank in 0..3 {
        let from = (rank + 1) % 3;
        let runs = [(4 * from, 4 * from, 1), (4 * from + 2, 4 * from + 2, 2)];
        b.get_runs(from, output, rank, output, &runs).lane(3);
        b.get(from, output.at(4 * from + 1), rank, output.at(4 * from + 1));
    }
    b.step();
    for rank in 0..3 {
        let block = (rank + 1) % 3;
        let chunks = output.chunks(4 * block, 4);
        b.put(rank, chunks, (rank + 2) % 3, chunks)
            .hint(Hint::MinusY);
    }
    let schedule = b.finish().unwrap();
    assert!(schedule.ops().iter().any(|op| op.scattered));
    assert_eq!(again(&schedule), schedule);
}

#[test]
fn the_runtimes_rules_are_kept() {
    // 64 ranks: more peers than a channel has thread blocks, so connections spread over two channels.
    let schedule = collectives::build("allgather/linear", &Shape::new(64, 64)).unwrap();
    let text = write(&schedule).unwrap();
    assert!(text.contains("nchannels=\"2\""));
    assert_eq!(again(&schedule), schedule);
    // 600 chunks one after another: three thread blocks of at most 256 steps, on three channels.
    let chain = collectives::build("broadcast/ring", &Shape::new(2, 600)).unwrap();
    let chain = transforms::pipeline(&chain, 600).unwrap();
    let text = write(&chain).unwrap();
    assert!(text.contains("nchannels=\"3\""), "{}", &text[..200]);
    assert!(!text.contains("s=\"256\""));
}

#[test]
fn what_the_format_cannot_express_is_named() {
    let refused = |schedule: &Schedule, words: &str| {
        let error = write(schedule).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let mut b = Builder::new(Collective::Broadcast, &Shape::new(3, 6));
    let output = b.buffer(Buffer::vector("output", 1));
    b.step();
    b.multicast(0, output.at(0), &[1, 2], output.at(0));
    refused(
        &b.finish().unwrap(),
        "operation t0 of step 1 at rank 0: is a multicast",
    );
    let mut b = Builder::new(Collective::Pattern, &Shape::new(2, 6));
    b.step();
    b.compute(0, 5);
    refused(&b.finish().unwrap(), "the format has no pattern");
    let ring = collectives::build("allreduce/ring", &Shape::new(2, 8)).unwrap();
    refused(&transforms::repeat(&ring, 3).unwrap(), "runs 3 times");
    assert!(!ring.has(OpKind::Barrier));
    refused(
        &collectives::build("barrier/dissemination", &Shape::new(2, 0)).unwrap(),
        "no barrier",
    );
}

#[test]
fn a_wait_that_data_do_not_need_is_not_lost_in_silence() {
    let mut b = Builder::new(Collective::Broadcast, &Shape::new(3, 8));
    let data = b.buffer(Buffer::vector("output", 2));
    b.step();
    let first = b.put(0, data.at(0), 1, data.at(0)).position();
    b.put(0, data.at(1), 1, data.at(1));
    b.step();
    b.put(0, data.range(0..2), 2, data.range(0..2)).after(first);
    let error = write(&b.finish().unwrap()).unwrap_err().to_string();
    assert!(error.contains("waits besides those"), "{error}");
}
