//! The methods: one file for each, one line in [`METHODS`], one test.

pub mod composition;
mod descent;
pub mod flows;
pub mod library;
pub mod matching;
pub mod packing;
pub mod portfolio;
pub mod refinement;
mod rehearsal;
pub mod serial;
mod transformed;

use crate::method::Method;
use crate::Result;
use linkwright_schedule::ScheduleError;

/// All methods, in the order in which they run.
pub static METHODS: &[&Method] = &[
    &library::METHOD,
    &portfolio::METHOD,
    &composition::METHOD,
    &matching::METHOD,
    &packing::METHOD,
    &flows::METHOD,
    &serial::METHOD,
    &refinement::METHOD,
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
