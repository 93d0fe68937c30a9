//! Probes answered by measuring: one file each, one line in [`PROBES`].
//!
//! The questions stand in [`linkwright_core::probes`]. A probe runs in one process on the processors it is
//! given and returns raw samples of the time of one operation; the caller decides how many launches there
//! are and what to make of the samples. The parts that probes share:
//!
//! - [`workers`]: threads on processors of their own, a leader that samples and helpers;
//! - [`memory`]: mapped memory with pages of a wanted size, within a share of what is free;
//! - [`cycle`]: the current length of one cycle of the core, the floor of every dependent operation;
//! - [`crate::sampling::Sampling`] and [`crate::guard`]: warm-up, batches, disturbed samples dropped.
//!
//! An answer below its floor is an error that names the bound.

pub mod cache_line;
pub mod cycle;
pub mod fma_peak;
pub mod loaded_latency;
mod memory;
pub mod memory_bandwidth;
pub mod memory_latency;
mod probe;
pub mod random;
pub mod round_trip;
mod workers;

use crate::error::{ExecError, Result};
use crate::sampling::median;
use linkwright_core::probes::Assignment;
use probe::waived;
pub use probe::{Answer, Floor, Probe, Setting};

/// All probes that are measured in Rust.
pub static PROBES: &[&Probe] = &[
    &memory_latency::PROBE,
    &memory_bandwidth::PROBE,
    &loaded_latency::PROBE,
    &cache_line::PROBE,
    &round_trip::PROBE,
    &fma_peak::PROBE,
    &random::PROBE,
];

/// One launch of a probe; an answer below its floor is an error.
pub fn run(axes: &Assignment, setting: &Setting) -> Result<Answer> {
    let about = axes.probe();
    let Some(probe) = PROBES.iter().find(|p| p.about.key == about.key) else {
        return Err(waived(about, "this probe is not measured natively"));
    };
    let answer = (probe.measure)(axes, setting)?;
    let mut values = answer.samples.values_ns.clone();
    match (answer.floor, median(&mut values)) {
        (Some(floor), Some(found)) if found < floor.ns => Err(ExecError::Implausible {
            probe: about.key,
            found_ns: found,
            floor_ns: floor.ns,
            bound: floor.name,
        }),
        _ => Ok(answer),
    }
}
