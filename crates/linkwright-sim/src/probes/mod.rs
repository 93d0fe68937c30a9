//! Probes answered from the parameters of a described machine: one file each, one line in [`MODEL_PROBES`].
//!
//! The questions stand in [`linkwright_core::probes`]; a model reads `[probe.TABLE]` of the machine file and
//! answers one assignment with one time, exactly. Where a machine has no such table, or its parameters do not
//! answer this question, the model *waives* it and says why; it never guesses.

pub mod compute;
pub mod convolution;
mod levels;
pub mod matmul;
pub mod memory_bandwidth;
pub mod memory_latency;
pub mod random;
pub mod round_trip;

use crate::error::SimError;
use linkwright_core::machine::Section;
use linkwright_core::probes::{Assignment, Description};
use linkwright_core::{Machine, TimePs};

/// What a model answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Time of one operation.
    pub time: TimePs,
    /// Bytes that one operation asks for.
    pub counted_bytes: u64,
    /// Bytes that travel for it.
    pub moved_bytes: u64,
    /// What it achieves, in the unit that the metric counts: floating-point operations, samples.
    pub work: u64,
    /// Metrics that do not follow from the time, by key.
    pub columns: Vec<(&'static str, f64)>,
}

/// The model of one probe.
pub struct ModelProbe {
    /// The question.
    pub about: &'static Description,
    /// Reads every parameter, so that a misspelt key is an error when the file is read.
    pub check: fn(&Machine) -> Result<(), SimError>,
    /// Answers it.
    pub answer: fn(&Machine, &Assignment) -> Result<Answer, SimError>,
}

/// All probes with a model.
pub static MODEL_PROBES: &[&ModelProbe] = &[
    &memory_latency::PROBE,
    &memory_bandwidth::PROBE,
    &round_trip::PROBE,
    &matmul::PROBE,
    &convolution::PROBE,
    &random::PROBE,
];

/// The answer of `machine`, or why it has none.
pub fn answer(machine: &Machine, asked: &Assignment) -> Result<Answer, SimError> {
    let about = asked.probe();
    match MODEL_PROBES.iter().find(|p| p.about.key == about.key) {
        Some(probe) => (probe.answer)(machine, asked),
        None => Err(waived(about, "this probe has no model; run it on hardware")),
    }
}

/// Reads the parameters of every probe that the machine file states.
pub fn check(machine: &Machine) -> Result<(), SimError> {
    MODEL_PROBES
        .iter()
        .filter(|probe| machine.probe_section(probe.about.table).is_some())
        .try_for_each(|probe| (probe.check)(machine))
}

/// Bytes of each described level of memory, nearest first; none where the file describes none.
pub fn memory_levels(machine: &Machine) -> Vec<u64> {
    let levels = levels::read(machine, &linkwright_core::probes::MEMORY_LATENCY);
    levels.map_or_else(
        |_| Vec::new(),
        |all| all.iter().map(|level| level.size.0).collect(),
    )
}

/// The table of a probe; a machine without it waives the probe.
pub(crate) fn section<'m>(
    machine: &'m Machine,
    about: &Description,
) -> Result<Section<'m>, SimError> {
    machine.probe_section(about.table).ok_or_else(|| {
        let reason = format!(
            "machine `{}` states nothing about it; add [probe.{}] to its file",
            machine.name(),
            about.table
        );
        waived(about, reason)
    })
}

/// The error of a question without an answer.
pub(crate) fn waived(about: &Description, reason: impl Into<String>) -> SimError {
    SimError::Waived {
        probe: about.key,
        reason: reason.into(),
    }
}
