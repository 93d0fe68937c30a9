//! Memory that is aligned for every element type.

/// Bytes aligned for every element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignedBytes {
    words: Vec<u64>,
    bytes: usize,
}

impl AlignedBytes {
    /// All zero.
    pub fn new(bytes: usize) -> Self {
        AlignedBytes {
            words: vec![0; bytes.div_ceil(8)],
            bytes,
        }
    }

    /// The bytes.
    pub fn get(&self) -> &[u8] {
        // SAFETY: the words hold at least this many bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }

    /// The bytes.
    pub fn get_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words hold at least this many bytes.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bytes) }
    }
}
