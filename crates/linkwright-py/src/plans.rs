//! Schedules in files.

use crate::errors;
use crate::hints::{self, row, Typed};
use crate::schedule::Schedule;
use linkwright_plans::{Format, FORMATS};
use pyo3::prelude::*;

/// All formats of schedules in files: `key, summary, description, source, suffix, reads`.
#[pyfunction]
pub fn plan_formats(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::FormatRow>>> {
    let entry = |format: &&Format| {
        Ok(row!(
            py,
            ..format.{key, summary, description, source, suffix},
            reads = format.read.is_some(),
        ))
    };
    FORMATS.iter().map(entry).collect()
}

/// The schedule in `content`, in whichever format it is; `file` is its name, for messages.
///
/// A plan of another tool is verified, and has the smallest size that its chunks allow.
#[pyfunction]
pub fn read_schedule(py: Python<'_>, content: &str, file: &str) -> PyResult<Schedule> {
    let read = py.detach(|| linkwright_plans::read(content));
    read.map(Schedule::new)
        .map_err(|error| errors::plan(file, &error))
}
