//! Why a search cannot begin.

use linkwright_schedule::ScheduleError;
use thiserror::Error;

/// Result of a search.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a search cannot begin.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The network cannot be searched.
    #[error("{0}")]
    Network(String),
    /// The schedule cannot be written.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}
