//! Tables by ordered pair of endpoints and network.
//!
//! Every message looks up its pair several times, so the hash is one multiplication. The order of the
//! entries is never seen: these tables are only asked, not iterated.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Source, target and network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub from: u32,
    pub to: u32,
    pub network: u8,
}

/// Something for each pair.
pub(super) type Pairs<T> = HashMap<Key, T, BuildHasherDefault<Mixer>>;

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair = u64::from(self.from) << 32 | u64::from(self.to);
        state.write_u64(pair ^ u64::from(self.network) << 24);
    }
}

/// Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
#[derive(Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The table takes its place from the low bits, which a product mixes least.
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
