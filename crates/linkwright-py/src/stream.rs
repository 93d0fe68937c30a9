//! The instruction stream of a schedule, for walkers in Python and on a GPU.

use linkwright_exec::threads::stream::{self, Code};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::hints::{self, row, Column, Named, Typed};
use crate::schedule::Schedule;
use crate::threads::only_run_options;

/// Codes of instructions by name.
#[pyfunction]
pub fn instruction_codes(py: Python<'_>) -> PyResult<Typed<'_, hints::Codes>> {
    let table = PyDict::new(py);
    for (name, code) in Code::ALL {
        table.set_item(name, code as u32)?;
    }
    Ok(Typed::new(table))
}

/// How late each rank comes to each repetition, in nanoseconds, by (repetition, rank). Options: `skew, seed`.
#[pyfunction]
#[pyo3(signature = (ranks, repetitions, options=None))]
pub fn arrival_delays<'py>(
    py: Python<'py>,
    ranks: u32,
    repetitions: u64,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, Column<f64>>> {
    let (data, run) = only_run_options(options)?;
    run.skew.check(ranks).map_err(errors::skew)?;
    let delay = |number: u64| (0..ranks).map(move |rank| (rank, number));
    let delays = (0..repetitions).flat_map(delay);
    let delays = delays.map(|(rank, number)| run.skew.delay_ns(rank as usize, data.seed, number));
    Ok(Typed::new(delays.collect::<Vec<f64>>().into_pyarray(py)))
}

/// The program of all ranks in flat tables; see `linkwright.executors.cuda.stream`. Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (schedule, options=None))]
pub fn instruction_stream<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, hints::StreamColumns>> {
    let (data, _) = only_run_options(options)?;
    let ordered = schedule.proved(py)?;
    let encoded = py.detach(|| stream::encode(ordered, data));
    let encoded = encoded.map_err(errors::exec)?;
    let flat = |rows: Vec<[u64; 3]>| rows.into_flattened().into_pyarray(py);
    let instructions = encoded.instructions.into_flattened();
    let pieces = encoded.pieces.into_flattened();
    let layout = encoded.layout;
    let firsts = layout.participant_first.into_pyarray(py);
    let names = ordered.buffers.iter().map(|buffer| buffer.name.clone());
    Ok(row!(
        py,
        rank_first = encoded.rank_first.into_pyarray(py),
        instructions = instructions.into_pyarray(py),
        waits = flat(encoded.waits),
        raises = flat(encoded.raises),
        pieces = pieces.into_pyarray(py),
        readers = encoded.readers.into_pyarray(py),
        participant_first = firsts,
        buffer_first = layout.buffer_first.into_pyarray(py),
        buffer_bytes = layout.buffer_bytes.into_pyarray(py),
        buffers = names.collect::<Vec<_>>(),
    ))
}

/// All memory of a schedule in one array: `initial`, as `reference` leaves it, and how many elements of that
/// the postcondition names (`checked_elements`). Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (schedule, options=None))]
pub fn schedule_memory<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, hints::MemoryColumns>> {
    let (data, _) = only_run_options(options)?;
    let ordered = schedule.proved(py)?;
    let found = py.detach(|| {
        let initial = stream::initial_memory(ordered, data)?;
        Ok((initial, stream::reference_memory(ordered, data)?))
    });
    let (initial, (reference, checked)) = found.map_err(errors::exec)?;
    Ok(row!(
        py,
        initial = initial.into_pyarray(py),
        reference = reference.into_pyarray(py),
        checked_elements = checked,
    ))
}
