//! Draws for random patterns: unbiased numbers and shuffles from the project's generator.
//!
//! Kept here rather than taken from a library so that a new version of the library never changes a
//! published pattern. See [`linkwright_core::random`] for the generator.

use linkwright_core::random;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(random::Random);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Random(random::Random::new(seed))
    }

    /// A number below `end`, all equally likely; `end` is at least 1.
    pub fn below(&mut self, end: u32) -> u32 {
        // Numbers above the last multiple of `end` would favour the small ones.
        let end = u64::from(end);
        let limit = u64::MAX - u64::MAX % end;
        loop {
            let number = self.0.bits();
            if number < limit {
                return (number % end) as u32;
            }
        }
    }

    /// Shuffle `items` (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_covers_its_range() {
        let mut random = Random::new(7);
        let mut counts = [0u32; 5];
        (0..5000).for_each(|_| counts[random.below(5) as usize] += 1);
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
    }
}
