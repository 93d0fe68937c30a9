//! What a simulation adds to a schedule: places, costs, issue policy, arrival times.

use crate::error::SimError;
use crate::messages::Networks;
use linkwright_core::machine::{Nearness, Path};
use linkwright_core::{EndpointId, TimePs};
use std::fmt;
use std::str::FromStr;

/// How many transfers of a lane may be under way at once.
///
/// Counted are puts, gets and multicasts; notices and local operations never wait for a place. What
/// frees a place is the path's `completion`; the lane then pays the path's `barrier`, and on a path
/// with `signal` the notices to the receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Issue {
    /// Each transfer is complete before the next is issued.
    #[default]
    Blocking,
    /// Up to this many under way; each completion frees one place.
    Window(u32),
    /// Up to this many are issued, then the lane waits for all of them.
    Batch(u32),
    /// No bound; the lane never waits.
    Unlimited,
}

impl FromStr for Issue {
    type Err = SimError;

    /// `blocking`, `window(k)`, `batch(k)` or `unlimited`.
    fn from_str(text: &str) -> Result<Self, SimError> {
        let counted = |name: &str| {
            let inside = text
                .strip_prefix(name)?
                .strip_prefix('(')?
                .strip_suffix(')')?;
            inside.parse::<u32>().ok().filter(|&k| k > 0)
        };
        match (text, counted("window"), counted("batch")) {
            ("blocking", ..) => Ok(Issue::Blocking),
            ("unlimited", ..) => Ok(Issue::Unlimited),
            (_, Some(k), _) => Ok(Issue::Window(k)),
            (_, _, Some(k)) => Ok(Issue::Batch(k)),
            _ => Err(SimError::Option {
                option: "issue",
                problem: format!(
                    "`{text}` is not a policy; write blocking, window(k), batch(k) or unlimited, with k of at least 1"
                ),
            }),
        }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Issue::Blocking => f.write_str("blocking"),
            Issue::Window(k) => write!(f, "window({k})"),
            Issue::Batch(k) => write!(f, "batch({k})"),
            Issue::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// Everything that the engine needs besides the schedule and the fabric.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Endpoint of each participant, ranks first.
    pub placement: Vec<EndpointId>,
    /// Software costs.
    pub path: Path,
    /// Policy of every lane.
    pub issue: Issue,
    /// Networks of the machine by hint.
    pub networks: Networks,
    /// When each rank arrives; empty when all arrive at zero.
    pub arrivals: Vec<TimePs>,
    /// Whether combinations pay for their arithmetic, not only for the handling around it.
    pub arithmetic: bool,
    /// Rate of [`linkwright_schedule::ir::OpKind::Compute`], where the schedule computes.
    pub operations_per_s: Option<f64>,
    /// Seed of whatever the fabric draws.
    pub seed: u64,
    /// Whether to keep the times of every operation.
    pub record_operations: bool,
    /// Which ranks are near each other.
    pub nearness: Nearness,
    /// Sets of buffers between which repetitions alternate, where ranks move data themselves.
    pub buffer_sets: u32,
}

impl Setup {
    /// Participant `i` on endpoint `i`, blocking, everyone at zero.
    pub fn new(participants: u32, path: Path) -> Self {
        Setup {
            placement: (0..participants).map(EndpointId).collect(),
            path,
            issue: Issue::default(),
            networks: Networks::default(),
            arrivals: Vec::new(),
            arithmetic: true,
            operations_per_s: None,
            seed: 0,
            record_operations: false,
            nearness: Nearness::default(),
            buffer_sets: 1,
        }
    }

    /// Sizes that fit the schedule.
    pub(crate) fn check(&self, ranks: u32, memories: u32) -> Result<(), SimError> {
        let option = |option, problem| Err(SimError::Option { option, problem });
        let participants = (ranks + memories) as usize;
        if self.placement.len() != participants {
            let places = self.placement.len();
            return option(
                "placement",
                format!("{places} places for {participants} participants; give one for each"),
            );
        }
        if !self.arrivals.is_empty() && self.arrivals.len() != ranks as usize {
            let times = self.arrivals.len();
            return option(
                "skew",
                format!("{times} arrival times for {ranks} ranks; give one for each"),
            );
        }
        if matches!(self.issue, Issue::Window(0) | Issue::Batch(0)) {
            return option("issue", "0 transfers at once; at least 1 is needed".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in ["blocking", "window(3)", "batch(12)", "unlimited"] {
            assert_eq!(text.parse::<Issue>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "window",
            "window()",
            "window(0)",
            "window(-1)",
            "batch(3",
            "Blocking",
        ] {
            let error = text.parse::<Issue>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{text}` is not a policy")),
                "{error}"
            );
        }
    }
}
