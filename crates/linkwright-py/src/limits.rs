//! What no schedule of a collective beats.

use std::cmp::Reverse;

use linkwright_schedule::Collective;
use linkwright_sim::run::limits_of;
use pyo3::prelude::*;

use crate::answer::Limit;
use crate::errors;
use crate::hints::Named;
use crate::how::How;
use crate::machine::Machine;
use crate::options::Options;
use crate::sweep::shape as read_shape;

/// Every limit of a collective on `machine`, whatever the schedule, the largest first.
///
/// `shape` has the keywords of `Schedule.build`.
#[pyfunction]
pub fn limits(
    py: Python<'_>,
    machine: &Machine,
    collective: &str,
    shape: Named<'_>,
    how: &How,
) -> PyResult<Vec<Limit>> {
    let Some(known) = Collective::from_name(collective) else {
        let message = format!("unknown collective `{collective}`");
        return Err(errors::raise("UnknownNameError", message));
    };
    let mut given = Options::new(Some(shape));
    let shape = read_shape(&mut given)?;
    given.finish()?;
    let described = &machine.described;
    let choices = how.on(described)?;
    let mut found = py
        .detach(|| limits_of(known, &shape, described, &choices))
        .map_err(errors::sim)?;
    found.0.sort_by_key(|limit| Reverse(limit.time));
    Ok(found.0.into_iter().map(Limit).collect())
}
