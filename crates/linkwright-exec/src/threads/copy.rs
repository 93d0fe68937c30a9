//! Copying: plain, or around the caches.
//!
//! A plain copy reads each destination line before it overwrites it and leaves it in the caches of
//! the writer. A *streaming* copy writes past the caches: no read for ownership, but the next reader
//! finds the data in memory. Which is faster for a large put depends on the machine, so
//! [`Copier::get`] tries both, reading back what was copied, as the receiving rank would, and
//! streams from the smallest size on from which streaming wins by a tenth.

use crate::sampling::median;
use crate::timer::Clock;
use std::sync::OnceLock;

/// Chooses how to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copier {
    /// Copies of at least so many bytes stream.
    stream_from: usize,
}

impl Default for Copier {
    fn default() -> Self {
        Copier {
            stream_from: usize::MAX,
        }
    }
}

impl Copier {
    const TRIED: [usize; 4] = [256 << 10, 1 << 20, 4 << 20, 16 << 20];

    /// The faster way on this machine, measured on the first call (about 50 ms).
    pub fn get() -> Self {
        static COPIER: OnceLock<Copier> = OnceLock::new();
        *COPIER.get_or_init(Copier::measure)
    }

    /// The way to make copies of at most `bytes`; measures only where there is a choice.
    pub fn for_copies_of(bytes: usize) -> Self {
        match bytes < Self::TRIED[0] {
            true => Copier::default(),
            false => Copier::get(),
        }
    }

    fn measure() -> Self {
        if !can_stream() {
            return Copier::default();
        }
        let most = Self::TRIED[Self::TRIED.len() - 1];
        let (source, mut destination) = (vec![1u8; most], vec![2u8; most]);
        let always = Copier { stream_from: 0 };
        let mut stream_from = usize::MAX;
        for bytes in Self::TRIED.into_iter().rev() {
            let plain = time(Copier::default(), &source[..bytes], &mut destination);
            let streamed = time(always, &source[..bytes], &mut destination);
            if streamed > 0.9 * plain {
                break;
            }
            stream_from = bytes;
        }
        Copier { stream_from }
    }

    /// Copies.
    ///
    /// # Safety
    /// Both pointers are valid for `bytes`, which do not overlap.
    #[inline(always)]
    pub unsafe fn copy(&self, source: *const u8, destination: *mut u8, bytes: usize) {
        if bytes >= self.stream_from {
            // SAFETY: as promised by the caller; a finite threshold means that streaming works.
            unsafe { stream(source, destination, bytes) }
        } else {
            // SAFETY: as promised by the caller.
            unsafe { std::ptr::copy_nonoverlapping(source, destination, bytes) }
        }
    }
}

/// Median time of copying and reading back.
fn time(copier: Copier, source: &[u8], destination: &mut [u8]) -> f64 {
    let clock = Clock::get();
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = clock.now();
            // SAFETY: two slices, the destination at least as long as the source.
            unsafe { copier.copy(source.as_ptr(), destination.as_mut_ptr(), source.len()) };
            let lines = destination[..source.len()].chunks(64);
            std::hint::black_box(lines.map(|line| u64::from(line[0])).sum::<u64>());
            clock.ns_between(start, clock.now())
        })
        .collect();
    median(&mut times).expect("five times")
}

#[cfg(target_arch = "x86_64")]
fn can_stream() -> bool {
    is_x86_feature_detected!("avx")
}

#[cfg(not(target_arch = "x86_64"))]
fn can_stream() -> bool {
    false
}

/// Stores whole vectors past the caches, the ragged ends plainly.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream(source: *const u8, destination: *mut u8, bytes: usize) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256, _mm_sfence};
    const VECTOR: usize = 32;
    let head = destination.align_offset(VECTOR).min(bytes);
    let vectors = (bytes - head) / VECTOR;
    let tail = head + vectors * VECTOR;
    // SAFETY: head, vectors and tail cover exactly the promised bytes; vectors are aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(source, destination, head);
        for i in 0..vectors {
            let offset = head + i * VECTOR;
            let vector = _mm256_loadu_si256(source.add(offset).cast());
            _mm256_stream_si256(destination.add(offset).cast(), vector);
        }
        std::ptr::copy_nonoverlapping(source.add(tail), destination.add(tail), bytes - tail);
        // Streaming stores are weakly ordered: without this a flag could overtake the data.
        _mm_sfence();
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(source: *const u8, destination: *mut u8, bytes: usize) {
    // SAFETY: as promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(source, destination, bytes) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_copy_every_byte() {
        let source: Vec<u8> = (0..1000u32).map(|i| i as u8).collect();
        for stream_from in [0, usize::MAX] {
            if stream_from == 0 && !can_stream() {
                continue;
            }
            for (offset, bytes) in [(0, 1000), (1, 999), (31, 33), (5, 0), (7, 20)] {
                let mut destination = vec![0u8; 1000];
                let copier = Copier { stream_from };
                // SAFETY: offset + bytes <= 1000 in both.
                unsafe {
                    let (from, to) = (source.as_ptr(), destination.as_mut_ptr());
                    copier.copy(from.add(offset), to.add(offset), bytes);
                }
                assert_eq!(
                    destination[offset..offset + bytes],
                    source[offset..offset + bytes]
                );
                assert!(destination[..offset].iter().all(|&byte| byte == 0));
                assert!(destination[offset + bytes..].iter().all(|&byte| byte == 0));
            }
        }
    }
}
