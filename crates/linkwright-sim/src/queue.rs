//! The event queue: a monotone radix heap, first in first out within one instant.
//!
//! Simulated time never runs backwards, so nothing is ever pushed before the last event popped.
//! That admits a heap without comparisons: an event lies in the bucket of the highest bit in which
//! its time differs from the last popped time.
//!
//! ```text
//!   last = 0b0101_1000        bucket 0: the same instant        (popped in order of arrival)
//!   event  0b0101_1011   ->   bucket 2: first differs in bit 1
//!   event  0b0111_0000   ->   bucket 6: first differs in bit 5
//! ```
//!
//! When bucket 0 is empty the lowest occupied bucket is emptied into those below it, in order, so
//! equal times keep their order of arrival: ties break by (time, sequence) without a sequence
//! number. An event moves at most once per bit. A bucket whose events are all of one instant, the
//! usual case of a schedule in step, becomes bucket 0 as it is, and is popped as a plain array.
//!
//! Source: Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem"
//! (JACM 1990).

use linkwright_core::TimePs;

/// Events of type `T` by time, first in first out where times are equal.
#[derive(Clone, Debug)]
pub struct TimeQueue<T> {
    /// Time of the last event popped.
    last: u64,
    /// Next unread event of bucket 0.
    front: usize,
    buckets: Vec<Bucket<T>>,
    /// Bit `i` is set where bucket `i + 1` holds something.
    occupied: u64,
    /// Earliest time beyond bucket 0; exact whenever `occupied` is not 0.
    earliest: u64,
}

#[derive(Clone, Debug)]
struct Bucket<T> {
    events: Vec<(u64, T)>,
    earliest: u64,
    latest: u64,
}

impl<T> Bucket<T> {
    const EMPTY: Bucket<T> = Bucket {
        events: Vec::new(),
        earliest: u64::MAX,
        latest: 0,
    };

    #[inline]
    fn push(&mut self, at: u64, event: T) {
        self.earliest = self.earliest.min(at);
        self.latest = self.latest.max(at);
        self.events.push((at, event));
    }

    fn clear(&mut self) {
        self.events.clear();
        (self.earliest, self.latest) = (u64::MAX, 0);
    }
}

impl<T: Copy> Default for TimeQueue<T> {
    fn default() -> Self {
        TimeQueue {
            last: 0,
            front: 0,
            buckets: (0..65).map(|_| Bucket::EMPTY).collect(),
            occupied: 0,
            earliest: u64::MAX,
        }
    }
}

impl<T: Copy> TimeQueue<T> {
    /// Forget everything and start again at time zero; keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.iter_mut().for_each(Bucket::clear);
        (self.last, self.front) = (0, 0);
        (self.occupied, self.earliest) = (0, u64::MAX);
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.occupied == 0 && self.front == self.buckets[0].events.len()
    }

    /// Add an event.
    ///
    /// # Panics
    /// In debug builds, when `at` lies before the last event popped.
    #[inline]
    pub fn push(&mut self, at: TimePs, event: T) {
        debug_assert!(at.0 >= self.last, "an event before the present");
        if at.0 == self.last {
            return self.buckets[0].events.push((at.0, event));
        }
        self.earliest = self.earliest.min(at.0);
        self.put(at.0, event);
    }

    /// Time of the next event.
    #[inline]
    pub fn next(&self) -> Option<TimePs> {
        if self.front < self.buckets[0].events.len() {
            return Some(TimePs(self.last));
        }
        (self.occupied != 0).then_some(TimePs(self.earliest))
    }

    /// Take the next event if it lies at `at`, the time that [`TimeQueue::next`] gave.
    #[inline]
    pub fn pop_at(&mut self, at: TimePs) -> Option<T> {
        if self.last != at.0 || self.front == self.buckets[0].events.len() {
            if self.next() != Some(at) {
                return None;
            }
            self.refill();
        }
        let (_, event) = self.buckets[0].events[self.front];
        self.front += 1;
        Some(event)
    }

    /// Move the earliest events to bucket 0.
    fn refill(&mut self) {
        self.buckets[0].events.clear();
        self.front = 0;
        self.last = self.earliest;
        let lowest = self.occupied.trailing_zeros() as usize + 1;
        self.occupied &= self.occupied - 1;
        if self.buckets[lowest].earliest == self.buckets[lowest].latest {
            self.buckets.swap(0, lowest);
        } else {
            let mut moving = std::mem::replace(&mut self.buckets[lowest], Bucket::EMPTY);
            for &(at, event) in &moving.events {
                match at == self.last {
                    true => self.buckets[0].events.push((at, event)),
                    false => self.put(at, event),
                }
            }
            moving.events.clear();
            self.buckets[lowest].events = moving.events;
        }
        (self.buckets[lowest].earliest, self.buckets[lowest].latest) = (u64::MAX, 0);
        self.earliest = match self.occupied {
            0 => u64::MAX,
            bits => self.buckets[bits.trailing_zeros() as usize + 1].earliest,
        };
    }

    /// Add an event beyond bucket 0.
    #[inline]
    fn put(&mut self, at: u64, event: T) {
        let bit = 63 - (at ^ self.last).leading_zeros();
        self.occupied |= 1 << bit;
        self.buckets[bit as usize + 1].push(at, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = TimeQueue::default();
        for i in 0..5 {
            queue.push(TimePs(7), i);
            queue.push(TimePs(3), 10 + i);
        }
        let mut seen = Vec::new();
        while let Some(at) = queue.next() {
            seen.push((at.0, queue.pop_at(at).unwrap()));
        }
        let expected = (10..15).map(|i| (3, i)).chain((0..5).map(|i| (7, i)));
        assert_eq!(seen, expected.collect::<Vec<_>>());
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_set(delays in proptest::collection::vec((0u64..5000, 0u8..3), 1..400)) {
            // Pushes relative to the present, pops in between: the order must be that of (time, sequence).
            let mut queue = TimeQueue::default();
            let mut model = BTreeSet::new();
            let mut now = 0;
            for (sequence, (delay, pops)) in delays.into_iter().enumerate() {
                queue.push(TimePs(now + delay), sequence);
                model.insert((now + delay, sequence));
                for _ in 0..pops {
                    let expected = model.pop_first();
                    prop_assert_eq!(queue.next().map(|t| t.0), expected.map(|e| e.0));
                    let Some((at, event)) = expected else { break };
                    prop_assert_eq!(queue.pop_at(TimePs(at + 1)), None);
                    prop_assert_eq!(queue.pop_at(TimePs(at)), Some(event));
                    now = at;
                }
            }
        }
    }
}
