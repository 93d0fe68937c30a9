//! Latency at a shared place while injectors read there, each as fast as its pause allows.
//!
//! ```text
//!   at memory         leader chases, injectors stream, each over four times the last cache
//!   at shared_cache   the same within half of the last cache, all together
//!   core_to_core      leader and first hand swap a cache line; the other hands stream at memory
//! ```
//!
//! An injector counts the bytes of each piece of 4 KiB when it has read it; what all injected is the rise of
//! these counts during a sample, over the time of the sample. A sample is therefore long: thousands of
//! loads.

use super::cache_line::lines;
use super::crew::{Apart, Crew};
use super::cycle::cycle_ns;
use super::memory::{check_room, Mapped, Pages};
use super::memory_latency::{Chase, Order, LINE};
use super::{waived, Answer, Floor, Probe, Setting};
use crate::error::Result;
use crate::guard::Disturbance;
use crate::sampling::median;
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
/// Of the last cache, so that memory is what is read.
const BEYOND_CACHE: u64 = 4;

/// What is asked, in processors and bytes of this machine.
struct Load {
    injectors: usize,
    /// The leader swaps a cache line with the first hand, and does not chase.
    swaps: bool,
    /// That each of those who read has for itself.
    bytes: usize,
    pause_ns: f64,
}

impl Load {
    fn of(asked: &Assignment, setting: &Setting) -> Result<Self> {
        let (at, injectors) = (asked.word("at"), asked.number("injectors"));
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
            let reason = "the machine says nothing of its caches";
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
            pause_ns: asked.number("pause") as f64,
        })
    }
}

fn measure(asked: &Assignment, setting: &Setting) -> Result<Answer> {
    let Load {
        injectors,
        swaps,
        bytes,
        pause_ns,
    } = Load::of(asked, setting)?;
    let hands = injectors + usize::from(swaps);
    // Large pages where they can be had: what is asked is not address translation.
    let chase = |order| {
        Chase::new(bytes, order, Pages::Huge, setting.seed)
            .or_else(|_| Chase::new(bytes, order, Pages::Base, setting.seed))
    };
    let counts: Vec<Apart<AtomicU64>> = (0..injectors).map(|_| Apart::default()).collect();
    let line = Mapped::new(&LOADED_LATENCY, PIECE, Pages::Base)?;
    let hand = |number: usize, crew: &Crew| {
        if swaps && number == 0 {
            crew.enter();
            lines(&line).swap_back(crew);
            return Ok(());
        }
        let mut memory = chase(Order::Stride(LINE))?;
        crew.enter();
        inject(
            &mut memory,
            bytes,
            pause_ns,
            &counts[number - usize::from(swaps)].0,
            crew,
        );
        Ok(())
    };
    Crew::launch(setting, hands, hand, |crew| {
        let mut own = (!swaps).then(|| chase(Order::Random)).transpose()?;
        let cycle = cycle_ns();
        let injected = || -> u64 { counts.iter().map(|c| c.0.load(Ordering::Relaxed)).sum() };
        let clock = Clock::get();
        let mut rates = Vec::new();
        let mut samples = setting.sampler().measure_until(&|| crew.stopped(), |n| {
            let (start, before) = (clock.now(), injected());
            match &mut own {
                Some(own) => (0..n).for_each(|_| own.walk(OPERATIONS)),
                None => lines(&line).swap(n * OPERATIONS, crew),
            }
            let seconds = clock.ns_between(start, clock.now()) * 1e-9;
            let read = injected() - before;
            rates.push(read as f64 / seconds);
            // Injectors that read nothing in all that time had lost their cores.
            (read == 0 && injectors > 0).then_some(Disturbance::Preempted)
        });
        samples.per(f64::from(OPERATIONS) * if swaps { 2.0 } else { 1.0 });
        // The last rounds were the samples; one value stands for the launch.
        let looked = samples.values_ns.len() + samples.drops.total() as usize;
        let mut rates = rates.split_off(rates.len().saturating_sub(looked));
        rates.retain(|&rate| injectors == 0 || rate > 0.0);
        let column = median(&mut rates).map(|rate| ("injected_bandwidth", vec![rate]));
        Ok(Answer {
            samples,
            columns: column.into_iter().collect(),
            floor: cycle.map(|ns| Floor {
                ns,
                name: "one cycle of the core",
            }),
            ..Answer::default()
        })
    })
}

/// Reads piece after piece, with a pause after each, until the end.
fn inject(memory: &mut Chase, bytes: usize, pause_ns: f64, count: &AtomicU64, crew: &Crew) {
    let clock = Clock::get();
    let pause = clock.ticks_in(pause_ns);
    let mut at = 0;
    while !crew.stopped() {
        let end = (at + PIECE).min(bytes);
        memory.stream_part(at, end);
        count.fetch_add((end - at) as u64, Ordering::Relaxed);
        at = if end == bytes { 0 } else { end };
        let read = clock.now();
        while pause > 0 && clock.now().0 - read.0 < pause {
            std::hint::spin_loop();
        }
    }
}
