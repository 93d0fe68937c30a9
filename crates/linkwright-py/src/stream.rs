//! The instruction stream of a schedule, for walkers in Python and on a GPU.

use linkwright_exec::threads::stream::{self, Code};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::schedule::Schedule;
use crate::threads::only_run_options;

/// Codes of instructions by name.
#[pyfunction]
pub fn instruction_codes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for (name, code) in Code::ALL {
        table.set_item(name, code as u32)?;
    }
    Ok(table)
}

/// How late each rank comes to each repetition, in nanoseconds, by (repetition, rank). Options: `skew, seed`.
#[pyfunction]
#[pyo3(signature = (ranks, repetitions, options=None))]
pub fn arrival_delays<'py>(
    py: Python<'py>,
    ranks: u32,
    repetitions: u64,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (data, run) = only_run_options(options)?;
    run.skew.check(ranks).map_err(errors::skew)?;
    let delay = |number: u64| (0..ranks).map(move |rank| (rank, number));
    let delays = (0..repetitions).flat_map(delay);
    let delays = delays.map(|(rank, number)| run.skew.delay_ns(rank as usize, data.seed, number));
    Ok(delays.collect::<Vec<f64>>().into_pyarray(py))
}

/// The program of all ranks in flat tables; see `linkwright.executors.cuda.stream`. Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (schedule, options=None))]
pub fn instruction_stream<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (data, _) = only_run_options(options)?;
    let ordered = schedule.proved(py)?;
    let encoded = py.detach(|| stream::encode(ordered, data));
    let encoded = encoded.map_err(errors::exec)?;
    let table = PyDict::new(py);
    let flat = |rows: Vec<[u64; 3]>| rows.into_flattened().into_pyarray(py);
    table.set_item("rank_first", encoded.rank_first.into_pyarray(py))?;
    let instructions = encoded.instructions.into_flattened();
    table.set_item("instructions", instructions.into_pyarray(py))?;
    table.set_item("waits", flat(encoded.waits))?;
    table.set_item("raises", flat(encoded.raises))?;
    let pieces = encoded.pieces.into_flattened();
    table.set_item("pieces", pieces.into_pyarray(py))?;
    table.set_item("readers", encoded.readers.into_pyarray(py))?;
    let layout = encoded.layout;
    let firsts = layout.participant_first.into_pyarray(py);
    table.set_item("participant_first", firsts)?;
    table.set_item("buffer_first", layout.buffer_first.into_pyarray(py))?;
    table.set_item("buffer_bytes", layout.buffer_bytes.into_pyarray(py))?;
    let names = ordered.buffers.iter().map(|buffer| buffer.name.clone());
    table.set_item("buffers", names.collect::<Vec<_>>())?;
    Ok(table)
}

/// All memory of a schedule in one array: `initial`, as `reference` leaves it, and how many elements of that
/// the postcondition names (`checked_elements`). Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (schedule, options=None))]
pub fn schedule_memory<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (data, _) = only_run_options(options)?;
    let ordered = schedule.proved(py)?;
    let found = py.detach(|| {
        let initial = stream::initial_memory(ordered, data)?;
        Ok((initial, stream::reference_memory(ordered, data)?))
    });
    let (initial, (reference, checked)) = found.map_err(errors::exec)?;
    let table = PyDict::new(py);
    table.set_item("initial", initial.into_pyarray(py))?;
    table.set_item("reference", reference.into_pyarray(py))?;
    table.set_item("checked_elements", checked)?;
    Ok(table)
}
