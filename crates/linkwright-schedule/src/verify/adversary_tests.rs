//! Schedules made to be counted wrongly: multiplicities that an arithmetic with small orders calls right.

use super::cells::Cells;
use super::contributions::{Exact, Fingerprint};
use super::semantics::replay;
use super::verify;
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
