//! Traffic patterns: who sends to whom, with no result to achieve. Each is one line in
//! [`REGISTRY`]; related patterns share a file.
//!
//! A pattern is unordered: every message has a slot of its own at its destination, so none waits
//! for another and the network sees as much at once as the issue policy allows. Senders read the
//! same vector for all their messages. Only `ping_pong` is ordered, because its time is the
//! question. What is random follows from the seed alone; see [`random`].

mod drawn;
mod fixed;
mod pattern;
mod ping_pong;
pub mod random;
mod star;
mod traffic;

pub use pattern::Pattern;
pub use traffic::Traffic;

use crate::error::{nearest, Result, ScheduleError};

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
            nearest: nearest(bare, REGISTRY.iter().map(|p| p.name.to_string())),
        })
}
