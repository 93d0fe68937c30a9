//! A table from pairs of ranks to the last notice that one sent the other.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The last notice from one rank to another.
pub(super) type LastNotices = HashMap<(u32, u32), u32, BuildHasherDefault<PairHasher>>;

/// Mixes two numbers; nothing is ever iterated in the order of these hashes.
#[derive(Default)]
pub(super) struct PairHasher(u64);

impl Hasher for PairHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        let mixed =
            (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
