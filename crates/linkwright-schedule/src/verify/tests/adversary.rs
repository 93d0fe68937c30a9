//! Schedules made to be counted wrongly: multiplicities that an arithmetic with small orders calls right.

use super::super::cells::Cells;
use super::super::contributions::{Exact, Fingerprint, Value};
use super::super::semantics::replay;
use super::super::verify;
use super::random;
use crate::builder::{Builder, Shape};
use crate::collectives::find;
use crate::ir::{Buffer, Schedule};
use crate::spec::Collective;
use crate::transforms::repeat;

/// An allreduce over two ranks in which rank 0 first adds `bits` of its own vector, a binary number with
/// the highest digit first: its contribution counts 1 + that number times.
fn weighted(bits: &[bool]) -> Schedule {
    let mut b = Builder::new(Collective::Allreduce, &Shape::new(2, 1));
    let [data, sum, copy] =
        ["output", "sum", "copy"].map(|name| b.buffer(Buffer::vector(name, 1)).at(0));
    for (place, &bit) in bits.iter().enumerate() {
        b.step();
        match place {
            0 => {
                b.local(0, data, sum);
                continue;
            }
            _ => b.local(0, sum, copy),
        };
        b.step();
        b.local(0, copy, sum).reduce();
        if bit {
            b.step();
            b.local(0, data, sum).reduce();
        }
    }
    if !bits.is_empty() {
        b.step();
        b.local(0, sum, data).reduce();
    }
    b.step();
    b.put(0, data, 1, data).reduce();
    b.put(1, data, 0, data).reduce();
    b.finish().unwrap()
}

/// Whether both arithmetics call it right; they must agree.
fn is_right(schedule: &Schedule) -> bool {
    let cells = Cells::of(schedule).unwrap();
    let exact = replay::<Exact>(schedule, &cells).is_ok();
    let quick = replay::<Fingerprint>(schedule, &cells).is_ok();
    assert_eq!(exact, quick);
    assert_eq!(exact, verify(schedule).is_ok());
    exact
}

/// An allreduce of `p` ranks and chunks in which rank 0 collects everything and sends it back, except that it
/// takes chunk `places[rank][chunk]` of a rank for its chunk `chunk`.
fn permuted(p: u32, places: &[Vec<u32>]) -> Schedule {
    let mut b = Builder::new(Collective::Allreduce, &Shape::new(p, p.into()));
    let [data, sum] = ["output", "sum"].map(|name| b.buffer(Buffer::vector(name, p)));
    for (rank, chunks) in (0..).zip(places) {
        b.step();
        for (chunk, &taken) in (0..).zip(chunks) {
            let (from, to) = (data.at(taken), sum.at(chunk));
            let written = match rank {
                0 => b.local(0, from, to),
                _ => b.put(rank, from, 0, to),
            };
            if rank > 0 {
                written.reduce();
            }
        }
    }
    b.step();
    b.local(0, sum.range(0..p), data.range(0..p));
    b.step();
    for rank in 1..p {
        b.put(0, data.range(0..p), rank, data.range(0..p));
    }
    b.finish().unwrap()
}

#[test]
fn permuted_contributions_are_refused() {
    let mut choose = random(5);
    for p in [2u32, 3, 4, 7] {
        let due: Vec<u32> = (0..p).collect();
        assert!(is_right(&permuted(p, &vec![due.clone(); p as usize])));
        for _ in 0..100 {
            let mut places = vec![due.clone(); p as usize];
            let row = &mut places[choose(p as usize)];
            let one = choose(p as usize);
            row.swap(one, (one + 1 + choose(p as usize - 1)) % p as usize);
            assert!(!is_right(&permuted(p, &places)), "{places:?}");
            // The sums of any permutation hold as many contributions as the right ones.
            for row in &mut places {
                for last in (1..row.len()).rev() {
                    row.swap(last, choose(last + 1));
                }
            }
            let right = places.iter().all(|row| *row == due);
            assert_eq!(is_right(&permuted(p, &places)), right, "{places:?}");
        }
    }
}

/// Sums of contributions with random factors: equal exactly if the multisets are.
#[test]
fn linear_combinations_are_told_apart() {
    let mut choose = random(6);
    let combined = |factors: &[u64]| {
        let (mut exact, mut quick) = (Exact::default(), Fingerprint::default());
        for (place, &factor) in (0..).zip(factors) {
            for (bit, (one, same)) in (0..62).zip(doublings(place / 3, place % 3)) {
                if factor >> bit & 1 == 1 {
                    exact.add(&one);
                    quick.add(&same);
                }
            }
        }
        (exact, quick)
    };
    let mut equal = 0;
    for _ in 0..3000 {
        let factor = |choose: &mut dyn FnMut(usize) -> usize| match choose(3) {
            0 => choose(4) as u64,
            1 => 1 << choose(59),
            _ => (1 << choose(59)) - 1,
        };
        let one: Vec<u64> = (0..6).map(|_| factor(&mut choose)).collect();
        let mut other = one.clone();
        // The number of contributions stays; where they come from changes, or does not.
        let (from, to) = (choose(6), choose(6));
        let moved = one[from].min(factor(&mut choose));
        other[from] -= moved;
        other[to] += moved;
        let (a, b) = (combined(&one), combined(&other));
        assert_eq!(a.0 == b.0, a.1 == b.1, "{one:?} {other:?}");
        assert_eq!(a.0 == b.0, one == other);
        equal += u64::from(one == other);
    }
    assert!(equal > 300 && equal < 2000, "{equal}");
}

/// A contribution once, twice, four times and so on, in both arithmetics.
fn doublings(rank: u32, chunk: u32) -> impl Iterator<Item = (Exact, Fingerprint)> {
    let first = (Exact::one(rank, chunk), Fingerprint::one(rank, chunk));
    std::iter::successors(Some(first), |(exact, quick)| {
        let (mut exact_sum, mut quick_sum) = (exact.clone(), *quick);
        exact_sum.add(exact);
        quick_sum.add(quick);
        Some((exact_sum, quick_sum))
    })
}

fn binary(number: u128) -> Vec<bool> {
    let digits = 128 - number.leading_zeros();
    let bits = (0..digits).rev().map(|digit| number >> digit & 1 == 1);
    bits.collect()
}

#[test]
fn nothing_added_is_right() {
    assert!(is_right(&weighted(&[])));
}

#[test]
fn doublings_are_refused_however_many() {
    for doublings in 0..300 {
        let mut bits = vec![false; doublings + 1];
        bits[0] = true;
        assert!(!is_right(&weighted(&bits)), "2^{doublings}");
    }
}

#[test]
fn multiples_of_a_modulus_are_refused() {
    let primes = [(1u128 << 127) - 1, (1 << 61) - 1, u128::from(u64::MAX) - 58];
    let powers = [1u128 << 32, 1 << 64, 1 << 127];
    for modulus in primes.into_iter().chain(powers) {
        for number in [modulus, 2 * (modulus / 2), modulus - 1, modulus / 3] {
            assert!(!is_right(&weighted(&binary(number))), "{number}");
        }
    }
}

#[test]
fn repetitions_that_do_not_happen_are_refused() {
    let once = weighted(&[]);
    for repeats in 1..=300 {
        let mut stated = once.clone();
        stated.spec.repeats = repeats;
        assert_eq!(verify(&stated).is_ok(), repeats == 1, "{repeats}");
    }
}

#[test]
fn repetitions_are_proved_while_they_can_be_counted() {
    let ring = (find("allreduce/ring").unwrap().build)(&Shape::new(2, 2)).unwrap();
    for times in (1..=70).chain([127, 128, 129, 255, 300]) {
        let repeated = repeat(&ring, times).unwrap();
        // Each of 2 contributions counts 2^(times - 1) times, 2^times in all.
        assert_eq!(verify(&repeated).is_ok(), times < 63, "{times}");
        let mut stated = repeated;
        stated.spec.repeats += 1;
        assert!(verify(&stated).is_err());
    }
}
