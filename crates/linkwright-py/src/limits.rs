//! What no schedule of a collective beats.

use std::cmp::Reverse;

use linkwright_schedule::Collective;
use linkwright_sim::run::limits_of;
use linkwright_sim::Limit;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::machine::Machine;
use crate::options::Options;
use crate::simulate::choices;
use crate::sweep::shape as read_shape;

/// Every limit of a collective on `machine`, whatever the schedule, the largest first: `name, time_ps, what, bytes` and
/// `rate` in bytes per second, None where no bytes pass.
///
/// `shape` has the keywords of `Schedule.build`, `options` are those of `simulate`.
#[pyfunction]
#[pyo3(signature = (collective, machine, shape, options=None))]
pub fn limits<'py>(
    py: Python<'py>,
    collective: &str,
    machine: &Machine,
    shape: &Bound<'py, PyDict>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let Some(known) = Collective::from_name(collective) else {
        let message = format!("unknown collective `{collective}`");
        return Err(errors::raise("UnknownNameError", message));
    };
    let mut given = Options::new(Some(shape));
    let shape = read_shape(&mut given)?;
    given.finish()?;
    let mut asked = Options::new(options);
    let choices = choices(&mut asked, machine, 0)?;
    asked.finish()?;
    let described = &machine.described;
    let mut found = py
        .detach(|| limits_of(known, &shape, described, &choices))
        .map_err(errors::sim)?;
    found.0.sort_by_key(|limit| Reverse(limit.time));
    let row = |limit: &Limit| {
        let row = PyDict::new(py);
        row.set_item("name", limit.name)?;
        row.set_item("time_ps", limit.time.0)?;
        row.set_item("what", &limit.what)?;
        row.set_item("bytes", limit.bytes)?;
        row.set_item("rate", limit.rate.map(|rate| rate.0))?;
        Ok(row)
    };
    found.0.iter().map(row).collect()
}
