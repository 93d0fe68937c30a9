//! What verify found: a proof in numbers, or an error.

use crate::ir::{BufferId, Schedule};
use thiserror::Error;

/// What was proved, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Operations.
    pub operations: u64,
    /// Messages among them, notices included.
    pub messages: u64,
    /// Notices among them.
    pub notices: u64,
    /// Edges.
    pub edges: u64,
    /// Chunks moved, counted per operation and target.
    pub chunk_moves: u64,
    /// Pairs of accesses to one chunk whose order was proved.
    pub hazards: u64,
    /// Operations whose hazards needed a look at the whole past.
    pub long_searches: u64,
    /// Whether contributions were compared as exact multisets; by fingerprints otherwise.
    pub exact: bool,
}

/// Why a schedule is refused; every message names the place, the state and the cure.
///
/// Operations are called as in the text form: `t7` is the operation with id 7.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerifyError {
    /// The buffers, sets or the spec cannot be what the collective needs.
    #[error("{0}")]
    Shape(String),
    /// An operation names something that does not exist, or its two sides differ.
    #[error("step {step}: t{op}: {problem}")]
    Bounds {
        /// Step of the author.
        step: u32,
        /// Operation.
        op: u32,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// An operation waits for what cannot come or what its rank cannot see.
    #[error("step {step}: rank {rank}: t{op} {problem}")]
    Order {
        /// Step of the author.
        step: u32,
        /// Operation.
        op: u32,
        /// The rank that waits.
        rank: u32,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// A chunk does not hold what it should.
    #[error("{}{place}: {buffer}[{chunk}] {problem}", at(.step))]
    Semantics {
        /// Step at which it went wrong; none where nothing ever happened to the chunk.
        step: Option<u32>,
        /// Participant that has the chunk.
        participant: u32,
        /// The participant as printed, `rank 2` or `memory 9`.
        place: String,
        /// Buffer name.
        buffer: String,
        /// Chunk index.
        chunk: u32,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// Two operations access a chunk, at least one writes, and nothing orders them.
    #[error("step {step}: {place}: {buffer}[{chunk}] {problem}")]
    Race {
        /// Step of the later operation.
        step: u32,
        /// The earlier operation.
        earlier: u32,
        /// The later operation.
        later: u32,
        /// Participant that has the chunk.
        participant: u32,
        /// The participant as printed, `rank 2` or `memory 9`.
        place: String,
        /// Buffer name.
        buffer: String,
        /// Chunk index.
        chunk: u32,
        /// What is wrong, and the cure.
        problem: String,
    },
}

fn at(step: &Option<u32>) -> String {
    match step {
        Some(step) => format!("step {step}: "),
        None => "at the end: ".to_string(),
    }
}

/// The name of a participant in messages.
pub(super) fn participant(schedule: &Schedule, participant: u32) -> String {
    match participant < schedule.ranks {
        true => format!("rank {participant}"),
        false => format!("memory {participant}"),
    }
}

/// (participant, buffer, chunk).
pub(super) type Place = (u32, BufferId, u32);

/// The error about the contents of one chunk.
pub(super) fn wrong(
    schedule: &Schedule,
    step: Option<u32>,
    (who, buffer, chunk): Place,
    problem: String,
) -> VerifyError {
    VerifyError::Semantics {
        step,
        participant: who,
        place: participant(schedule, who),
        buffer: schedule.buffer(buffer).name.clone(),
        chunk,
        problem,
    }
}
