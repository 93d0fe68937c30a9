//! The description of a probe: axes, metrics, and what can be wrong with a question.

use crate::error::suggest;

/// One question: what may be varied and what is found.
#[derive(Debug)]
pub struct Description {
    /// Name, the same wherever it is answered.
    pub key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What one operation is, what is held constant, what the answer shows.
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
    /// When the probe is waived.
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
    /// The value if none is given.
    pub default: &'static str,
}

impl Axis {
    pub(super) const fn new(
        key: &'static str,
        kind: AxisKind,
        summary: &'static str,
        default: &'static str,
    ) -> Self {
        Axis {
            key,
            kind,
            summary,
            default,
        }
    }
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

    /// The closed list; empty if any number is allowed.
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

impl Metric {
    pub(super) const fn new(
        key: &'static str,
        unit: &'static str,
        better: Better,
        summary: &'static str,
        from: Derived,
    ) -> Self {
        Metric {
            key,
            unit,
            better,
            summary,
            from,
        }
    }
}

crate::words! {
    /// Which direction is better.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Better {
        /// A time.
        Low = "low",
        /// A rate.
        High = "high",
        /// Neither.
        Neither = "",
    }
}

crate::words! {
    /// How a metric follows from an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Derived {
        /// It is the time of one operation.
        Time = "time",
        /// Counted bytes over that time.
        CountedRate = "counted_rate",
        /// Moved bytes over that time.
        MovedRate = "moved_rate",
        /// The work of one operation, such as its floating-point operations, over that time.
        WorkRate = "work_rate",
        /// A column of its own, with the metric's key.
        Column = "column",
    }
}

impl Description {
    /// The axis of this name.
    pub fn axis(&self, key: &str) -> Result<&'static Axis, ProbeError> {
        let found = self.axes.iter().find(|axis| axis.key == key);
        let what = "axis";
        found.ok_or_else(|| ProbeError::unknown(what, key, self.axes.iter().map(|axis| axis.key)))
    }
}

/// A probe, axis or value that does not exist; names the thing, its state and the cure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// A probe or an axis that does not exist.
    #[error("unknown {what} `{name}`; {cure}")]
    Unknown {
        /// `probe` or `axis`.
        what: &'static str,
        /// As written.
        name: String,
        /// The name that was probably meant.
        cure: String,
    },
    /// A value that the axis cannot have.
    #[error("probe {probe}: axis {axis}: `{value}` is not {needed}")]
    BadValue {
        /// Key of the probe.
        probe: &'static str,
        /// Key of the axis.
        axis: &'static str,
        /// As written.
        value: String,
        /// What is needed instead.
        needed: String,
    },
}

impl ProbeError {
    pub(super) fn unknown<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        ProbeError::Unknown {
            what,
            name: name.to_string(),
            cure: suggest(name, known),
        }
    }
}
