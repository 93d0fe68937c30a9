//! A pointer chase: every load's address is the value of the previous load, so no two overlap.
//!
//! ```text
//!   line:    0      1      2      3          random: one cycle through all lines (Sattolo's shuffle)
//!          [ *2 ] [ *0 ] [ *3 ] [ *1 ]       stride s: 0, s, 2s, ... then 64, s + 64, ...: all lines, too
//! ```
//!
//! One pointer stands in each cache line, at its start. The memory is first touched by the thread that
//! chases, and the whole cycle is walked before sampling where it is small enough to stay in a cache.
//! Neighbours own memory of the same size, and work until the leader is done.
//!
//! Floor: one cycle of the core. The probe does not separate address translation from the cache miss; compare
//! the two page sizes for that.

use super::memory::{check_room, Mapped, Pages};
use super::probe::{waived, Answer, Floor, Probe, Setting};
use super::workers::Workers;
use crate::error::Result;
use linkwright_core::probes::{Assignment, MEMORY_LATENCY};

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &MEMORY_LATENCY,
    measure,
};

/// One pointer per cache line.
pub(super) const LINE: usize = 64;
/// Loads of one operation of the sampler, so that the call of its closure costs nothing.
const LOADS: u32 = 64;
/// Above this, walking the whole cycle first would not help: nothing of it stays in a cache.
const WALK_BYTES: usize = 64 << 20;

fn measure(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let bytes = axes.number("working_set");
    let neighbours = axes.number("neighbours") as usize;
    check(bytes, neighbours, setting)?;
    let order = Order::of(axes.word("order"));
    let pages = match axes.word("pages") {
        "2M" => Pages::Huge,
        _ => Pages::Base,
    };
    let chase = |seed| Chase::new(bytes as usize, order, pages, seed);
    let streams = axes.word("neighbours_do") == "stream";
    let disturb = |number: usize, workers: &Workers| {
        let mut chase = chase(setting.seed + 1 + number as u64)?;
        workers.enter();
        while !workers.stopped() {
            if streams {
                chase.stream();
            } else {
                chase.walk(LOADS * LOADS);
            }
        }
        Ok(())
    };
    Workers::launch(setting, neighbours, disturb, |workers| {
        Ok(lead(chase(setting.seed)?, workers, setting))
    })
}

/// Two lines at least, processors for all, and the memory that they take.
fn check(bytes: u64, neighbours: usize, setting: &Setting) -> Result<()> {
    let (needed, there) = (neighbours + 1, setting.cpus.len());
    let reason = if bytes < 2 * LINE as u64 {
        format!("a cycle needs two lines; give at least {} bytes", 2 * LINE)
    } else if there < needed {
        format!("{neighbours} neighbours need {needed} processors, there are {there}")
    } else {
        return check_room(&MEMORY_LATENCY, setting, bytes * needed as u64);
    };
    Err(waived(&MEMORY_LATENCY, reason))
}

fn lead(mut chase: Chase, workers: &Workers, setting: &Setting) -> Answer {
    if chase.memory.bytes() <= WALK_BYTES {
        chase.walk((chase.memory.bytes() / LINE) as u32);
    }
    let floor = Floor::cycle();
    let mut samples = workers.sample(setting, |n| {
        chase.walk(n * LOADS);
        None
    });
    samples.per(f64::from(LOADS));
    Answer {
        samples,
        counted_bytes: size_of::<usize>() as f64,
        moved_bytes: LINE as f64,
        floor,
        ..Answer::default()
    }
}

/// In which order the lines are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Random,
    Stride(usize),
}

impl Order {
    fn of(word: &str) -> Order {
        let stride = word
            .strip_prefix("stride_")
            .and_then(|bytes| bytes.parse().ok());
        stride.map_or(Order::Random, Order::Stride)
    }
}

/// Memory that holds a cycle of pointers, and the place reached in it.
#[derive(Debug)]
pub(super) struct Chase {
    memory: Mapped,
    at: *const u8,
}

// SAFETY: `at` points into `memory`, which is owned.
unsafe impl Send for Chase {}

impl Chase {
    /// Maps memory and links its lines to one cycle.
    pub(super) fn new(bytes: usize, order: Order, pages: Pages, seed: u64) -> Result<Chase> {
        let memory = Mapped::new(&MEMORY_LATENCY, bytes, pages)?;
        let base = memory.base();
        let lines = (bytes / LINE) as u32;
        // SAFETY: every line is within the memory and aligned.
        let link = |from: u32, to: u32| unsafe {
            let line = |number: u32| base.add(number as usize * LINE);
            line(from).cast::<*const u8>().write(line(to));
        };
        match order {
            Order::Random => {
                let next = sattolo(lines, seed);
                (0..lines).for_each(|line| link(line, next[line as usize]));
            }
            Order::Stride(stride) => {
                let step = ((stride / LINE) as u32).clamp(1, lines);
                let visited = (0..step).flat_map(|first| (first..lines).step_by(step as usize));
                let last = visited.fold(0, |before, line| {
                    link(before, line);
                    line
                });
                link(last, 0);
            }
        }
        Ok(Chase { at: base, memory })
    }

    /// Follows `loads` pointers.
    #[inline(never)]
    pub(super) fn walk(&mut self, loads: u32) {
        // SAFETY: every line holds the address of a line.
        let next = |at: *const u8| unsafe { at.cast::<*const u8>().read_volatile() };
        let mut at = self.at;
        for _ in 0..loads / 16 {
            at = next(next(next(next(at))));
            at = next(next(next(next(at))));
            at = next(next(next(next(at))));
            at = next(next(next(next(at))));
        }
        for _ in 0..loads % 16 {
            at = next(at);
        }
        self.at = at;
    }

    /// Reads everything once, one word of each line.
    pub(super) fn stream(&mut self) {
        self.stream_part(0, self.memory.bytes() / LINE * LINE);
    }

    /// Reads one word of each line from byte `from` up to byte `to`.
    #[inline(never)]
    pub(super) fn stream_part(&mut self, from: usize, to: usize) {
        let mut sum = 0usize;
        for line in (from..to.min(self.memory.bytes() / LINE * LINE)).step_by(LINE) {
            // SAFETY: within the memory.
            sum = sum.wrapping_add(unsafe { self.memory.base().add(line).cast::<usize>().read() });
        }
        std::hint::black_box(sum);
    }
}

/// A random permutation that is one cycle.
fn sattolo(n: u32, seed: u64) -> Vec<u32> {
    let mut next: Vec<u32> = (0..n).collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for i in (1..n).rev() {
        // xorshift64*: any generator that covers the range will do for an order.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let draw = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        let other = (draw * u64::from(i)) >> 32;
        next.swap(i as usize, other as usize);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(order: Order, lines: usize) -> usize {
        let mut chase = Chase::new(lines * LINE, order, Pages::Base, 7).unwrap();
        let start = chase.at;
        for length in 1.. {
            chase.walk(1);
            if chase.at == start {
                return length;
            }
        }
        unreachable!()
    }

    #[test]
    fn every_order_is_one_cycle_over_all_lines() {
        for lines in [2, 3, 64, 1000] {
            for order in ["random", "stride_64", "stride_256", "stride_4096"] {
                assert_eq!(visited(Order::of(order), lines), lines, "{order}");
            }
        }
    }

    #[test]
    fn strides_are_what_they_say() {
        let mut chase = Chase::new(1 << 16, Order::Stride(4096), Pages::Base, 7).unwrap();
        let before = chase.at as usize;
        chase.walk(1);
        assert_eq!(chase.at as usize - before, 4096);
        chase.walk(15);
        assert_eq!(
            chase.at as usize - before,
            LINE,
            "the second pass begins one line on"
        );
    }
}
