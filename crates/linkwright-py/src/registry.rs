//! Registries as lists of dictionaries.

use linkwright_schedule::collectives;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// All algorithms: `key, collective, name, summary, description, cost, needs, source, reads_bytes`.
#[pyfunction]
pub fn algorithms(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |algorithm: &&collectives::Algorithm| {
        let row = PyDict::new(py);
        row.set_item("key", algorithm.key())?;
        row.set_item("collective", algorithm.collective.name())?;
        row.set_item("name", algorithm.name)?;
        row.set_item("summary", algorithm.summary)?;
        row.set_item("description", algorithm.description)?;
        row.set_item("cost", algorithm.cost)?;
        row.set_item("needs", algorithm.needs)?;
        row.set_item("source", algorithm.source)?;
        row.set_item("reads_bytes", algorithm.reads_bytes)?;
        Ok(row)
    };
    collectives::REGISTRY.iter().map(entry).collect()
}
