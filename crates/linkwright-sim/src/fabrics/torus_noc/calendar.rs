//! A calendar queue: events in order of (time, sequence), without allocation in steady state.
//!
//! Time is cut into buckets of 512 ps, half a cycle: packets that share a link move at times between
//! whole cycles. A ring of 1,024 buckets holds the next half microsecond; later events wait in a heap
//! and move into the ring when it reaches them. A bucket keeps its events in the order in which they
//! came and is sorted by time only when it is read, if it needs to be at all. So equal times keep their
//! order without a number for it, and an event costs one append and one read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const BUCKET_BITS: u32 = 9;
const BUCKETS: usize = 1024;

/// An event: its time, and what happens (meaning given by the owner).
#[derive(Clone, Copy)]
struct Entry {
    at: u64,
    what: u32,
}

impl Entry {
    /// Absolute number of its bucket.
    #[inline]
    fn bucket(self) -> u64 {
        self.at >> BUCKET_BITS
    }
}

pub(super) struct Calendar {
    /// The bucket being read, sorted.
    list: Vec<Entry>,
    /// Events of that bucket that have been read.
    read: usize,
    /// Absolute number of that bucket.
    current: u64,
    /// The buckets after it, by their number modulo [`BUCKETS`]; those without events have no memory.
    ring: Box<[Vec<Entry>; BUCKETS]>,
    /// Memory for buckets; the last used comes first, because it is still in the cache.
    spare: Vec<Vec<Entry>>,
    /// Bit per bucket that holds something.
    occupied: [u64; BUCKETS / 64],
    /// Bit per word of them that is not 0.
    words: u64,
    /// Time, sequence and what.
    later: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sequence: u64,
}

impl Calendar {
    pub fn new() -> Self {
        let ring = vec![Vec::new(); BUCKETS].try_into();
        Calendar {
            list: Vec::new(),
            read: 0,
            current: 0,
            ring: ring.unwrap_or_else(|_| unreachable!("the vector has that length")),
            spare: Vec::new(),
            occupied: [0; BUCKETS / 64],
            words: 0,
            later: BinaryHeap::new(),
            sequence: 0,
        }
    }

    pub fn clear(&mut self) {
        while let Some(next) = self.next_occupied() {
            self.take(next);
        }
        self.list.clear(); // the last bucket taken, too
        self.read = 0;
        self.later.clear();
        self.current = 0;
        self.sequence = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.read == self.list.len() && self.words == 0 && self.later.is_empty()
    }

    /// Add an event. `at` is never earlier than the last popped event.
    #[inline]
    pub fn push(&mut self, at: u64, what: u32) {
        let entry = Entry { at, what };
        if entry.bucket().wrapping_sub(self.current + 1) < BUCKETS as u64 - 1 {
            self.place(entry);
        } else {
            self.push_elsewhere(entry);
        }
    }

    /// Add to the bucket being read, which also takes events before it if the ring jumped ahead; or beyond the ring.
    #[inline(never)]
    fn push_elsewhere(&mut self, entry: Entry) {
        if entry.bucket() > self.current {
            self.later
                .push(Reverse((entry.at, self.sequence, entry.what)));
            self.sequence += 1;
            return;
        }
        let mut rank = self.list.len();
        while rank > self.read && self.list[rank - 1].at > entry.at {
            rank -= 1;
        }
        self.list.insert(rank, entry);
    }

    #[inline]
    fn place(&mut self, entry: Entry) {
        let slot = entry.bucket() as usize % BUCKETS;
        if self.ring[slot].capacity() == 0 {
            self.open(slot);
        }
        self.ring[slot].push(entry);
    }

    /// The first event of a bucket comes.
    #[inline(never)]
    fn open(&mut self, slot: usize) {
        let spare = self.spare.pop();
        self.ring[slot] = spare.unwrap_or_else(|| Vec::with_capacity(16));
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    /// Make the bucket with that absolute number, all of which the ring holds, the one being read.
    fn take(&mut self, bucket: u64) {
        let slot = bucket as usize % BUCKETS;
        let mut read = std::mem::replace(&mut self.list, std::mem::take(&mut self.ring[slot]));
        read.clear();
        self.spare.push(read);
        let word = &mut self.occupied[slot / 64];
        *word &= !(1 << (slot % 64));
        self.words &= !(u64::from(*word == 0) << (slot / 64));
        (self.current, self.read) = (bucket, 0);
    }

    /// Time of the next event.
    #[inline]
    pub fn peek(&mut self) -> Option<u64> {
        if self.read == self.list.len() && !self.turn() {
            return None;
        }
        Some(self.list[self.read].at)
    }

    /// Remove and return the next event, if it is at `at`.
    #[inline]
    pub fn pop_at(&mut self, at: u64) -> Option<u32> {
        let entry = self.list.get(self.read)?;
        if entry.at != at {
            return None;
        }
        self.read += 1;
        Some(entry.what)
    }

    /// Go to the next bucket that holds something, if there is one; this one has been read.
    fn turn(&mut self) -> bool {
        let near = self.next_occupied();
        let far = self.later.peek().map(|first| first.0 .0 >> BUCKET_BITS);
        let Some(next) = near.into_iter().chain(far).min() else {
            return false;
        };
        // Events that waited for the ring come before events placed directly from now on.
        while let Some(&Reverse((at, _, what))) = self.later.peek() {
            let entry = Entry { at, what };
            if entry.bucket() >= next + BUCKETS as u64 {
                break;
            }
            self.later.pop();
            self.place(entry);
        }
        self.take(next);
        if !self.list.is_sorted_by_key(|entry| entry.at) {
            self.list.sort_by_key(|entry| entry.at);
        }
        true
    }

    /// Absolute number of the first bucket after the current one that holds something.
    #[inline]
    fn next_occupied(&self) -> Option<u64> {
        let start = (self.current as usize + 1) % BUCKETS;
        let (word, bit) = (start / 64, start % 64);
        let here = self.occupied[word] & u64::MAX << bit;
        let slot = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            // The next word that is not 0, around the ring to this one, whose bits lie before `bit`.
            let after = self.words.rotate_right(word as u32 + 1);
            if after == 0 {
                return None;
            }
            let word = (word + 1 + after.trailing_zeros() as usize) % self.occupied.len();
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        let distance = (slot + BUCKETS - start) % BUCKETS;
        Some(self.current + 1 + distance as u64)
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
