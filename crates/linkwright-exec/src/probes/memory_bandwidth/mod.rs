//! Streaming over blocks owned by each thread: read, write, copy and triad with accesses of one width.
//!
//! ```text
//!   kernel   arrays   counted     moved, where the arrays exceed the last cache
//!   read       1         b             b
//!   write      1         b            2b    a line that is written is fetched first,
//!   copy       2        2b            3b    unless stores go around the caches
//!   triad      3        3b            4b
//! ```
//!
//! All threads start their passes together; the slowest counts. The loops are written in assembly
//! ([`kernels`]), because a compiler would choose another width. Arrays of one thread lie on different
//! offsets within a page, since loads wait for stores whose address agrees in the low twelve bits.
//!
//! Floor: four accesses in one cycle; no known processor starts more.

mod kernels;

use super::cycle::cycle_ns;
use super::memory::{check_room, Mapped, Pages};
use super::probe::{team, waived, Answer, Floor, Probe, Setting};
use super::workers::Workers;
use crate::error::Result;
use crate::topology::Topology;
use kernels::{Kernel, Pass};
use linkwright_core::probes::{Assignment, MEMORY_BANDWIDTH};

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &MEMORY_BANDWIDTH,
    measure,
};

/// Most accesses that a core starts in one cycle.
const ACCESSES_PER_CYCLE: f64 = 4.0;
/// Bytes that every loop handles at least.
const GRAIN: u64 = 512;
/// Distance of arrays beyond their length: some lines, so that they do not agree in the low bits.
const STAGGER: usize = 640;

fn measure(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let block = axes.number("block");
    let kernel = Kernel::of(axes.word("kernel"));
    let pass = kernels::find(kernel, axes.word("width"))
        .map_err(|reason| waived(&MEMORY_BANDWIDTH, reason))?;
    if block == 0 || block % GRAIN != 0 {
        let reason = format!("a block of {block} bytes is not a multiple of {GRAIN}; choose one");
        return Err(waived(&MEMORY_BANDWIDTH, reason));
    }
    let threads = team(axes, setting, &MEMORY_BANDWIDTH)?;
    let own = kernel.arrays() * block;
    check_room(&MEMORY_BANDWIDTH, setting, own * threads as u64)?;
    let arrays = || Arrays::new(block as usize, kernel.arrays() as usize);
    let helper = |_: usize, workers: &Workers| {
        let arrays = arrays()?;
        workers.follow(|n| arrays.pass(&pass, n));
        Ok(())
    };
    let beyond_caches = Topology::discover()
        .last_level_bytes()
        .is_some_and(|cache| own * threads as u64 > cache);
    let fetched = if beyond_caches && !pass.around_caches {
        kernel.written() * block
    } else {
        0
    };
    let counted = own as f64;
    Workers::launch(setting, threads - 1, helper, |workers| {
        let arrays = arrays()?;
        let cycle = cycle_ns();
        let samples = workers.sample(setting, |n| workers.round(n, |n| arrays.pass(&pass, n)));
        let width_bytes = pass.width.bytes() as f64;
        Ok(Answer {
            samples,
            counted_bytes: counted * threads as f64,
            moved_bytes: (counted + fetched as f64) * threads as f64,
            floor: cycle.map(|ns| Floor {
                ns: ns * counted / (ACCESSES_PER_CYCLE * width_bytes),
                name: "four accesses of this width in a cycle",
            }),
            notes: (axes.word("width") == "widest")
                .then(|| format!("widest is {} bits", pass.width.bytes() * 8))
                .into_iter()
                .collect(),
            ..Answer::default()
        })
    })
}

/// Up to three arrays of one thread.
struct Arrays {
    memory: Mapped,
    bytes: usize,
    count: usize,
}

impl Arrays {
    fn new(bytes: usize, count: usize) -> Result<Arrays> {
        let all = (bytes + STAGGER) * count;
        // Large pages where available: address translation is not the subject here.
        let map = |pages| Mapped::new(&MEMORY_BANDWIDTH, all, pages);
        let memory = match (all >= 2 << 20).then(|| map(Pages::Huge)) {
            Some(Ok(memory)) => memory,
            _ => map(Pages::Base)?,
        };
        Ok(Arrays {
            memory,
            bytes,
            count,
        })
    }

    fn array(&self, number: usize) -> *mut u8 {
        let number = number.min(self.count - 1);
        // SAFETY: within the memory.
        unsafe { self.memory.base().add(number * (self.bytes + STAGGER)) }
    }

    fn pass(&self, pass: &Pass, times: u32) {
        for _ in 0..times {
            // SAFETY: three arrays of that length (a kernel with fewer does not look at the others).
            unsafe { (pass.run)(self.array(0), self.array(1), self.array(2), self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_of_every_width_does_what_it_says() {
        for kernel in [Kernel::Read, Kernel::Write, Kernel::Copy, Kernel::Triad] {
            for width in ["widest", "32", "64", "128", "256", "512", "non_temporal"] {
                let Ok(pass) = kernels::find(kernel, width) else {
                    continue; // this processor lacks it
                };
                let arrays = Arrays::new(1024, 3).unwrap();
                let doubles = |n: usize| {
                    // SAFETY: 128 doubles each, and nobody else looks.
                    unsafe { std::slice::from_raw_parts_mut(arrays.array(n).cast::<f64>(), 128) }
                };
                doubles(0).fill(7.0);
                doubles(1)
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, b)| *b = i as f64);
                doubles(2)
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, c)| *c = 2.0 * i as f64);
                arrays.pass(&pass, 2);
                for (i, &found) in doubles(0).iter().enumerate() {
                    let wanted = match kernel {
                        Kernel::Read => 7.0,
                        Kernel::Write => 0.0,
                        Kernel::Copy => i as f64,
                        Kernel::Triad => i as f64 + kernels::FACTOR * 2.0 * i as f64,
                    };
                    assert_eq!(found, wanted, "{kernel:?} {width} [{i}]");
                }
            }
        }
    }

    #[test]
    fn what_a_processor_lacks_is_waived() {
        let error = kernels::find(Kernel::Triad, "32").err().unwrap();
        assert!(error.contains("64-bit floats"), "{error}");
        let error = kernels::find(Kernel::Read, "non_temporal").err().unwrap();
        assert!(error.contains("ordinary"), "{error}");
    }
}
