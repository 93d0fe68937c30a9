//! What a method proposes: a schedule with the policy to run it, and how it came about.

use crate::Result;
use linkwright_core::Issue;
use linkwright_schedule::Schedule;
use std::fmt;
use std::sync::Arc;

/// How a schedule came about: a value of its method's own type, whose words go into the header of the schedule's file.
#[derive(Clone)]
pub struct Recipe(Arc<dyn fmt::Display + Send + Sync>);

impl Recipe {
    /// The recipe that `words` says.
    pub fn new(words: impl fmt::Display + Send + Sync + 'static) -> Self {
        Recipe(Arc::new(words))
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipe({self})")
    }
}

/// Key of the method whose candidates are the known algorithms: what the others find is compared with its best.
pub const KNOWN: &str = "library";

/// Key of the method whose candidates are known algorithms, transformed.
pub const TRANSFORMED: &str = "portfolio";

/// A schedule that is there.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Key of the method that proposes it.
    pub method: &'static str,
    /// How it came about.
    pub recipe: Recipe,
    /// The schedule, before it is lowered.
    pub schedule: Arc<Schedule>,
    /// Policy of its lanes.
    pub issue: Issue,
    /// Name of the path; that of the problem where absent.
    pub path: Option<String>,
}

/// What makes a schedule.
pub type Make = Arc<dyn Fn() -> Result<Arc<Schedule>> + Send + Sync>;

/// A schedule that is made only while it is priced, so that a long list of them needs no memory. It must be the same
/// each time.
#[derive(Clone)]
pub struct Draft {
    /// Key of the method that proposes it.
    pub method: &'static str,
    /// How it comes about.
    pub recipe: Recipe,
    /// Policies to try, best guess first; the fastest counts.
    pub issues: Vec<Issue>,
    /// Name of the path; that of the problem where absent.
    pub path: Option<String>,
    /// Operations that it may have, roughly.
    pub operations: u64,
    /// Makes the schedule, before it is lowered.
    pub make: Make,
}

impl From<Candidate> for Draft {
    fn from(candidate: Candidate) -> Self {
        let schedule = candidate.schedule;
        Draft {
            method: candidate.method,
            recipe: candidate.recipe,
            issues: vec![candidate.issue],
            path: candidate.path,
            operations: schedule.ops().len() as u64,
            make: Arc::new(move || Ok(schedule.clone())),
        }
    }
}
