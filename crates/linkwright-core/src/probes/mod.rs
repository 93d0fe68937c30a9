//! What is asked of a machine that no schedule can ask: the catalogue of probes.
//!
//! A schedule says which bytes go between ranks. How long a load takes, how fast one core reads its own
//! memory, what a system call costs: each such question is a *probe*, described once here and answered
//! twice, by measuring (`linkwright-exec/src/probes`) and from the parameters of a described machine
//! (`linkwright-sim/src/probes`), with the same axes and metrics:
//!
//! ```text
//!   Description: axes ---------> Assignment: one value for each axis
//!                metrics            |                        |
//!                            exec: samples in ns      sim: one time in ps      + bytes, columns
//!                                   '----------- metrics -----------'
//! ```
//!
//! An answer is always the *time of one operation* (a load, a pass over a block, a round trip); a rate
//! follows from it and from the bytes of one operation, *counted* (what the program asked for) or *moved*
//! (what travels besides: a line fetched because it is written). What does not follow from a time is a
//! column of its own.
//!
//! A probe that only Python can measure (because it asks a Python library) is described here too where it
//! has a model; without one it may be described in Python.

mod cache_line;
mod convolution;
mod fma_peak;
mod loaded_latency;
mod matmul;
mod memory_bandwidth;
mod memory_latency;
mod random;
mod round_trip;
mod value;

pub use cache_line::CACHE_LINE;
pub use convolution::{layer_of, Layer, CONVOLUTION, LAYERS};
pub use fma_peak::FMA_PEAK;
pub use loaded_latency::LOADED_LATENCY;
pub use matmul::MATMUL;
pub use memory_bandwidth::MEMORY_BANDWIDTH;
pub use memory_latency::MEMORY_LATENCY;
pub use random::RANDOM;
pub use round_trip::ROUND_TRIP;
pub use value::{Assignment, ProbeError};

/// Every probe, in reading order.
pub static CATALOGUE: &[&Description] = &[
    &MEMORY_LATENCY,
    &MEMORY_BANDWIDTH,
    &LOADED_LATENCY,
    &CACHE_LINE,
    &ROUND_TRIP,
    &FMA_PEAK,
    &MATMUL,
    &CONVOLUTION,
    &RANDOM,
];

/// One question: what may be varied and what is found.
#[derive(Debug)]
pub struct Description {
    /// Name, the same wherever it is answered.
    pub key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What one operation is, what is held still, what the answer shows.
    pub description: &'static str,
    /// What may be varied.
    pub axes: &'static [Axis],
    /// What is found.
    pub metrics: &'static [Metric],
    /// The axis that stands in the column `size_bytes`, if one does.
    pub size_axis: Option<&'static str>,
    /// Its parameters stand in `[probe.TABLE]` of a machine file; probes may share a table.
    pub table: &'static str,
    /// Where the method comes from.
    pub source: &'static str,
    /// When there is no answer.
    pub waived: &'static str,
}

/// One thing that may be varied.
#[derive(Debug)]
pub struct Axis {
    /// Name.
    pub key: &'static str,
    /// What its values are.
    pub kind: AxisKind,
    /// One line.
    pub summary: &'static str,
    /// The value where none is given.
    pub default: &'static str,
}

/// What the values of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// A number of bytes; K, M and G are 1024-based.
    Bytes,
    /// A number of things.
    Count,
    /// One word of a closed list.
    Word(&'static [&'static str]),
}

impl AxisKind {
    /// `bytes`, `count` or `word`.
    pub fn name(self) -> &'static str {
        match self {
            AxisKind::Bytes => "bytes",
            AxisKind::Count => "count",
            AxisKind::Word(_) => "word",
        }
    }

    /// The closed list; empty where any number will do.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            AxisKind::Word(words) => words,
            _ => &[],
        }
    }
}

/// One thing that is found.
#[derive(Debug)]
pub struct Metric {
    /// Name; a name that schedules use too means the same here.
    pub key: &'static str,
    /// `ns`, `B/s`, `1`, ...
    pub unit: &'static str,
    /// Whether less or more is better.
    pub better: Better,
    /// One line.
    pub summary: &'static str,
    /// How it follows from the answer.
    pub from: Derived,
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A time.
    Low,
    /// A rate.
    High,
    /// Neither.
    Neither,
}

impl Better {
    /// `low`, `high` or nothing.
    pub fn name(self) -> &'static str {
        match self {
            Better::Low => "low",
            Better::High => "high",
            Better::Neither => "",
        }
    }
}

/// How a metric follows from an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derived {
    /// It is the time of one operation.
    Time,
    /// Counted bytes over that time.
    CountedRate,
    /// Moved bytes over that time.
    MovedRate,
    /// The work of one operation, such as its floating-point operations, over that time.
    WorkRate,
    /// A column of its own, with the metric's key.
    Column,
}

impl Derived {
    /// `time`, `counted_rate`, `moved_rate`, `work_rate` or `column`.
    pub fn name(self) -> &'static str {
        match self {
            Derived::Time => "time",
            Derived::CountedRate => "counted_rate",
            Derived::MovedRate => "moved_rate",
            Derived::WorkRate => "work_rate",
            Derived::Column => "column",
        }
    }
}

/// The probe of this name.
pub fn find(key: &str) -> Result<&'static Description, ProbeError> {
    let found = CATALOGUE.iter().find(|probe| probe.key == key);
    found
        .copied()
        .ok_or_else(|| ProbeError::unknown("probe", key, CATALOGUE.iter().map(|probe| probe.key)))
}

impl Description {
    /// The axis of this name.
    pub fn axis(&self, key: &str) -> Result<&'static Axis, ProbeError> {
        let found = self.axes.iter().find(|axis| axis.key == key);
        let what = "axis";
        found.ok_or_else(|| ProbeError::unknown(what, key, self.axes.iter().map(|axis| axis.key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_probe_describes_itself() {
        let keys: BTreeSet<_> = CATALOGUE.iter().map(|probe| probe.key).collect();
        assert_eq!(keys.len(), CATALOGUE.len());
        for probe in CATALOGUE {
            assert!(std::ptr::eq(find(probe.key).unwrap(), *probe));
            for text in [
                probe.summary,
                probe.description,
                probe.source,
                probe.waived,
                probe.table,
            ] {
                assert!(!text.is_empty(), "{}", probe.key);
            }
            assert!(!probe.metrics.is_empty(), "{}", probe.key);
            let axes: BTreeSet<_> = probe.axes.iter().map(|axis| axis.key).collect();
            assert_eq!(axes.len(), probe.axes.len(), "{}", probe.key);
            if let Some(size) = probe.size_axis {
                assert_eq!(probe.axis(size).unwrap().kind, AxisKind::Bytes);
            }
            // The defaults alone are an assignment.
            Assignment::parse(probe, &[]).unwrap();
        }
    }
}
