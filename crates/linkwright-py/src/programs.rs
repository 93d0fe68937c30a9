//! DMA programs on a machine with slotted rings.

use linkwright_sim::fabrics::slotted_ring::programs::{run, Outcome};
use linkwright_sim::fabrics::slotted_ring::Life;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::hints::{self, Typed};
use crate::machine::Machine;

/// One moment in the life of a command.
type Moment = fn(&Life) -> u64;

/// Run one program per element, given as `(element, lines)`, on `machine`, whose fabric is `slotted_ring`.
///
/// With `overwrite` signals replace the register instead of adding bits. Columns by command, in the
/// order of completion: `program, line`, and in picoseconds `issued_ps, queued_ps, selected_ps,
/// requested_ps, data_ps, complete_ps`. `lines_ps`: by program, when each line was over; `retries`: by
/// program, failed conditional writes.
#[pyfunction]
#[pyo3(signature = (machine, programs, *, overwrite=false))]
pub fn dma_programs<'py>(
    py: Python<'py>,
    machine: &Machine,
    programs: Vec<(String, Vec<String>)>,
    overwrite: bool,
) -> PyResult<Typed<'py, hints::ProgramColumns>> {
    let described = &machine.described;
    let outcome = py.detach(|| run(described, &programs, overwrite));
    let outcome = outcome.map_err(errors::sim)?;
    let table = PyDict::new(py);
    let column = |of: fn(&(u32, u32, Life)) -> u32| -> Vec<u32> {
        outcome.commands.iter().map(of).collect()
    };
    table.set_item("program", column(|row| row.0).into_pyarray(py))?;
    table.set_item("line", column(|row| row.1).into_pyarray(py))?;
    let times: [(&str, Moment); 6] = [
        ("issued_ps", |life| life.issued),
        ("queued_ps", |life| life.queued),
        ("selected_ps", |life| life.selected),
        ("requested_ps", |life| life.requested),
        ("data_ps", |life| life.data),
        ("complete_ps", |life| life.complete),
    ];
    for (name, of) in times {
        table.set_item(name, picoseconds(&outcome, of).into_pyarray(py))?;
    }
    table.set_item("retries", outcome.retries.into_pyarray(py))?;
    let lines = outcome
        .lines_ps
        .into_iter()
        .map(|program| program.into_pyarray(py));
    table.set_item("lines_ps", lines.collect::<Vec<_>>())?;
    Ok(Typed::new(table))
}

fn picoseconds(outcome: &Outcome, of: Moment) -> Vec<u64> {
    let time = |row: &(u32, u32, Life)| of(&row.2) * outcome.period_ps;
    outcome.commands.iter().map(time).collect()
}
