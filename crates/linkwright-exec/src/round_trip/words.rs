//! The content of requests and replies, which lets every byte be checked.
//!
//! Word k of a message made from `seed` is `seed + k G` modulo 2^64, G odd. A seed per trip makes all
//! words fresh; storing and summing them vectorises, so in place they cost what stores and loads cost.
//! The reply of a checked trip is made from a digest of the whole request in which every word counts by
//! its place; so a right reply proves both directions.

use super::mapping::Words;

/// 2^64 over the golden ratio: neighbouring words differ in many bits.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Word `k` of the message made from `seed`.
pub(super) fn word(seed: u64, k: usize) -> u64 {
    seed.wrapping_add((k as u64).wrapping_mul(STEP))
}

/// Stores the message made from `seed`.
#[inline]
pub(super) fn compose(message: Words, seed: u64) {
    // SAFETY: the words exist and only this side writes them until it has handed them over.
    let words = unsafe { std::slice::from_raw_parts_mut(message.start, message.len) };
    let mut next = seed;
    for word in words {
        *word = next;
        next = next.wrapping_add(STEP);
    }
}

/// Loads every word; their sum.
#[inline]
pub(super) fn sum(message: Words) -> u64 {
    as_slice(&message)
        .iter()
        .fold(0, |sum, &word| sum.wrapping_add(word))
}

/// A number that depends on every word and on its place.
pub(super) fn digest(message: Words) -> u64 {
    digested(as_slice(&message).iter().copied())
}

/// The digest of the message made from `seed`, without having it.
pub(super) fn digest_of(seed: u64, len: usize) -> u64 {
    digested((0..len).map(|k| word(seed, k)))
}

fn digested(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0, |digest, word| {
        (digest.rotate_left(7) ^ word).wrapping_mul(STEP)
    })
}

/// The first word that is not that of `seed`, with what it is.
pub(super) fn first_wrong(message: Words, seed: u64) -> Option<(usize, u64)> {
    let wrong = |(k, &got): (usize, &u64)| (got != word(seed, k)).then_some((k, got));
    as_slice(&message).iter().enumerate().find_map(wrong)
}

fn as_slice(message: &Words) -> &[u64] {
    // SAFETY: the words exist; the other side does not write them until this side has answered.
    unsafe { std::slice::from_raw_parts(message.start, message.len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_sees_every_word_and_its_place() {
        let mut memory: Vec<u64> = vec![0; 9];
        let message = Words {
            start: memory.as_mut_ptr(),
            len: memory.len(),
        };
        compose(message, 5);
        assert_eq!(digest(message), digest_of(5, 9));
        assert_eq!(first_wrong(message, 5), None);
        for k in 0..8 {
            memory.swap(k, k + 1);
            assert_ne!(digest(message), digest_of(5, 9), "swap at {k}");
            memory.swap(k, k + 1);
        }
        memory[8] ^= 1 << 63;
        assert_ne!(digest(message), digest_of(5, 9));
        assert_eq!(first_wrong(message, 5), Some((8, memory[8])));
    }
}
