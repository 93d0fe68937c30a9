//! Generators of random numbers of the `rand` crates, each filling a block with uniform 64-bit floats.
//!
//! A sample is a float in [0, 1) with 53 random bits, as from NumPy's generators, so the two libraries do the
//! same work. `store` generates nothing and stores a counter: the time of a generator if generating were
//! free.

use rand::rngs::{ChaCha12Rng, ChaCha20Rng, ChaCha8Rng, Xoshiro256PlusPlus};
use rand::{RngExt, SeedableRng};
use rand_pcg::{Pcg64, Pcg64Dxsm, Pcg64Mcg};

/// Fills blocks, one after the other, each continuing the stream.
pub type Fill = Box<dyn FnMut(&mut [f64]) + Send>;

/// A generator with a seed.
pub type Seeded = fn(u64) -> Fill;

/// Every generator, by its name on the command line.
pub static GENERATORS: &[(&str, Seeded)] = &[
    ("store", |seed| Box::new(store(seed))),
    ("rust_chacha8", filling::<ChaCha8Rng>),
    ("rust_chacha12", filling::<ChaCha12Rng>),
    ("rust_chacha20", filling::<ChaCha20Rng>),
    ("rust_pcg64", filling::<Pcg64>),
    ("rust_pcg64dxsm", filling::<Pcg64Dxsm>),
    ("rust_pcg64mcg", filling::<Pcg64Mcg>),
    // `SmallRng` of 64-bit machines.
    ("rust_xoshiro256pp", filling::<Xoshiro256PlusPlus>),
];

/// The generator called `key`.
pub fn find(key: &str) -> Option<Seeded> {
    let entry = GENERATORS.iter().find(|(known, _)| *known == key);
    entry.map(|&(_, seeded)| seeded)
}

fn filling<R: SeedableRng + RngExt + Send + 'static>(seed: u64) -> Fill {
    let mut generator = R::seed_from_u64(seed);
    Box::new(move |block| {
        block
            .iter_mut()
            .for_each(|value| *value = generator.random())
    })
}

fn store(seed: u64) -> impl FnMut(&mut [f64]) + Send {
    let mut next = seed;
    move |block| {
        next = next.wrapping_add(1);
        // In [1, 2): never a number that a processor handles specially.
        let value = f64::from_bits(0x3ff0 << 48 | next & 0xffff_ffff);
        block.fill(value);
        std::hint::black_box(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_give_uniform_numbers_that_go_on() {
        for (key, seeded) in GENERATORS.iter().filter(|(key, _)| *key != "store") {
            let mut fill = seeded(7);
            let (mut first, mut second) = ([0.0; 4096], [0.0; 4096]);
            fill(&mut first);
            fill(&mut second);
            assert_ne!(first, second, "{key}");
            assert!(first.iter().all(|value| (0.0..1.0).contains(value)));
            // The mean of 4096 uniform numbers scatters by 0.0045.
            let mean = first.iter().sum::<f64>() / 4096.0;
            assert!((mean - 0.5).abs() < 0.025, "{key}: {mean}");
            let mut again = [0.0; 4096];
            seeded(7)(&mut again);
            assert_eq!(first, again, "{key}: the seed decides");
        }
    }

    #[test]
    fn store_stores_another_value_each_time() {
        let mut fill = find("store").unwrap()(0);
        let (mut first, mut second) = ([0.0; 8], [0.0; 8]);
        fill(&mut first);
        fill(&mut second);
        assert_ne!(first, second);
    }
}
