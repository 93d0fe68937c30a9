//! Latency at a shared place while injectors read there, each as fast as its pause allows.
//!
//! ```text
//!   at memory         leader chases, injectors stream, each over four times the last cache
//!   at shared_cache   the same within half of the last cache, all together
//!   core_to_core      leader and first helper swap a cache line; the other helpers stream at memory
//! ```
//!
//! An injector counts the bytes of each piece of 4 KiB when it has read it; the injected bandwidth is the
//! increase of all counts during a sample over the time of the sample. A sample is therefore long:
//! thousands of loads.

use super::cache_line::lines;
use super::memory::{check_room, Mapped, Pages};
use super::memory_latency::{Chase, Order, LINE};
use super::probe::{waived, Answer, Floor, Probe, Setting};
use super::workers::{Apart, Workers};
use crate::error::Result;
use crate::guard::Disturbance;
use crate::sampling::{median, Samples};
use crate::timer::Clock;
use crate::topology::Topology;
use linkwright_core::probes::{Assignment, LOADED_LATENCY};
use std::sync::atomic::{AtomicU64, Ordering};

/// Registry entry.
pub static PROBE: Probe = Probe {
    about: &LOADED_LATENCY,
    measure,
};

/// What an injector reads between two pauses.
const PIECE: usize = 4096;
/// Loads, or round trips, of one operation of the sampler: long beside a piece.
const OPERATIONS: u32 = 4096;
/// Times the last cache, so that reads reach memory.
const BEYOND_CACHE: u64 = 4;

/// Bytes that an injector has read.
type Count = Apart<AtomicU64>;

/// The load, in processors and bytes of this machine.
struct Load {
    injectors: usize,
    /// The leader swaps a cache line with the first helper instead of chasing.
    swaps: bool,
    /// Of each reader.
    bytes: usize,
    pause_ns: f64,
}

impl Load {
    fn of(axes: &Assignment, setting: &Setting) -> Result<Self> {
        let (at, injectors) = (axes.word("at"), axes.number("injectors"));
        let swaps = at == "core_to_core";
        let (needed, there) = (
            injectors as usize + usize::from(swaps) + 1,
            setting.cpus.len(),
        );
        if there < needed {
            let reason = format!(
                "{injectors} injectors at {at} need {needed} processors, there are {there}"
            );
            return Err(waived(&LOADED_LATENCY, reason));
        }
        let Some(cache) = Topology::discover().last_level_bytes() else {
            let reason = "the machine does not report its caches";
            return Err(waived(&LOADED_LATENCY, reason));
        };
        let bytes = match at {
            "shared_cache" => cache / 2 / (injectors + 1),
            _ => BEYOND_CACHE * cache,
        };
        let readers = injectors + u64::from(!swaps);
        check_room(&LOADED_LATENCY, setting, bytes * readers)?;
        Ok(Load {
            injectors: injectors as usize,
            swaps,
            bytes: bytes as usize,
            pause_ns: axes.number("pause") as f64,
        })
    }

    /// Reads piece after piece, with a pause after each, until the end.
    fn inject(&self, mut memory: Chase, count: &Count, workers: &Workers) {
        let clock = Clock::get();
        let pause = clock.ticks_in(self.pause_ns);
        let mut at = 0;
        while !workers.stopped() {
            let end = (at + PIECE).min(self.bytes);
            memory.stream_part(at, end);
            count.0.fetch_add((end - at) as u64, Ordering::Relaxed);
            at = if end == self.bytes { 0 } else { end };
            let read = clock.now();
            while pause > 0 && clock.now().0 - read.0 < pause {
                std::hint::spin_loop();
            }
        }
    }
}

fn measure(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let load = Load::of(axes, setting)?;
    // Large pages where available: address translation is not the subject here.
    let chase = |order| {
        Chase::new(load.bytes, order, Pages::Huge, setting.seed)
            .or_else(|_| Chase::new(load.bytes, order, Pages::Base, setting.seed))
    };
    let counts: Vec<Count> = (0..load.injectors).map(|_| Count::default()).collect();
    let line = Mapped::new(&LOADED_LATENCY, PIECE, Pages::Base)?;
    let swappers = usize::from(load.swaps);
    let helper = |number: usize, workers: &Workers| {
        if let Some(injector) = number.checked_sub(swappers) {
            let memory = chase(Order::Stride(LINE))?;
            workers.enter();
            load.inject(memory, &counts[injector], workers);
        } else {
            workers.enter();
            lines(&line).swap_back(workers);
        }
        Ok(())
    };
    Workers::launch(setting, swappers + load.injectors, helper, |workers| {
        let mut own = (!load.swaps).then(|| chase(Order::Random)).transpose()?;
        let floor = Floor::cycle();
        let (mut samples, injected) = sample(setting, workers, &counts, |n| match &mut own {
            Some(own) => (0..n).for_each(|_| own.walk(OPERATIONS)),
            None => lines(&line).swap(n * OPERATIONS, workers),
        });
        samples.per(f64::from(OPERATIONS) * if load.swaps { 2.0 } else { 1.0 });
        let column = injected.map(|rate| ("injected_bandwidth", vec![rate]));
        Ok(Answer {
            samples,
            columns: column.into_iter().collect(),
            floor,
            ..Answer::default()
        })
    })
}

/// The leader's samples, and the bytes per second that all injectors read: one value for the launch.
fn sample(
    setting: &Setting,
    workers: &Workers,
    counts: &[Count],
    mut operation: impl FnMut(u32),
) -> (Samples, Option<f64>) {
    let injected = || -> u64 { counts.iter().map(|c| c.0.load(Ordering::Relaxed)).sum() };
    let clock = Clock::get();
    let mut rates = Vec::new();
    let samples = workers.sample(setting, |n| {
        let (start, before) = (clock.now(), injected());
        operation(n);
        let seconds = clock.ns_between(start, clock.now()) * 1e-9;
        let read = injected() - before;
        rates.push(read as f64 / seconds);
        // Injectors that read nothing in all that time had lost their cores.
        (read == 0 && !counts.is_empty()).then_some(Disturbance::Preempted)
    });
    // The last rounds were the samples.
    let mut rates = rates.split_off(rates.len().saturating_sub(samples.taken()));
    rates.retain(|&rate| counts.is_empty() || rate > 0.0);
    (samples, median(&mut rates))
}
