//! What a chunk is made of: exact multisets of contributions, or fingerprints of them.
//!
//! Every contribution c, which is one chunk of one rank's initial data, gets a random number f(c)
//! below the prime Q = 2^64 - 59. The fingerprint of a chunk in which c is contained m(c) times is
//!
//! ```text
//!   ( N, F )     N = sum of m(c), counted exactly;  F = sum of m(c) f(c)  mod Q
//! ```
//!
//! A chunk whose count reaches 2^63 equals no other. Where two fingerprints are equal, every m(c) is
//! therefore below 2^63 in both, and if their multisets differ, some difference m(c) - m'(c) is not 0
//! and smaller than Q. It has an inverse modulo Q: whatever the other f are, exactly one of the Q
//! values of that f(c) makes the sums equal. So two different multisets have equal fingerprints with
//! probability 1/Q, less than 10^-19. No doubling, repetition or other structure of a schedule can
//! do better, because each process draws f from the operating system's randomness (SipHash with a
//! random key stands for a random function).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::OnceLock;

/// Contents of a chunk; the default is nothing at all.
pub(super) trait Value: Clone + Default + PartialEq {
    /// One contribution: chunk `chunk` of the initial data of `rank`.
    fn one(rank: u32, chunk: u32) -> Self;
    /// Whether no data are there.
    fn is_nothing(&self) -> bool;
    /// Whether there is more of a contribution than can be counted, so that this equals nothing else.
    fn is_beyond_counting(&self) -> bool;
    /// Combine with `other`.
    fn add(&mut self, other: &Self);
    /// Contribution `chunk` of each of `ranks` ranks, `often` times.
    fn all(ranks: u32, chunk: u32, often: u64) -> Self;
}

/// The largest prime below 2^64.
const PRIME: u64 = u64::MAX - 58;
/// From here on contributions are not counted; far enough below the prime that no count is a multiple of it.
pub(super) const UNCOUNTED: u64 = 1 << 63;

/// Exact number of contributions, and the sum of their random numbers modulo 2^64 - 59.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// From `UNCOUNTED` on only known to be too many.
    count: u64,
    sum: u64,
}

/// The random function of this process.
fn random(rank: u32, chunk: u32) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    let key = KEY.get_or_init(RandomState::new);
    key.hash_one(u64::from(rank) << 32 | u64::from(chunk)) % PRIME
}

/// `a + b` modulo the prime; both are below it.
#[inline]
fn plus(a: u64, b: u64) -> u64 {
    let (sum, over) = a.overflowing_add(b);
    match over || sum >= PRIME {
        true => sum.wrapping_sub(PRIME),
        false => sum,
    }
}

impl Value for Fingerprint {
    fn one(rank: u32, chunk: u32) -> Self {
        Fingerprint {
            count: 1,
            sum: random(rank, chunk),
        }
    }

    #[inline]
    fn is_nothing(&self) -> bool {
        self.count == 0
    }

    #[inline]
    fn is_beyond_counting(&self) -> bool {
        self.count >= UNCOUNTED
    }

    #[inline]
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = plus(self.sum, other.sum);
    }

    fn all(ranks: u32, chunk: u32, often: u64) -> Self {
        let sum = (0..ranks).fold(0, |sum, rank| plus(sum, random(rank, chunk)));
        let product = u128::from(sum) * u128::from(often);
        Fingerprint {
            count: u64::from(ranks).saturating_mul(often),
            sum: (product % u128::from(PRIME)) as u64,
        }
    }
}

/// A multiset of contributions: (rank, chunk, how often), sorted. Chunks with the same contents share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Exact(pub Rc<Vec<(u32, u32, u64)>>);

impl Value for Exact {
    fn one(rank: u32, chunk: u32) -> Self {
        Exact(Rc::new(vec![(rank, chunk, 1)]))
    }

    fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    fn is_beyond_counting(&self) -> bool {
        self.0.iter().any(|one| one.2 >= UNCOUNTED)
    }

    fn add(&mut self, other: &Self) {
        let (short, mut rest) = match self.0.len() < other.0.len() {
            true => (&self.0[..], &other.0[..]),
            false => (&other.0[..], &self.0[..]),
        };
        let mut sum = Vec::with_capacity(short.len() + rest.len());
        for &(rank, chunk, often) in short {
            let lower = rest.partition_point(|one| (one.0, one.1) < (rank, chunk));
            sum.extend_from_slice(&rest[..lower]);
            rest = &rest[lower..];
            let same = rest.first().filter(|one| (one.0, one.1) == (rank, chunk));
            let there = same.map_or(0, |one| one.2);
            sum.push((rank, chunk, often.saturating_add(there)));
            rest = &rest[usize::from(same.is_some())..];
        }
        sum.extend_from_slice(rest);
        self.0 = Rc::new(sum);
    }

    fn all(ranks: u32, chunk: u32, often: u64) -> Self {
        Exact(Rc::new(
            (0..ranks).map(|rank| (rank, chunk, often)).collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_do_not_depend_on_the_order_and_count() {
        let [a, b] = [Fingerprint::one(1, 2), Fingerprint::one(2, 1)];
        let (mut ab, mut ba) = (a, b);
        ab.add(&b);
        ba.add(&a);
        assert_eq!(ab, ba);
        let mut twice = ab;
        twice.add(&b);
        assert_ne!(twice, ab);
    }

    /// All of `ranks` contributions, one after the other, `often` times.
    fn added<V: Value>(ranks: u32, often: u64) -> V {
        let mut sum = V::default();
        for _ in 0..often {
            (0..ranks).for_each(|rank| sum.add(&V::one(rank, 9)));
        }
        sum
    }

    #[test]
    fn all_is_repeated_addition() {
        for (ranks, often) in [(1, 1), (7, 1), (3, 37)] {
            assert!(Fingerprint::all(ranks, 9, often) == added(ranks, often));
            assert!(Exact::all(ranks, 9, often) == added(ranks, often));
        }
    }

    #[test]
    fn doubling_never_gives_nothing() {
        let mut doubled = Fingerprint::one(7, 9);
        for _ in 0..200 {
            let same = doubled;
            doubled.add(&same);
            assert!(!doubled.is_nothing());
        }
        assert!(doubled.is_beyond_counting());
    }

    #[test]
    fn sums_are_modulo_the_prime() {
        assert_eq!(plus(PRIME - 1, 1), 0);
        assert_eq!(plus(PRIME - 1, PRIME - 1), PRIME - 2);
        assert_eq!(plus(3, 4), 7);
    }

    #[test]
    fn multisets_count() {
        let mut sum = Exact::one(3, 0);
        sum.add(&Exact::one(1, 0));
        sum.add(&Exact::one(3, 0));
        assert_eq!(*sum.0, [(1, 0, 1), (3, 0, 2)]);
    }
}
