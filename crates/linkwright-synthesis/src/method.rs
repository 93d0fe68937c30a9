//! The methods: one file for each in `methods/`, one line in [`METHODS`], one test.

use crate::judge::Judge;
use crate::methods::{composition, flows, library, matching, packing, portfolio};
use crate::problem::Problem;
use crate::Result;
use linkwright_schedule::ScheduleError;

/// One way to find schedules; describes itself.
pub struct Method {
    /// Name, in snake case.
    pub key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it looks at and when it is good, in a few sentences.
    pub description: &'static str,
    /// Where the idea was published.
    pub source: &'static str,
    /// Gives candidates to the judge until it has no more, or no time is left.
    pub propose: fn(&Problem, &mut Judge) -> Result<()>,
}

/// All methods, in the order in which they run.
pub static METHODS: &[&Method] = &[
    &library::METHOD,
    &portfolio::METHOD,
    &composition::METHOD,
    &matching::METHOD,
    &packing::METHOD,
    &flows::METHOD,
];

/// The methods of these names, in the order of the registry; all where none is named.
pub fn chosen(keys: &[String]) -> Result<Vec<&'static Method>> {
    let known = |key: &&String| METHODS.iter().all(|method| method.key != key.as_str());
    if let Some(unknown) = keys.iter().find(known) {
        let names: Vec<&str> = METHODS.iter().map(|method| method.key).collect();
        let problem = format!("no method `{unknown}`; known: {}", names.join(", "));
        return Err(ScheduleError::Shape(problem).into());
    }
    let wanted = |method: &&&Method| keys.is_empty() || keys.iter().any(|key| key == method.key);
    Ok(METHODS.iter().filter(wanted).copied().collect())
}
