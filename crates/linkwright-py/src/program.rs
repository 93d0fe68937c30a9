//! What an executor outside linkwright needs of a schedule: its operations, its data and the check of the result.

use linkwright_exec::buffers::AlignedBytes;
use linkwright_exec::program::{self, Moment};
use linkwright_exec::{dtype, lowered, ExecError};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::borrow::Cow;

use crate::errors;
use crate::hints::{self, row, Column, Named, Typed};
use crate::schedule::Schedule;
use crate::threads::only_run_options;

/// Codes of moments by name.
#[pyfunction]
pub fn moment_codes() -> Vec<(&'static str, u8)> {
    Moment::ALL
        .map(|moment| (moment.name(), moment as u8))
        .to_vec()
}

/// `schedule` with gets and puts in place of aggregations, for memories that ranks share; itself if it has none.
#[pyfunction]
pub fn without_aggregations(schedule: Bound<'_, Schedule>) -> PyResult<Bound<'_, Schedule>> {
    let (py, ordered) = (schedule.py(), schedule.get().ordered());
    let made = py.detach(|| lowered::without_aggregations(ordered, "executor"));
    match made.map_err(errors::exec)? {
        Cow::Borrowed(_) => Ok(schedule.clone()),
        Cow::Owned(made) => Bound::new(py, Schedule::new(made)),
    }
}

/// The operations of all ranks in flat tables; see `linkwright.executors.program`. Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (schedule, options=None))]
pub fn rank_programs<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, hints::RankProgramColumns>> {
    let (data, _) = only_run_options(options)?;
    let ordered = schedule.proved(py)?;
    let made = py.detach(|| program::program(ordered, data));
    let made = made.map_err(errors::exec)?;
    let kinds = made.kinds.iter().map(|kind| kind.name());
    let pieces = made.pieces.into_flattened();
    let waits = made.waits.into_flattened();
    let layout = made.layout;
    let firsts = layout.participant_first.windows(2);
    let bytes = firsts.map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    let names = ordered.buffers.iter().map(|buffer| buffer.name.clone());
    Ok(row!(
        py,
        kind = kinds.collect::<Vec<_>>(),
        initiator = made.initiator.into_pyarray(py),
        source = made.source.into_pyarray(py),
        combine = made.combine.into_pyarray(py),
        lane = made.lane.into_pyarray(py),
        work = made.work.into_pyarray(py),
        target_end = made.target_end.into_pyarray(py),
        targets = made.targets.into_pyarray(py),
        piece_end = made.piece_end.into_pyarray(py),
        pieces = pieces.into_pyarray(py),
        wait_end = made.wait_end.into_pyarray(py),
        waits = waits.into_pyarray(py),
        memory_bytes = bytes.into_pyarray(py),
        buffer_first = layout.buffer_first.into_pyarray(py),
        buffer_bytes = layout.buffer_bytes.into_pyarray(py),
        buffers = names.collect::<Vec<_>>(),
    ))
}

/// The memory of one participant before the first operation. Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (schedule, participant, options=None))]
pub fn initial_memory<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    participant: u32,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, Column<u8>>> {
    let (data, _) = only_run_options(options)?;
    let ordered = schedule.proved(py)?;
    let found = py.detach(|| program::initial(ordered, data, participant));
    Ok(Typed::new(found.map_err(errors::exec)?.into_pyarray(py)))
}

/// Compare the memory of one participant with what the schedule must leave there; the number of elements compared.
/// Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (schedule, participant, memory, options=None))]
pub fn check_memory(
    py: Python<'_>,
    schedule: &Schedule,
    participant: u32,
    memory: Typed<'_, Column<u8>>,
    options: Option<Named<'_>>,
) -> PyResult<u64> {
    let (data, _) = only_run_options(options)?;
    let ordered = schedule.proved(py)?;
    let memory: PyReadonlyArray1<u8> = memory.object().extract()?;
    let bytes = memory.as_slice()?;
    let compared = py
        .detach(|| -> Result<u64, ExecError> { program::check(ordered, data, participant, bytes) });
    compared.map_err(errors::exec)
}

/// Combine `data` into `into` in place, both bytes of whole elements. Options: `dtype, op, seed`.
#[pyfunction]
#[pyo3(signature = (into, data, options=None))]
pub fn combine(
    into: Typed<'_, Column<u8>>,
    data: Typed<'_, Column<u8>>,
    options: Option<Named<'_>>,
) -> PyResult<()> {
    let (how, _) = only_run_options(options)?;
    let mut into: PyReadwriteArray1<u8> = into.object().extract()?;
    let data: PyReadonlyArray1<u8> = data.object().extract()?;
    let (into, data) = (into.as_slice_mut()?, data.as_slice()?);
    let size = how.dtype.size();
    if into.len() != data.len() || data.len() % size != 0 {
        let lengths = format!("{} bytes into {}", data.len(), into.len());
        let message = format!("{lengths}: give equally many whole elements of {size} bytes");
        return Err(PyValueError::new_err(message));
    }
    if into.as_ptr() as usize % size != 0 {
        let message = format!("`into` does not begin at a multiple of {size} bytes");
        return Err(PyValueError::new_err(message));
    }
    if data.as_ptr() as usize % size == 0 {
        dtype::combine(how.dtype, how.op, into, data);
    } else {
        let mut aligned = AlignedBytes::new(data.len());
        aligned.get_mut().copy_from_slice(data);
        dtype::combine(how.dtype, how.op, into, aligned.get());
    }
    Ok(())
}
