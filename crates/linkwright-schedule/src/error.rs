//! Errors of schedules and of requests for them.

use thiserror::Error;

/// An error about a schedule; every variant names the thing, its state and the cure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The algorithm cannot serve this shape; not a failure of the user or of the algorithm.
    #[error("{algorithm}: waived: {reason}")]
    Waived {
        /// `collective/name`.
        algorithm: String,
        /// Why, and what would do.
        reason: String,
    },
    /// No such algorithm.
    #[error("no algorithm `{name}`{}; `linkwright list algorithms` shows all", suggestion(.nearest))]
    UnknownAlgorithm {
        /// What was asked for.
        name: String,
        /// Closest known key.
        nearest: Option<String>,
    },
    /// No such traffic pattern.
    #[error("no pattern `{name}`{}; `linkwright list patterns` shows all", suggestion(.nearest))]
    UnknownPattern {
        /// What was asked for.
        name: String,
        /// Closest known name.
        nearest: Option<String>,
    },
    /// The shape itself makes no sense.
    #[error("shape: {0}")]
    Shape(String),
    /// A participant that does not exist.
    #[error("step {step}: participant {participant} does not exist; there are {ranks} ranks and {memories} memories")]
    NoParticipant {
        /// Step of the author.
        step: u32,
        /// The participant named.
        participant: u32,
        /// Ranks of the schedule.
        ranks: u32,
        /// Memories of the schedule.
        memories: u32,
    },
    /// A chunk outside its buffer, or a buffer that the participant does not have.
    #[error("step {step}: participant {participant}: {buffer}[{chunk}]: {problem}")]
    NoChunk {
        /// Step of the author.
        step: u32,
        /// Participant addressed.
        participant: u32,
        /// Buffer name.
        buffer: String,
        /// Chunk index.
        chunk: u32,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// Two operations of one step write the same chunk and at least one overwrites.
    #[error("step {step}: participant {participant}: {buffer}[{chunk}] is written twice and not only by reductions; put one of the two into a later step")]
    DoubleWrite {
        /// Step of the author.
        step: u32,
        /// Participant written.
        participant: u32,
        /// Buffer name.
        buffer: String,
        /// Chunk index.
        chunk: u32,
    },
    /// Something else about one operation.
    #[error("step {step}: {problem}")]
    Operation {
        /// Step of the author.
        step: u32,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// The schedule outgrows 32-bit tables.
    #[error(
        "the schedule needs more than {0} operations, waits, buffers or chunks; use fewer ranks or slices, or simulate the algorithm folded or streamed, which stores no schedule"
    )]
    TooLarge(u64),
    /// Whoever asked for the schedule has given up ([`crate::patience`]).
    #[error("the schedule was abandoned while it was made; give it more time, or use fewer ranks")]
    Unwanted,
}

fn suggestion(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

/// Result of everything that makes schedules.
pub type Result<T> = std::result::Result<T, ScheduleError>;

/// The one of `known` that `name` was probably meant to be.
pub(crate) fn nearest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let scored = known.map(|key| (strsim::jaro_winkler(name, &key), key));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}
