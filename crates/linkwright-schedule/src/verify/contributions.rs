//! What a chunk is made of: exact multisets of contributions, or fingerprints of them.
//!
//! Every contribution c, which is one chunk of one rank's initial data, gets a random number f(c)
//! below the prime Q = 2^64 - 59. The fingerprint of a chunk in which c is contained m(c) times is
//!
//! ```text
//!   ( N, F )     N = sum of m(c), counted exactly;  F = sum of m(c) f(c)  mod Q
//! ```
//!
//! f(c) is the product of four random numbers: two for the high and the low digits of the rank, two
//! for those of the chunk. Their tables are SipHash-2-4 under the [`proof_key`] of this process, which
//! comes from the operating system's randomness.
//!
//! A chunk whose count reaches 2^63 equals no other. Where two fingerprints are equal, every m(c) is
//! therefore below 2^63 in both, and if their multisets differ, some difference m(c) - m'(c) is not 0
//! and smaller than Q, so it is not 0 modulo Q. The difference of the sums is then a polynomial of
//! degree 4 in the tables that is not 0: every contribution has a monomial of its own. By the lemma
//! of Schwartz and Zippel, random tables make it 0 with probability 4/Q at most, less than 10^-18. No
//! doubling, repetition or other structure of a schedule can do better.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
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

/// Digits of a rank below 2^22 and of a chunk below 2^24: two each.
const RANK_BITS: u32 = 11;
const CHUNK_BITS: u32 = 12;

/// The random numbers of this process, for the low and the high digit.
struct Tables {
    rank: [Vec<u64>; 2],
    chunk: [Vec<u64>; 2],
}

/// The 128 random bits from which the numbers of this process follow: those of the operating system, or of the
/// environment variable `LINKWRIGHT_PROOF_KEY`, which repeats the proofs of another process.
///
/// # Panics
/// If that variable is not a hexadecimal number of 128 bits.
pub fn proof_key() -> u128 {
    static KEY: OnceLock<u128> = OnceLock::new();
    *KEY.get_or_init(|| match std::env::var("LINKWRIGHT_PROOF_KEY") {
        Ok(digits) => u128::from_str_radix(&digits, 16).expect(
            "LINKWRIGHT_PROOF_KEY is no hexadecimal number of 128 bits; correct or unset it",
        ),
        // The keys of a `RandomState` are the operating system's; two of its hashes hide them.
        Err(_) => {
            let drawn = RandomState::new();
            u128::from(drawn.hash_one(0)) << 64 | u128::from(drawn.hash_one(1))
        }
    })
}

#[expect(
    deprecated,
    reason = "the only keyed hash of the standard library that is the same in every version"
)]
fn hash(key: u128, of: (u32, u32)) -> u64 {
    let mut hasher = std::hash::SipHasher::new_with_keys((key >> 64) as u64, key as u64);
    of.hash(&mut hasher);
    hasher.finish()
}

impl Tables {
    fn get() -> &'static Self {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES.get_or_init(|| Self::of(proof_key()))
    }

    fn of(key: u128) -> Self {
        let table = |which: u32, bits: u32| {
            let numbers = (0..1u32 << bits).map(|digit| hash(key, (which, digit)) % PRIME);
            numbers.collect()
        };
        Tables {
            rank: [table(0, RANK_BITS), table(1, RANK_BITS)],
            chunk: [table(2, CHUNK_BITS), table(3, CHUNK_BITS)],
        }
    }

    #[inline]
    fn number(&self, rank: u32, chunk: u32) -> u64 {
        let digits = |table: &[Vec<u64>; 2], value: u32, bits: u32| {
            let (low, high) = (value & ((1 << bits) - 1), value >> bits);
            times(table[0][low as usize], table[1][high as usize])
        };
        times(
            digits(&self.rank, rank, RANK_BITS),
            digits(&self.chunk, chunk, CHUNK_BITS),
        )
    }
}

/// `a * b` modulo the prime: 2^64 is 59.
#[inline]
fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = u128::from(product as u64) + 59 * (product >> 64);
    let rest = u128::from(folded as u64) + 59 * (folded >> 64);
    let prime = u128::from(PRIME);
    (if rest >= prime { rest - prime } else { rest }) as u64
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
            sum: Tables::get().number(rank, chunk),
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
        let tables = Tables::get();
        let sum = (0..ranks).fold(0, |sum, rank| plus(sum, tables.number(rank, chunk)));
        Fingerprint {
            count: u64::from(ranks).saturating_mul(often),
            sum: times(sum, often % PRIME),
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
        // (Q - 1)^2 = 1, (Q - 1) m = -m, 2^32 * 2^32 = 59.
        assert_eq!(times(PRIME - 1, PRIME - 1), 1);
        assert_eq!(times(PRIME - 1, 7), PRIME - 7);
        assert_eq!(times(1 << 32, 1 << 32), 59);
        assert_eq!(times(0, PRIME - 1), 0);
    }

    #[test]
    fn a_key_gives_the_same_numbers_and_another_gives_others() {
        let number = |key| Tables::of(key).number(5000, 9000);
        assert_eq!(number(7), number(7));
        assert_ne!(number(7), number(8));
        assert_ne!(number(7), number(7 << 64));
        assert_eq!(proof_key(), proof_key());
    }

    #[test]
    fn multisets_count() {
        let mut sum = Exact::one(3, 0);
        sum.add(&Exact::one(1, 0));
        sum.add(&Exact::one(3, 0));
        assert_eq!(*sum.0, [(1, 0, 1), (3, 0, 2)]);
    }
}
