//! Reads instead of writes, as a part of recipes.
//!
//! A search takes [`pull`] as it takes any transform: what it saves depends on what a path announces, on the lanes of a
//! rank, and on who has to be told that data were read.

use linkwright_schedule::error::Result;
use linkwright_schedule::pull::{pull, Pulled};
use linkwright_schedule::Schedule;
use std::fmt;

/// Which data receivers read, and on how many lanes in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reads {
    /// Which data.
    pub which: Pulled,
    /// Lanes of each reader; those of the writes where absent.
    pub lanes: Option<u32>,
}

impl Reads {
    /// Those that a search tries.
    pub const ALL: [Reads; 4] = [
        Reads::of(Pulled::Initial, None),
        Reads::of(Pulled::Initial, Some(4)),
        Reads::of(Pulled::Everything, None),
        Reads::of(Pulled::Everything, Some(4)),
    ];

    const fn of(which: Pulled, lanes: Option<u32>) -> Self {
        Reads { which, lanes }
    }

    /// The schedule with these reads.
    pub fn apply(self, schedule: &Schedule) -> Result<Schedule> {
        pull(schedule, self.which, self.lanes)
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.which {
            Pulled::Initial => "initial data read",
            Pulled::Everything => "all data read",
        })?;
        match self.lanes {
            None => Ok(()),
            Some(1) => f.write_str(" on 1 lane"),
            Some(lanes) => write!(f, " on {lanes} lanes"),
        }
    }
}
