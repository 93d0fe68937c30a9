//! Traffic patterns: who sends to whom, without anything to be achieved; one file each, one line
//! in [`REGISTRY`].
//!
//! A pattern is unordered: every message has a slot of its own at its destination, so none waits
//! for another and the network sees as much at once as the issue policy allows. Senders read the
//! same vector for all their messages. Only `ping_pong` is ordered, because its time is the
//! question. What is random follows from the seed alone; see [`random`].

mod drawn;
mod fixed;
mod ping_pong;
pub mod random;
mod star;
mod traffic;

pub use traffic::Traffic;

use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;

/// One pattern; describes itself.
pub struct Pattern {
    /// Name in snake case.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it stresses and how it is laid out, in a few sentences.
    pub description: &'static str,
    /// What it demands of the ranks, in words; empty when nothing beyond two ranks.
    pub needs: &'static str,
    /// Where it was published or is commonly used.
    pub source: &'static str,
    /// Make the schedule; [`ScheduleError::Waived`] where the ranks do not suit.
    pub build: fn(&Traffic) -> Result<Schedule>,
}

impl Pattern {
    /// `pattern/name`.
    pub fn key(&self) -> String {
        format!("pattern/{}", self.name)
    }

    /// The error of a pattern that cannot serve the ranks.
    pub fn waive(&self, reason: impl Into<String>) -> ScheduleError {
        ScheduleError::Waived {
            algorithm: self.key(),
            reason: reason.into(),
        }
    }
}

/// All patterns.
pub static REGISTRY: &[&Pattern] = &[
    &ping_pong::PATTERN,
    &fixed::PAIRS,
    &drawn::PERMUTATION,
    &drawn::UNIFORM,
    &star::HOT_SPOT,
    &star::ONE_TO_MANY,
    &fixed::COMPLEMENT,
    &fixed::NEIGHBOUR,
    &fixed::TRANSPOSE,
    &fixed::TORNADO,
];

/// The pattern called `name`, with or without `pattern/` before it.
pub fn find(name: &str) -> Result<&'static Pattern> {
    let bare = name.strip_prefix("pattern/").unwrap_or(name);
    let mut known = REGISTRY.iter().copied();
    known
        .find(|pattern| pattern.name == bare)
        .ok_or_else(|| ScheduleError::UnknownPattern {
            name: name.to_string(),
            nearest: nearest(bare),
        })
}

fn nearest(name: &str) -> Option<String> {
    let scored = REGISTRY
        .iter()
        .map(|pattern| (strsim::jaro_winkler(name, pattern.name), pattern.name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then(|| best.1.to_string())
}
