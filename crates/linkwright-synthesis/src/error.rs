//! Why a search cannot begin.

use linkwright_schedule::ScheduleError;
use linkwright_sim::SimError;
use thiserror::Error;

/// Result of a search.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a search cannot begin.
#[derive(Debug, Error)]
pub enum Error {
    /// The network cannot be searched.
    #[error("{0}")]
    Network(String),
    /// The machine cannot carry it.
    #[error(transparent)]
    Machine(#[from] SimError),
    /// The schedule cannot be written.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}
