//! Registries as lists of dictionaries.

use crate::errors;
use crate::schedule::shape;
use linkwright_schedule::{collectives as algorithm_files, patterns as pattern_files, Collective};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// All algorithms: `key, collective, name, summary, description, cost, needs, source, folds`.
#[pyfunction]
pub fn algorithms(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |algorithm: &&algorithm_files::Algorithm| {
        let row = PyDict::new(py);
        row.set_item("key", algorithm.key())?;
        row.set_item("collective", algorithm.collective.name())?;
        row.set_item("name", algorithm.name)?;
        row.set_item("summary", algorithm.summary)?;
        row.set_item("description", algorithm.description)?;
        row.set_item("cost", algorithm.cost)?;
        row.set_item("needs", algorithm.needs)?;
        row.set_item("source", algorithm.source)?;
        row.set_item("folds", algorithm.program.is_some())?;
        Ok(row)
    };
    algorithm_files::REGISTRY.iter().map(entry).collect()
}

/// All traffic patterns: `key, name, summary, description, needs, source`.
#[pyfunction]
pub fn patterns(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |pattern: &&pattern_files::Pattern| {
        let row = PyDict::new(py);
        row.set_item("key", pattern.key())?;
        row.set_item("name", pattern.name)?;
        row.set_item("summary", pattern.summary)?;
        row.set_item("description", pattern.description)?;
        row.set_item("needs", pattern.needs)?;
        row.set_item("source", pattern.source)?;
        Ok(row)
    };
    pattern_files::REGISTRY.iter().map(entry).collect()
}

/// Bytes that all messages of a traffic pattern move together; the arguments are those of `Schedule.pattern`.
#[pyfunction]
#[pyo3(signature = (key, ranks, elements, *, element_bytes=1, root=0, grid=None, count=1, both_ways=false))]
#[allow(clippy::too_many_arguments)] // the keywords of one Python function
pub fn pattern_bytes(
    key: &str,
    ranks: u32,
    elements: u64,
    element_bytes: u32,
    root: u32,
    grid: Option<Vec<u32>>,
    count: u32,
    both_ways: bool,
) -> PyResult<u64> {
    let traffic = pattern_files::Traffic {
        count,
        both_ways,
        ..pattern_files::Traffic::new(shape(ranks, elements, element_bytes, root, grid))
    };
    let pattern = pattern_files::find(key).map_err(errors::schedule)?;
    Ok(pattern.bytes(&traffic))
}

/// All collectives: `key, blocked, rooted, reduces`; a blocked one counts S as p equal blocks.
#[pyfunction]
pub fn collectives(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |collective: Collective| {
        let row = PyDict::new(py);
        row.set_item("key", collective.name())?;
        row.set_item("blocked", collective.is_blocked())?;
        row.set_item("rooted", collective.is_rooted())?;
        row.set_item("reduces", collective.reduces())?;
        Ok(row)
    };
    let known = Collective::ALL.into_iter();
    known
        .filter(|&collective| collective != Collective::Pattern)
        .map(entry)
        .collect()
}

/// `bus_bw / alg_bw` of a collective over `ranks` ranks; None for an unknown collective.
#[pyfunction]
pub fn bus_factor(collective: &str, ranks: u32) -> Option<f64> {
    Collective::from_name(collective).map(|known| known.bus_factor(ranks))
}
