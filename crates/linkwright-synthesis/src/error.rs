//! What can be wrong with a search.

use linkwright_schedule::ScheduleError;
use linkwright_sim::SimError;
use thiserror::Error;

/// An error about a search.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SynthesisError {
    /// The machine, the path or a simulation.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The shape.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Nothing that was tried runs on the machine.
    #[error("none of {tried} schedules runs on the machine; the first: {first}")]
    Nothing {
        /// Schedules that were tried.
        tried: usize,
        /// Why the first of them does not.
        first: String,
    },
    /// There was no time for a single schedule.
    #[error("the time was over before the first schedule was priced; give more of it")]
    NoTime,
    /// A method that does not exist.
    #[error("unknown method `{name}`; there are {known}")]
    UnknownMethod {
        /// What was asked for.
        name: String,
        /// The methods that there are.
        known: String,
    },
}

/// The result of a fallible step of a search.
pub type Result<T> = std::result::Result<T, SynthesisError>;
