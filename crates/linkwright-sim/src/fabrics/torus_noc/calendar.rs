//! A calendar queue: events in order of (time, sequence), without allocation in steady state.
//!
//! Time is cut into buckets of 1,024 ps, about one cycle. A ring of 512 buckets holds the next
//! half microsecond; later events wait in a heap and move into the ring when it reaches them. Only
//! the bucket being read is kept sorted (most come in order, for times are whole cycles), so an
//! event costs one append, its share of a short sort and one read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const BUCKET_BITS: u32 = 10;
const BUCKETS: usize = 512;

/// An event: when, in which order among equals, and what (meaning given by the owner), in one
/// number from the highest bits to the lowest, so that two are compared at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    #[inline]
    fn new(at: u64, sequence: u32, what: u32) -> Self {
        Entry(u128::from(at) << 64 | u128::from(sequence) << 32 | u128::from(what))
    }

    #[inline]
    fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    fn what(self) -> u32 {
        self.0 as u32
    }

    /// Absolute number of its bucket.
    #[inline]
    fn bucket(self) -> u64 {
        self.at() >> BUCKET_BITS
    }
}

pub(super) struct Calendar {
    /// The bucket being read, sorted.
    list: Vec<Entry>,
    /// Events of that bucket that have been read.
    read: usize,
    /// Absolute number of that bucket.
    current: u64,
    /// The buckets after it, by their number modulo [`BUCKETS`].
    ring: Box<[Vec<Entry>; BUCKETS]>,
    occupied: [u64; BUCKETS / 64],
    later: BinaryHeap<Reverse<Entry>>,
    sequence: u32,
}

impl Calendar {
    pub fn new() -> Self {
        Calendar {
            list: Vec::new(),
            read: 0,
            current: 0,
            ring: Box::new(std::array::from_fn(|_| Vec::new())),
            occupied: [0; BUCKETS / 64],
            later: BinaryHeap::new(),
            sequence: 0,
        }
    }

    pub fn clear(&mut self) {
        self.list.clear();
        self.read = 0;
        self.current = 0;
        self.ring.iter_mut().for_each(Vec::clear);
        self.occupied = [0; BUCKETS / 64];
        self.later.clear();
        self.sequence = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.read == self.list.len() && self.occupied == [0; BUCKETS / 64] && self.later.is_empty()
    }

    /// Add an event. `at` is never earlier than the last popped event.
    #[inline]
    pub fn push(&mut self, at: u64, what: u32) {
        let entry = Entry::new(at, self.sequence, what);
        self.sequence = self.sequence.wrapping_add(1);
        // 0 for the bucket being read, and what lies in front of it where the ring jumped ahead.
        let ahead = entry.bucket().saturating_sub(self.current);
        if ahead == 0 {
            self.insert(entry);
        } else if ahead < BUCKETS as u64 {
            self.place(entry);
        } else {
            self.later.push(Reverse(entry));
        }
    }

    /// Add to the bucket being read.
    fn insert(&mut self, entry: Entry) {
        let mut rank = self.list.len();
        while rank > self.read && self.list[rank - 1] > entry {
            rank -= 1;
        }
        self.list.insert(rank, entry);
    }

    #[inline]
    fn place(&mut self, entry: Entry) {
        let slot = entry.bucket() as usize % BUCKETS;
        self.ring[slot].push(entry);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Time of the next event.
    #[inline]
    pub fn peek(&mut self) -> Option<u64> {
        if self.read == self.list.len() && !self.turn() {
            return None;
        }
        Some(self.list[self.read].at())
    }

    /// Remove and return the next event, if it is at `at`.
    #[inline]
    pub fn pop_at(&mut self, at: u64) -> Option<u32> {
        let entry = *self.list.get(self.read)?;
        if entry.at() != at {
            return None;
        }
        self.read += 1;
        Some(entry.what())
    }

    /// Go to the next bucket that holds something, if there is one; this one has been read.
    fn turn(&mut self) -> bool {
        let near = self.next_occupied();
        let far = self.later.peek().map(|Reverse(entry)| entry.bucket());
        let Some(next) = near.into_iter().chain(far).min() else {
            return false;
        };
        self.current = next;
        while let Some(&Reverse(entry)) = self.later.peek() {
            if entry.bucket() >= next + BUCKETS as u64 {
                break;
            }
            self.later.pop();
            self.place(entry);
        }
        let slot = next as usize % BUCKETS;
        self.list.clear();
        self.read = 0;
        std::mem::swap(&mut self.list, &mut self.ring[slot]);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if !self.list.is_sorted() {
            self.list.sort_unstable();
        }
        true
    }

    /// Absolute number of the first bucket after the current one that holds something.
    #[inline]
    fn next_occupied(&self) -> Option<u64> {
        let words = self.occupied.len();
        let start = (self.current as usize + 1) % BUCKETS;
        let (first_word, first_bit) = (start / 64, start % 64);
        for step in 0..=words {
            let index = (first_word + step) % words;
            let mut word = self.occupied[index];
            if step == 0 {
                word &= u64::MAX << first_bit;
            } else if step == words {
                word &= !(u64::MAX << first_bit);
            }
            if word != 0 {
                let slot = index * 64 + word.trailing_zeros() as usize;
                let distance = (slot + BUCKETS - start) % BUCKETS;
                return Some(self.current + 1 + distance as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_by_time_then_sequence_over_any_distance() {
        let mut calendar = Calendar::new();
        // A small linear congruential generator: near, far and equal times mixed.
        let mut state = 1u64;
        let mut expected = Vec::new();
        for what in 0..5000u32 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let at = (state >> 40) % 30_000_000 / 700 * 700;
            calendar.push(at, what);
            expected.push((at, what));
        }
        expected.sort();
        let mut popped = Vec::new();
        while let Some(at) = calendar.peek() {
            while let Some(what) = calendar.pop_at(at) {
                popped.push((at, what));
            }
        }
        assert_eq!(popped, expected);
    }

    #[test]
    fn accepts_events_at_the_present_instant_while_reading() {
        let mut calendar = Calendar::new();
        calendar.push(5_000, 0);
        calendar.push(5_000, 1);
        assert_eq!(calendar.peek(), Some(5_000));
        assert_eq!(calendar.pop_at(5_000), Some(0));
        calendar.push(5_000, 2);
        calendar.push(5_001, 3);
        let rest: Vec<u32> = std::iter::from_fn(|| calendar.pop_at(5_000)).collect();
        assert_eq!(rest, [1, 2]);
        assert_eq!(calendar.peek(), Some(5_001));
        assert_eq!(calendar.pop_at(5_001), Some(3));
        assert_eq!(calendar.peek(), None);
    }
}
