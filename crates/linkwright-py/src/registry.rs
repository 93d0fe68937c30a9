//! Registries as lists of dictionaries.

use crate::errors;
use crate::hints::{self, row, Typed};
use crate::schedule::shape;
use linkwright_schedule::{collectives as algorithm_files, patterns as pattern_files, Collective};
use pyo3::prelude::*;

/// All algorithms: `key, collective, name, summary, description, cost, needs, source, on_nodes, folds`.
#[pyfunction]
pub fn algorithms(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::AlgorithmRow>>> {
    let entry = |algorithm: &&algorithm_files::Algorithm| {
        Ok(row!(
            py,
            key = algorithm.key(),
            collective = algorithm.collective.name(),
            ..algorithm.{name, summary, description, cost, needs, source},
            on_nodes = algorithm.nodes != algorithm_files::NodeUse::Unused,
            folds = algorithm.program.is_some(),
        ))
    };
    algorithm_files::REGISTRY.iter().map(entry).collect()
}

/// All traffic patterns: `key, name, summary, description, needs, source`.
#[pyfunction]
pub fn patterns(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::PatternRow>>> {
    let entry = |pattern: &&pattern_files::Pattern| {
        Ok(row!(py, key = pattern.key(), ..pattern.{name, summary, description, needs, source}))
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

/// All collectives: `key, blocked, rooted, reduces, uneven`; a blocked one counts S as p equal blocks, an uneven one has an
/// exchange.
#[pyfunction]
pub fn collectives(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::CollectiveRow>>> {
    let entry = |collective: Collective| {
        Ok(row!(
            py,
            key = collective.name(),
            blocked = collective.is_blocked(),
            rooted = collective.is_rooted(),
            reduces = collective.reduces(),
            uneven = collective.is_uneven(),
        ))
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
