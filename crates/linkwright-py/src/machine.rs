//! `Machine`: a described machine.

use crate::errors;
use linkwright_core::machine::unit::UNITS;
use linkwright_core::machine::{
    EndpointKind, Grid, Machine as Described, OpenSize, Recorder, Status,
};
use linkwright_sim::fabrics as models;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeSet;

/// A machine read from a machine file.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Machine {
    pub described: Described,
}

/// Let the fabric and the models of probes read their parameters, on the smallest size where it is open.
fn check(described: &Described) -> PyResult<()> {
    let smallest = match described.open_size() {
        Some(OpenSize::Count) => described.with_endpoints(2),
        Some(OpenSize::Grid) => described.with_grid(Grid {
            columns: 2,
            rows: 2,
        }),
        None => Ok(described.clone()),
    };
    let smallest = smallest.map_err(errors::machine)?;
    models::build(&smallest).map_err(errors::sim)?;
    linkwright_sim::probes::check(&smallest).map_err(errors::sim)
}

/// `units` of a number, by dimension; `statuses`; and the `positive` dimensions, which cannot be zero.
#[pyfunction]
pub fn machine_numbers(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
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
    let found = PyDict::new(py);
    found.set_item("units", units)?;
    found.set_item("positive", positive)?;
    found.set_item("statuses", Status::ALL.map(Status::name))?;
    Ok(found)
}

/// Tables of machine files -> key -> `required`, and the `forms` (name, words) that a value may have.
///
/// The keys are those that the readers of these `(text, file)` asked for; a schema is made of them. A table is
/// named as in `fabric{loggp}.level[]`; `*` stands for any name.
#[pyfunction]
pub fn machine_keys<'py>(
    py: Python<'py>,
    files: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let recorder = Recorder::default();
    for (text, file) in &files {
        check(&Described::recorded(text, file, &recorder).map_err(errors::machine)?)?;
    }
    let tables = PyDict::new(py);
    for (name, table) in recorder.tables() {
        let keys = PyDict::new(py);
        for (key, forms) in &table.keys {
            let row = PyDict::new(py);
            row.set_item("required", table.required.contains(key))?;
            let forms: Vec<_> = forms.iter().map(|f| (f.name, f.words.clone())).collect();
            row.set_item("forms", forms)?;
            keys.set_item(key, row)?;
        }
        tables.set_item(name, keys)?;
    }
    Ok(tables)
}

#[pymethods]
impl Machine {
    /// Read the text of a machine file; `file` is its name, for messages.
    ///
    /// Only a fabric and the models of probes know their own keys. They read them here, so that a misspelt key
    /// is one error, rather than one in each experiment.
    #[staticmethod]
    fn parse(text: &str, file: &str) -> PyResult<Self> {
        let described = Described::parse(text, file).map_err(errors::machine)?;
        check(&described)?;
        Ok(Machine { described })
    }

    /// The machine with `ranks` endpoints, where its file leaves the number open.
    fn with_endpoints(&self, ranks: usize) -> PyResult<Self> {
        let described = self
            .described
            .with_endpoints(ranks)
            .map_err(errors::machine)?;
        Ok(Machine { described })
    }

    /// The machine with a grid of `columns` x `rows`, where its file leaves it open.
    fn with_grid(&self, columns: u32, rows: u32) -> PyResult<Self> {
        let grid = Grid { columns, rows };
        let described = self.described.with_grid(grid).map_err(errors::machine)?;
        Ok(Machine { described })
    }

    #[getter]
    fn name(&self) -> &str {
        self.described.name()
    }

    #[getter]
    fn summary(&self) -> &str {
        self.described.summary()
    }

    #[getter]
    fn description(&self) -> &str {
        self.described.description()
    }

    #[getter]
    fn sources(&self) -> Vec<String> {
        self.described.sources().to_vec()
    }

    /// Kind of the fabric, such as `loggp`.
    #[getter]
    fn fabric(&self) -> &str {
        self.described.fabric_kind()
    }

    /// Names of the paths, the default first.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.described
            .paths()
            .iter()
            .map(|path| path.name.clone())
            .collect()
    }

    /// Names of the networks, in the order of their numbers.
    #[getter]
    fn networks(&self) -> Vec<String> {
        self.described.hints().networks().to_vec()
    }

    /// Number of rank endpoints; 0 while the size is open.
    #[getter]
    fn ranks(&self) -> usize {
        self.described.ranks()
    }

    /// Number of memory endpoints.
    #[getter]
    fn memories(&self) -> usize {
        self.described.memories()
    }

    /// What is open: `ranks`, `grid` or `None`.
    #[getter]
    fn open_size(&self) -> Option<&'static str> {
        self.described.open_size().map(|open| match open {
            OpenSize::Count => "ranks",
            OpenSize::Grid => "grid",
        })
    }

    /// (columns, rows) of all places, hidden ones included, where they form a grid.
    #[getter]
    fn grid(&self) -> Option<(u32, u32)> {
        self.described.grid().map(|grid| (grid.columns, grid.rows))
    }

    /// The machine with another value for one number or choice; it is then listed as assumed.
    fn with_value(&self, key: &str, value: &str) -> PyResult<Self> {
        let described = self
            .described
            .with_value(key, value)
            .map_err(errors::machine)?;
        Ok(Machine { described })
    }

    /// (columns, rows) of the ranks, where they form a grid.
    #[getter]
    fn rank_grid(&self) -> Option<(u32, u32)> {
        self.described
            .rank_grid()
            .map(|grid| (grid.columns, grid.rows))
    }

    /// The hierarchy from outermost to innermost: `name, count` each.
    fn levels(&self) -> Vec<(String, usize)> {
        let levels = self.described.levels().iter();
        levels
            .map(|level| (level.name.clone(), level.count))
            .collect()
    }

    /// Endpoints, ranks first: `name, kind, x, y` each.
    fn endpoints<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |endpoint: &linkwright_core::machine::Endpoint| {
            let row = PyDict::new(py);
            row.set_item("name", &endpoint.name)?;
            let memory = endpoint.kind == EndpointKind::Memory;
            row.set_item("kind", if memory { "memory" } else { "rank" })?;
            row.set_item("x", endpoint.place.map(|place| place.x))?;
            row.set_item("y", endpoint.place.map(|place| place.y))?;
            Ok(row)
        };
        self.described.endpoints().iter().map(row).collect()
    }

    /// Every number of the file: `key, value, unit, status, source` each.
    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |number: linkwright_core::machine::NumberRow| {
            let row = PyDict::new(py);
            row.set_item("key", number.key)?;
            row.set_item("value", number.value)?;
            row.set_item("unit", number.unit)?;
            row.set_item("status", number.status.name())?;
            row.set_item("source", number.source)?;
            Ok(row)
        };
        self.described.numbers().into_iter().map(row).collect()
    }

    /// The structural rules of the model: `name, statement, evidence, post_hoc` each.
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |rule: &linkwright_core::machine::Rule| {
            let row = PyDict::new(py);
            row.set_item("name", &rule.name)?;
            row.set_item("statement", &rule.statement)?;
            row.set_item("evidence", &rule.evidence)?;
            row.set_item("post_hoc", rule.post_hoc)?;
            Ok(row)
        };
        self.described.rules().iter().map(row).collect()
    }

    /// How many numbers are fitted.
    #[getter]
    fn fitted(&self) -> usize {
        self.described.fitted()
    }

    /// Bytes of each described level of local memory, nearest first.
    fn memory_levels(&self) -> Vec<u64> {
        linkwright_sim::probes::memory_levels(&self.described)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Machine {}: {}>",
            self.described.name(),
            self.described.summary()
        )
    }
}
