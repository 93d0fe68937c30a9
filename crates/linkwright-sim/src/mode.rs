//! The two ways to simulate a rank-symmetric program without a schedule.

use std::fmt;

/// Which ranks are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One, on behalf of all.
    Folded,
    /// All of them, operation by operation.
    Streamed,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Folded => "folded",
            Mode::Streamed => "streamed",
        })
    }
}
