//! A small random generator whose numbers follow from the seed on every machine.
//!
//! SplitMix64: a counter that steps by an odd constant, and a mixing function of it.
//!
//! ```text
//!   state += 0x9e3779b97f4a7c15
//!   z = state;  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;  z = (z ^ z >> 27) * 0x94d049bb133111eb
//!   number = z ^ z >> 31
//! ```
//!
//! Good for traffic and start skews, not for cryptography. Kept here rather than taken from a
//! library so that a new version of the library never changes a published pattern.
//!
//! Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, all equally likely; `end` is at least 1.
    pub fn below(&mut self, end: u32) -> u32 {
        // Numbers above the last multiple of `end` would favour the small ones.
        let end = u64::from(end);
        let limit = u64::MAX - u64::MAX % end;
        loop {
            let number = self.bits();
            if number < limit {
                return (number % end) as u32;
            }
        }
    }

    /// Bring `items` into random order (Fisher and Yates).
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
    fn the_published_stream() {
        // First numbers of seed 1234567 of the authors' C code.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
        assert_eq!(random.bits(), 9_817_491_932_198_370_423);
    }

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
