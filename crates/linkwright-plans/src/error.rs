//! What is wrong with a plan.

use std::fmt;
use thiserror::Error;

/// Result of reading or writing a plan.
pub type Result<T> = std::result::Result<T, PlanError>;

/// What is wrong with a plan: where, what stands there, and the cure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct PlanError {
    /// A line, or an element such as `gpu 3, tb 2, step 5`; `None` where the whole plan is meant.
    pub place: Option<String>,
    /// What stands there, and the cure.
    pub problem: String,
}

impl PlanError {
    /// An error at `place`.
    pub fn at(place: impl Into<String>, problem: impl Into<String>) -> Self {
        PlanError {
            place: Some(place.into()),
            problem: problem.into(),
        }
    }

    /// An error of the plan as a whole.
    pub fn whole(problem: impl Into<String>) -> Self {
        PlanError {
            place: None,
            problem: problem.into(),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}
