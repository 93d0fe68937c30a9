//! What a chunk is made of: exact multisets of contributions, or fingerprints of them.
//!
//! Every contribution c, which is one chunk of one rank's initial data, gets a random number f(c)
//! below the prime P = 2^127 - 1. The fingerprint of a chunk combined from the contributions C is
//!
//! ```text
//!   F(C) = sum of f(c) over C   mod P
//! ```
//!
//! A wrong multiset has the right fingerprint with probability 1/P, about 10^-38. A prime, and not
//! a power of two, because a repeated allreduce counts contributions p^n times, which modulo a
//! power of two may be 0 times. The numbers come from a fixed hash, so every run decides alike.

use std::rc::Rc;

/// Contents of a chunk; the default is nothing at all.
pub(super) trait Value: Clone + Default + PartialEq {
    /// One contribution: chunk `chunk` of the initial data of `rank`.
    fn one(rank: u32, chunk: u32) -> Self;
    /// Whether no data are there.
    fn is_nothing(&self) -> bool;
    /// Combine with `other`.
    fn add(&mut self, other: &Self);
    /// Count every contribution `factor` times as often.
    fn scale(&mut self, factor: u32);
}

const PRIME: u128 = (1 << 127) - 1;

/// Sum of random numbers modulo 2^127 - 1; 0 is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint(u128);

/// Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Value for Fingerprint {
    #[inline]
    fn one(rank: u32, chunk: u32) -> Self {
        let key = u64::from(rank) << 32 | u64::from(chunk);
        let low = mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let high = mix(low ^ key.wrapping_mul(0xd1b5_4a32_d192_ed03));
        let number = (u128::from(high) << 64 | u128::from(low)) & PRIME;
        Fingerprint(number.clamp(1, PRIME - 1))
    }

    #[inline]
    fn is_nothing(&self) -> bool {
        self.0 == 0
    }

    #[inline]
    fn add(&mut self, other: &Self) {
        // Both are below P, so the sum fits, and one subtraction reduces it.
        let sum = self.0 + other.0;
        self.0 = if sum >= PRIME { sum - PRIME } else { sum };
    }

    fn scale(&mut self, factor: u32) {
        let (mut doubled, mut left) = (*self, factor);
        *self = Fingerprint(0);
        while left > 0 {
            if left & 1 == 1 {
                self.add(&doubled);
            }
            let same = doubled;
            doubled.add(&same);
            left >>= 1;
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

    fn scale(&mut self, factor: u32) {
        for (_, _, often) in Rc::make_mut(&mut self.0) {
            *often = often.saturating_mul(u64::from(factor));
        }
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

    #[test]
    fn scaling_is_repeated_addition() {
        let one = Fingerprint::one(7, 9);
        let mut sum = Fingerprint::default();
        for _ in 0..37 {
            sum.add(&one);
        }
        let mut scaled = one;
        scaled.scale(37);
        assert_eq!(scaled, sum);
        // Never nothing, however often a power of two multiplies it.
        (0..200).for_each(|_| scaled.scale(64));
        assert!(!scaled.is_nothing());
    }

    #[test]
    fn multisets_count() {
        let mut sum = Exact::one(3, 0);
        sum.add(&Exact::one(1, 0));
        sum.add(&Exact::one(3, 0));
        assert_eq!(*sum.0, [(1, 0, 1), (3, 0, 2)]);
    }
}
