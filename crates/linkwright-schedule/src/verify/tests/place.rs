//! Collectives out of place: `input` holds the data and stays, `output` starts with nothing.

use super::super::verify;
use super::agree;
use super::mutants::{apply, changes};
use crate::builder::{Builder, Shape, Slot};
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective::{self, *};
use crate::text::{parse, print};
use crate::transforms::{repeat, resized};

/// Everyone's data straight to everyone who needs them: own data first, then what is combined.
fn naive(collective: Collective, p: u32) -> Schedule {
    let root = if collective.is_rooted() { p / 2 } else { 0 };
    let mut b = Builder::new(collective, &Shape::new(p, u64::from(p) * 4).with_root(root));
    b.out_of_place();
    let part = |name: &str, whole: bool| match whole {
        true => Buffer::vector(name, p),
        false => Buffer {
            div: p,
            ..Buffer::vector(name, 1)
        },
    };
    let input = b.buffer(part("input", collective != Allgather));
    let output = b.buffer(part("output", collective != ReduceScatter));
    let moved = |from: u32, to: u32| match collective {
        Allgather => (input.at(0), output.at(from)),
        ReduceScatter => (input.at(to), output.at(0)),
        _ => (input.range(0..p), output.range(0..p)),
    };
    let wanted = |from: u32, to: u32| match collective {
        Reduce => to == root,
        Broadcast => from == root,
        _ => true,
    };
    b.step();
    for rank in (0..p).filter(|&rank| wanted(rank, rank)) {
        let (src, dst) = moved(rank, rank);
        b.local(rank, src, dst);
    }
    for distance in 1..p {
        b.step();
        for from in 0..p {
            let to = (from + distance) % p;
            if wanted(from, to) {
                let (src, dst) = moved(from, to);
                let put = b.put(from, src, to, dst);
                if collective.reduces() {
                    put.reduce();
                }
            }
        }
    }
    b.finish().unwrap()
}

#[test]
fn verify_and_the_oracle_agree_on_all_of_them_and_their_mutants() {
    let (mut right, mut wrong) = (0, 0);
    for collective in [Allreduce, Reduce, Broadcast, ReduceScatter, Allgather] {
        for p in 1..=4 {
            let schedule = naive(collective, p);
            let name = format!("{} over {p}", collective.name());
            assert!(agree(&name, &schedule, &"unchanged"), "{name}");
            for change in changes(&schedule) {
                match agree(&name, &apply(&schedule, &change), &change) {
                    true => right += 1,
                    false => wrong += 1,
                }
            }
        }
    }
    assert!(wrong > right && right > 0, "{right} right, {wrong} wrong");
}

#[test]
fn text_keeps_the_place() {
    let schedule = naive(Allreduce, 3);
    let text = print(&schedule);
    assert!(text.contains("\nspec allreduce out_of_place\n"), "{text}");
    assert_eq!(parse(&text).unwrap(), schedule);
}

#[test]
fn the_input_stays_so_a_repetition_counts_nothing_twice() {
    // In place, two repetitions would count every contribution p = 3 times.
    for collective in [Allreduce, Reduce, ReduceScatter] {
        verify(&repeat(&naive(collective, 3), 2).unwrap()).unwrap();
    }
}

#[test]
fn what_is_never_in_place_has_no_place() {
    let mut b = Builder::new(Alltoall, &Shape::new(2, 8));
    b.out_of_place();
    let buffers: [Slot; 2] = ["input", "output"].map(|name| b.buffer(Buffer::vector(name, 2)));
    b.step();
    b.put(0, buffers[0].at(1), 1, buffers[1].at(0));
    let error = verify(&b.finish().unwrap()).unwrap_err().to_string();
    assert!(error.contains("alltoall is never in place"), "{error}");
}

#[test]
fn a_cut_vector_has_any_size_that_its_chunks_divide() {
    let schedule = naive(ReduceScatter, 3);
    let larger = resized(&schedule, 100, 8).unwrap();
    // 100 elements are 33 per rank: S is equal blocks, so one element is dropped.
    assert_eq!((larger.elements, larger.element_bytes), (99, 8));
    verify(&larger).unwrap();
    assert_eq!(resized(&larger, 12, 4).unwrap(), schedule);
    assert!(resized(&schedule, u64::MAX, 4).is_err());
    assert!(resized(&schedule, 12, 0).is_err());
}
