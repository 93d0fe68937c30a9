//! What goes into a search and comes out of it: when to end, what is said of a candidate, who has won.

use crate::candidate::Candidate;
use crate::kept::Kept;
use linkwright_core::TimePs;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

/// What the judge says of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes this long, with the best of its issue policies.
    Time(TimePs),
    /// It takes longer than the incumbent.
    Slower,
    /// It cannot run, and why.
    Refused(String),
    /// Nobody looked at it: the time is over.
    Late,
}

impl Verdict {
    /// The time, where there is one.
    pub fn time(&self) -> Option<TimePs> {
        match self {
            Verdict::Time(time) => Some(*time),
            _ => None,
        }
    }
}

/// The best candidate so far, proved.
#[derive(Clone, Debug)]
pub struct Winner {
    /// What was proposed.
    pub candidate: Candidate,
    /// Its makespan.
    pub time: TimePs,
    /// Candidates that had been priced when it won, those of its batch included.
    pub tried: u64,
    /// Time since the search began.
    pub elapsed: Duration,
}

impl Winner {
    /// The same as something that was priced.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            time: self.time,
            issue: self.candidate.issue,
            draft: self.candidate.clone().into(),
        }
    }
}

/// When to end, and with how many threads to work.
#[derive(Clone, Debug)]
pub struct Control {
    /// Set from outside to end the search as soon as possible.
    pub stop: Arc<AtomicBool>,
    /// How long to search.
    pub budget: Duration,
    /// Threads; 0 is one for each processor that this process may use.
    pub threads: usize,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            stop: Arc::default(),
            budget: Duration::MAX,
            threads: 0,
        }
    }
}

/// Called with each new winner.
pub type Report = Box<dyn FnMut(&Winner) + Send + Sync>;
