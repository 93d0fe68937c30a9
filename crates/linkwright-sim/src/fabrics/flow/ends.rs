//! When jobs end: a heap in which each job has one place, so that a new rate moves its end instead of filing another.
//!
//! Thousands of jobs may change their rate for one that ends, and ends that no longer hold would fill memory.

/// Children of a place: a wide heap is flat, and moving an end up is cheap.
const WIDTH: usize = 4;
const NOWHERE: u32 = u32::MAX;

/// The end of a job: when, the number of its arrival, and its slot.
type End = (u64, u64, u32);

/// Ends of jobs by time, then arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    heap: Vec<End>,
    /// By slot.
    places: Vec<u32>,
}

impl Ends {
    /// When the next job ends.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.heap.first().map(|end| end.0)
    }

    /// Take out the job that ends next; returns its slot.
    pub fn pop(&mut self) -> Option<u32> {
        let slot = self.heap.first()?.2;
        self.places[slot as usize] = NOWHERE;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sink(0, last);
        }
        Some(slot)
    }

    /// The job in `slot` ends then, whatever was filed before.
    pub fn file(&mut self, end: End) {
        let slot = end.2 as usize;
        if self.places.len() <= slot {
            self.places.resize(slot + 1, NOWHERE);
        }
        match self.places[slot] {
            NOWHERE => {
                self.heap.push(end);
                self.rise(self.heap.len() - 1, end);
            }
            place if end < self.heap[place as usize] => self.rise(place as usize, end),
            place => self.sink(place as usize, end),
        }
    }

    /// Put `end` where `place` is vacant, or nearer to the top.
    fn rise(&mut self, mut place: usize, end: End) {
        while place > 0 {
            let above = (place - 1) / WIDTH;
            if self.heap[above] <= end {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, end);
    }

    /// Put `end` where `place` is vacant, or farther from the top.
    fn sink(&mut self, mut place: usize, end: End) {
        loop {
            let first = WIDTH * place + 1;
            let children = first..(first + WIDTH).min(self.heap.len());
            match children.min_by_key(|&child| self.heap[child]) {
                Some(child) if self.heap[child] < end => {
                    self.put(place, self.heap[child]);
                    place = child;
                }
                _ => return self.put(place, end),
            }
        }
    }

    #[inline]
    fn put(&mut self, place: usize, end: End) {
        self.heap[place] = end;
        self.places[end.2 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_core::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_order_as_a_sorted_set() {
        let mut random = Random::new(1);
        let (mut ends, mut sorted) = (Ends::default(), BTreeSet::<End>::new());
        for order in 0..20_000 {
            if random.below(3) == 0 {
                let first = sorted.pop_first();
                assert_eq!(ends.next(), first.map(|end| end.0));
                assert_eq!(ends.pop(), first.map(|end| end.2));
                continue;
            }
            let slot = random.below(50) as u32;
            let before = sorted.iter().find(|end| end.2 == slot).copied();
            before.map(|end| sorted.remove(&end));
            let end = (random.below(1000), before.map_or(order, |end| end.1), slot);
            sorted.insert(end);
            ends.file(end);
        }
    }
}
