//! Schedules in files.

use crate::errors;
use crate::schedule::Schedule;
use linkwright_plans::{Format, FORMATS};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// All formats of schedules in files: `key, summary, description, source, suffix, reads`.
#[pyfunction]
pub fn plan_formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |format: &&Format| {
        let row = PyDict::new(py);
        row.set_item("key", format.key)?;
        row.set_item("summary", format.summary)?;
        row.set_item("description", format.description)?;
        row.set_item("source", format.source)?;
        row.set_item("suffix", format.suffix)?;
        row.set_item("reads", format.read.is_some())?;
        Ok(row)
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
