//! What verify found.

use thiserror::Error;

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
