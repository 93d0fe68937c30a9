//! What a method of search is.

use crate::judge::Judge;
use crate::problem::Problem;
use crate::Result;

/// One way to find schedules; describes itself.
pub struct Method {
    /// Name, in snake case.
    pub key: &'static str,
    /// Share of the time, compared with the other methods.
    pub weight: u32,
    /// Whether it has anything to propose for a problem; if not, the others get its share of the time.
    pub serves: fn(&Problem) -> bool,
    /// One line.
    pub summary: &'static str,
    /// What it looks at and when it is good, in a few sentences.
    pub description: &'static str,
    /// Where the idea was published.
    pub source: &'static str,
    /// Gives candidates to the judge until it has no more, or no time is left.
    pub propose: fn(&Problem, &mut Judge) -> Result<()>,
}
