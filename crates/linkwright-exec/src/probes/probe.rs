//! A probe, its setting and its answer.

use super::cycle::cycle_ns;
use crate::error::{ExecError, Result};
use crate::sampling::{Samples, Sampling};
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
    pub(super) fn cycle() -> Option<Floor> {
        cycle_ns().map(|ns| Floor {
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
    /// The least time that a sample can have.
    pub floor: Option<Floor>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A probe that this machine can run.
pub struct Probe {
    /// The question.
    pub about: &'static Description,
    /// Answers it with the samples of one launch.
    pub measure: fn(&Assignment, &Setting) -> Result<Answer>,
}

/// The threads that axis `threads` asks for, each with a processor of its own.
pub(super) fn team(axes: &Assignment, setting: &Setting, about: &Description) -> Result<usize> {
    let (threads, there) = (axes.number("threads"), setting.cpus.len());
    if threads == 0 || threads > there as u64 {
        let reason =
            format!("{threads} threads need as many processors, at least one; there are {there}");
        return Err(waived(about, reason));
    }
    Ok(threads as usize)
}

/// The error of a probe that this machine cannot answer.
pub(super) fn waived(about: &Description, reason: impl Into<String>) -> ExecError {
    ExecError::Waived {
        executor: about.key,
        reason: reason.into(),
    }
}
