//! What a method of search is, and the list of them: one file each, one line below.

use crate::error::{Result, SynthesisError};
use crate::judge::Judge;
use crate::portfolio;
use crate::problem::Problem;

/// A way to find schedules; describes itself.
pub struct Method {
    /// Name on the command line.
    pub key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it tries, and when it is good.
    pub description: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Hand candidates to the judge until there are no more or the time is over.
    pub propose: fn(&Problem, &mut Judge) -> Result<()>,
}

/// All methods, in the order in which they are tried.
pub static METHODS: &[&Method] = &[&portfolio::METHOD];

/// The method with this key.
pub fn find(key: &str) -> Result<&'static Method> {
    let found = METHODS.iter().copied().find(|method| method.key == key);
    found.ok_or_else(|| {
        let known: Vec<&str> = METHODS.iter().map(|method| method.key).collect();
        SynthesisError::UnknownMethod {
            name: key.into(),
            known: known.join(", "),
        }
    })
}
