//! Seeded random numbers that are the same on every machine and in every version.
//!
//! SplitMix64: a counter in steps of the golden ratio, its bits mixed. Source: Steele, Lea and
//! Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        // First values for seed 1234567, as of the reference implementation.
        let mut random = Random::new(1_234_567);
        let first = [random.bits(), random.bits()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn below_stays_below() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
