//! Probes answered by measuring: one file each, one line in [`PROBES`].
//!
//! The questions stand in [`linkwright_core::probes`]. A probe runs in one process on the processors it is
//! given and returns raw samples of the time of one operation; how many launches there are and what is
//! made of the samples is decided by whoever called. The parts that probes share:
//!
//! - [`workers`]: threads on processors of their own, a leader that samples and hands that help or disturb;
//! - [`memory`]: mapped memory with pages of a wanted size, within a share of what is free;
//! - [`cycle`]: how long one cycle of the core lasts just now, the floor of anything that depends on
//!   something;
//! - [`crate::sampling::Sampling`] and [`crate::guard`]: warm-up, batches, disturbed samples dropped.
//!
//! An answer below its floor is no answer: [`run`] fails it and names the bound.

pub mod cache_line;
pub mod cycle;
pub mod fma_peak;
pub mod loaded_latency;
mod memory;
pub mod memory_bandwidth;
pub mod memory_latency;
pub mod random;
pub mod round_trip;
mod workers;

use crate::error::{ExecError, Result};
use crate::guard::Drops;
use crate::sampling::{median, Samples, Sampling};
use linkwright_core::probes::{Assignment, Description};

/// How to run a probe.
#[derive(Clone)]
pub struct Setting<'a> {
    /// Processors by operating-system number: those of a placed probe first, then the others.
    pub cpus: Vec<u32>,
    /// How much to measure; making the memory ready comes before and does not count.
    pub sampling: Sampling,
    /// Of random orders.
    pub seed: u64,
    /// Most bytes to allocate; `None`: a quarter of what is free.
    pub most_bytes: Option<u64>,
    /// Asked a few times per second, on the calling thread, whether to stop.
    pub cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Setting<'_> {
    /// On these processors, with everything else as usual.
    pub fn of(cpus: Vec<u32>) -> Self {
        Setting {
            cpus,
            sampling: Sampling::default(),
            seed: 0,
            most_bytes: None,
            cancelled: None,
        }
    }
}

/// The least time that one operation can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// In nanoseconds.
    pub ns: f64,
    /// What bounds it, in words.
    pub name: &'static str,
}

impl Floor {
    /// One cycle of this core, where it can be read.
    fn cycle() -> Option<Floor> {
        cycle::cycle_ns().map(|ns| Floor {
            ns,
            name: "one cycle of the core",
        })
    }
}

/// What one launch of a probe yields.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Times of one operation.
    pub samples: Samples,
    /// Bytes that one operation asks for.
    pub counted_bytes: f64,
    /// Bytes that travel for it, estimated.
    pub moved_bytes: f64,
    /// What one operation achieves, in the unit that the metric counts: floating-point operations, samples.
    pub work: f64,
    /// Metrics that do not follow from the time: key and one value per sample, or one for the launch.
    pub columns: Vec<(&'static str, Vec<f64>)>,
    /// What no sample can undercut.
    pub floor: Option<Floor>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

impl Answer {
    /// Samples dropped, by reason.
    pub fn drops(&self) -> &Drops {
        &self.samples.drops
    }
}

/// A probe that this machine can run.
pub struct Probe {
    /// The question.
    pub about: &'static Description,
    /// Answers it with the samples of one launch.
    pub measure: fn(&Assignment, &Setting) -> Result<Answer>,
}

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

/// One launch of a probe; an answer that no machine can give is an error.
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

/// The threads that axis `threads` asks for, each with a processor of its own.
fn team(axes: &Assignment, setting: &Setting, about: &Description) -> Result<usize> {
    let (threads, there) = (axes.number("threads"), setting.cpus.len());
    if threads == 0 || threads > there as u64 {
        let reason =
            format!("{threads} threads need as many processors, at least one; there are {there}");
        return Err(waived(about, reason));
    }
    Ok(threads as usize)
}

/// The error of a question that this machine cannot be asked.
fn waived(about: &Description, reason: impl Into<String>) -> ExecError {
    ExecError::Waived {
        executor: about.key,
        reason: reason.into(),
    }
}
