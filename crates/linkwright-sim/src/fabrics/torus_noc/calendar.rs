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

/// An event: when, in which order among equals, and what (meaning given by the owner).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub at: u64,
    sequence: u32,
    pub what: u32,
}

pub(super) struct Calendar {
    ring: Vec<Vec<Entry>>,
    occupied: [u64; BUCKETS / 64],
    /// Absolute number of the bucket being read, which is sorted.
    current: u64,
    /// Events of that bucket that have been read.
    read: usize,
    later: BinaryHeap<Reverse<Entry>>,
    sequence: u32,
    len: usize,
}

impl Calendar {
    pub fn new() -> Self {
        Calendar {
            ring: vec![Vec::new(); BUCKETS],
            occupied: [0; BUCKETS / 64],
            current: 0,
            read: 0,
            later: BinaryHeap::new(),
            sequence: 0,
            len: 0,
        }
    }

    pub fn clear(&mut self) {
        self.ring.iter_mut().for_each(Vec::clear);
        self.occupied = [0; BUCKETS / 64];
        self.current = 0;
        self.read = 0;
        self.later.clear();
        self.sequence = 0;
        self.len = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Add an event. `at` is never earlier than the last popped event.
    #[inline]
    pub fn push(&mut self, at: u64, what: u32) {
        let entry = Entry {
            at,
            sequence: self.sequence,
            what,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.len += 1;
        let bucket = at >> BUCKET_BITS;
        if bucket >= self.current + BUCKETS as u64 {
            self.later.push(Reverse(entry));
        } else if bucket > self.current {
            self.place(bucket, entry);
        } else {
            let list = &mut self.ring[self.current as usize % BUCKETS];
            let mut rank = list.len();
            while rank > self.read && list[rank - 1] > entry {
                rank -= 1;
            }
            list.insert(rank, entry);
        }
    }

    #[inline]
    fn place(&mut self, bucket: u64, entry: Entry) {
        let slot = bucket as usize % BUCKETS;
        self.ring[slot].push(entry);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Time of the next event.
    #[inline]
    pub fn peek(&mut self) -> Option<u64> {
        if let Some(entry) = self.ring[self.current as usize % BUCKETS].get(self.read) {
            return Some(entry.at);
        }
        if self.len == 0 {
            return None;
        }
        self.turn();
        self.ring[self.current as usize % BUCKETS]
            .first()
            .map(|entry| entry.at)
    }

    /// Remove and return the next event, if it is at `at`.
    #[inline]
    pub fn pop_at(&mut self, at: u64) -> Option<u32> {
        let entry = self.ring[self.current as usize % BUCKETS].get(self.read)?;
        if entry.at != at {
            return None;
        }
        self.read += 1;
        self.len -= 1;
        Some(entry.what)
    }

    /// Go to the next bucket that holds something. There is one: `len > 0` and this one is empty.
    fn turn(&mut self) {
        let slot = self.current as usize % BUCKETS;
        self.ring[slot].clear();
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.read = 0;
        let next_in_ring = self.next_occupied();
        let next_later = self
            .later
            .peek()
            .map(|Reverse(entry)| entry.at >> BUCKET_BITS);
        self.current = match (next_in_ring, next_later) {
            (Some(near), Some(far)) => near.min(far),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => unreachable!("calendar with length {} is empty", self.len),
        };
        let end = self.current + BUCKETS as u64;
        while let Some(&Reverse(entry)) = self.later.peek() {
            let bucket = entry.at >> BUCKET_BITS;
            if bucket >= end {
                break;
            }
            self.later.pop();
            self.place(bucket, entry);
        }
        let list = &mut self.ring[self.current as usize % BUCKETS];
        if !list.is_sorted() {
            list.sort_unstable();
        }
    }

    /// Absolute number of the first bucket after the current one that holds something.
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
