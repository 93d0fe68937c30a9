//! Reads instead of writes, as a part of recipes.
//!
//! A search takes [`pull`] as it takes any transform: what it saves depends on what a path announces, and on who has to be
//! told that data were read. In an allreduce the latter costs more than reads save, unless sums grow aside
//! ([`sums_aside`]).

use linkwright_schedule::error::Result;
use linkwright_schedule::pull::{pull, Pulled};
use linkwright_schedule::sums_aside::sums_aside;
use linkwright_schedule::{Collective, Schedule};
use std::fmt;

/// What receivers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reads {
    /// Which data.
    pub which: Pulled,
    /// Whether sums grow in scratch, so that no rank overwrites what others read.
    pub aside: bool,
}

/// Those that a search tries; the last two of an allreduce only.
const ALL: [Reads; 4] = [
    Reads::of(Pulled::Initial, false),
    Reads::of(Pulled::Everything, false),
    Reads::of(Pulled::Initial, true),
    Reads::of(Pulled::Everything, true),
];

impl Reads {
    /// Nothing but what is there from the start.
    pub const INITIAL: Reads = Reads::of(Pulled::Initial, false);

    const fn of(which: Pulled, aside: bool) -> Self {
        Reads { which, aside }
    }

    /// Those that a search for `collective` tries.
    pub fn all(collective: Collective) -> &'static [Reads] {
        match collective {
            Collective::Allreduce => &ALL,
            _ => &ALL[..2],
        }
    }

    /// The schedule with these reads.
    pub fn apply(self, schedule: &Schedule) -> Result<Schedule> {
        match self.aside {
            true => pull(&sums_aside(schedule)?, self.which, None),
            false => pull(schedule, self.which, None),
        }
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.which.name())?;
        f.write_str(if self.aside { ", sums aside" } else { "" })
    }
}
