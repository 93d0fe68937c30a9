//! What machine files may hold: the keys that their readers ask for, units, names of endpoints.

use crate::errors;
use crate::hints::{self, row, Typed};
use crate::machine::check;
use crate::shelf::Shelf;
use linkwright_core::machine::unit::UNITS;
use linkwright_core::machine::{ClusterNetwork, Draft as Composed, File, Recorder, Status};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeSet;

/// `units` of a number, by dimension; `statuses`; and the `positive` dimensions, which cannot be zero.
#[pyfunction]
pub fn machine_numbers(py: Python<'_>) -> PyResult<Typed<'_, hints::MachineNumbers>> {
    let units = PyDict::new(py);
    let mut positive = BTreeSet::new();
    for unit in UNITS {
        let dimension = unit.dimension;
        if dimension.must_exceed_zero() {
            positive.insert(dimension.name());
        }
        if units.get_item(dimension.name())?.is_none() {
            let same = UNITS.iter().filter(|u| u.dimension == dimension);
            let same: Vec<&str> = same.map(|u| u.name).collect();
            units.set_item(dimension.name(), same)?;
        }
    }
    Ok(row!(
        py,
        units = units,
        positive = positive,
        statuses = Status::ALL.map(Status::name)
    ))
}

/// Tables of machine files -> key -> `required`, the `forms` (name, words) that a value may have, and the `meaning`.
///
/// The keys are those that the readers of these `(text, file)` asked for; a schema is made of them. A table is
/// named as in `fabric{loggp}.level[]`; `*` stands for any name. `shelf` reads the parts that they name.
#[pyfunction]
pub fn machine_keys<'py>(
    py: Python<'py>,
    files: Vec<(String, String)>,
    shelf: &Bound<'py, PyAny>,
) -> PyResult<Typed<'py, hints::Keys>> {
    let recorder = Recorder::default();
    for (text, name) in files {
        let shelf = Shelf::new(shelf);
        let draft = Composed::read(File { name, text }, &shelf, Some(recorder.clone()));
        check(&shelf.found(draft)?.machine().map_err(errors::machine)?)?;
    }
    keys(py, &recorder)
}

/// The same of the `(text, file)` of networks.
#[pyfunction]
pub fn network_keys<'py>(
    py: Python<'py>,
    files: Vec<(String, String)>,
) -> PyResult<Typed<'py, hints::Keys>> {
    let recorder = Recorder::default();
    for (text, name) in files {
        ClusterNetwork::read(&File { name, text }, Some(&recorder)).map_err(errors::machine)?;
    }
    keys(py, &recorder)
}

fn keys<'py>(py: Python<'py>, recorder: &Recorder) -> PyResult<Typed<'py, hints::Keys>> {
    let tables = PyDict::new(py);
    for (name, table) in recorder.tables() {
        let keys = PyDict::new(py);
        for (key, forms) in &table.keys {
            let forms: Vec<_> = forms.iter().map(|f| (f.name, f.words.clone())).collect();
            let required = table.required.contains(key);
            let meaning = table.meanings.get(key);
            let row: Typed<hints::KeyRow> =
                row!(py, required = required, forms = forms, meaning = meaning);
            keys.set_item(key, row)?;
        }
        tables.set_item(name, keys)?;
    }
    Ok(Typed::new(tables))
}

/// Names as few runs, as edges and lists of switches have them: `GPU 0..2` of three names that follow each other.
#[pyfunction]
pub fn runs_of_names(names: Vec<String>) -> Vec<String> {
    linkwright_core::machine::edges::runs(&names)
}
