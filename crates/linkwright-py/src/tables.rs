//! Tables of a run folder: Parquet files to NumPy columns, and Python's values to Parquet files.

use std::collections::HashMap;

use linkwright_tables::{Column, Compression, Error, Values};
use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::hints::{self, Typed};

fn refused(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The rows of a Parquet file, as its end claims.
#[pyfunction]
#[pyo3(signature = (content, /))]
pub fn table_rows(content: &[u8]) -> PyResult<u64> {
    linkwright_tables::rows(content.to_vec().into()).map_err(refused)
}

/// The columns of a Parquet file by name, `(values, there)` each. `there` says which rows have a value; None: all. The
/// values of a text are places in a list that comes as a third item.
#[pyfunction]
#[pyo3(signature = (content, /))]
pub fn read_table<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Typed<'py, hints::Table>> {
    let content = content.to_vec();
    let columns = py
        .detach(|| linkwright_tables::read(content.into()))
        .map_err(refused)?;
    let found = PyDict::new(py);
    for column in columns {
        let given = match column.values {
            Values::Text(values) => text(py, values)?,
            Values::Int64(values) => plain(py, values)?,
            Values::Int32(values) => plain(py, values)?,
            Values::Double(values) => plain(py, values)?,
            Values::Bool(values) => plain(py, values)?,
        };
        found.set_item(column.name, given)?;
    }
    Ok(Typed::new(found))
}

fn there<'py, T>(py: Python<'py>, values: &[Option<T>]) -> Option<Bound<'py, PyAny>> {
    let missing = values.iter().any(Option::is_none);
    missing.then(|| {
        let there: Vec<bool> = values.iter().map(Option::is_some).collect();
        there.into_pyarray(py).into_any()
    })
}

fn plain<'py, T: numpy::Element + Default>(
    py: Python<'py>,
    values: Vec<Option<T>>,
) -> PyResult<Bound<'py, PyAny>> {
    let there = there(py, &values);
    let values: Vec<T> = values.into_iter().map(Option::unwrap_or_default).collect();
    Ok((values.into_pyarray(py), there)
        .into_pyobject(py)?
        .into_any())
}

/// Millions of rows share few texts, so each crosses once.
fn text(py: Python<'_>, values: Vec<Option<String>>) -> PyResult<Bound<'_, PyAny>> {
    let there = there(py, &values);
    let mut places: HashMap<String, u32> = HashMap::new();
    let mut texts = Vec::new();
    let mut place = |text: Option<String>| match text {
        None => 0,
        Some(text) => *places.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            texts.len() as u32 - 1
        }),
    };
    let found: Vec<u32> = values.into_iter().map(&mut place).collect();
    Ok((found.into_pyarray(py), there, texts)
        .into_pyobject(py)?
        .into_any())
}

/// The Parquet file of `columns`, `(name, kind, may be null, values)` each, compressed by `snappy` or `zstd`.
#[pyfunction]
#[pyo3(signature = (columns, compression, metadata, /))]
pub fn write_table<'py>(
    py: Python<'py>,
    columns: Vec<(String, String, bool, Typed<'py, hints::Values>)>,
    compression: &str,
    metadata: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let compression = match compression {
        "snappy" => Compression::Snappy,
        "zstd" => Compression::Zstd,
        other => return Err(PyValueError::new_err(format!("no compression `{other}`"))),
    };
    let columns = columns
        .into_iter()
        .map(|(name, kind, nullable, values)| {
            let values = extracted(&kind, values.object())
                .map_err(|error| PyValueError::new_err(format!("column {name}: {error}")))?;
            Ok(Column::new(name, values, nullable))
        })
        .collect::<PyResult<Vec<_>>>()?;
    let metadata: Vec<_> = metadata
        .iter()
        .map(|(key, value)| (&key[..], &value[..]))
        .collect();
    let file = py
        .detach(|| linkwright_tables::write(&columns, compression, &metadata))
        .map_err(refused)?;
    Ok(PyBytes::new(py, &file))
}

fn extracted(kind: &str, values: &Bound<'_, PyAny>) -> PyResult<Values> {
    Ok(match kind {
        "string" => Values::Text(values.extract()?),
        "int64" => Values::Int64(values.extract()?),
        "int32" => Values::Int32(values.extract()?),
        "double" => Values::Double(values.extract()?),
        "bool" => Values::Bool(values.extract()?),
        other => return Err(PyValueError::new_err(format!("no type `{other}`"))),
    })
}
