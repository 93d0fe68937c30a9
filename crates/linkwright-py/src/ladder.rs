//! Devices and routes of machines whose chips form a ladder.

use linkwright_sim::fabrics::exchange::{self, ladder::Device, ladder::Route};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::machine::Machine;

fn row<'py>(py: Python<'py>, device: &Device) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("id", device.id)?;
    row.set_item("first", device.first)?;
    row.set_item("members", device.members.clone())?;
    Ok(row)
}

/// All devices of `machine` by id: `id, first` (position of its first chip), `members` (device ids of its
/// chips, by position) each.
#[pyfunction]
pub fn devices<'py>(py: Python<'py>, machine: &Machine) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let ladder = exchange::ladder(&machine.described).map_err(errors::sim)?;
    let devices = ladder.devices();
    devices.iter().map(|device| row(py, device)).collect()
}

/// The device of exactly the chips with these device ids; an error where they are none.
#[pyfunction]
pub fn device_of<'py>(
    py: Python<'py>,
    machine: &Machine,
    ids: Vec<u32>,
) -> PyResult<Bound<'py, PyDict>> {
    let ladder = exchange::ladder(&machine.described).map_err(errors::sim)?;
    row(py, &ladder.device_of(&ids).map_err(errors::sim)?)
}

/// Positions of the chips on the way from one position to another, both ends included.
#[pyfunction]
#[pyo3(signature = (machine, from, to, /), text_signature = "(machine, start, end, /)")]
pub fn chip_route(machine: &Machine, from: u32, to: u32) -> PyResult<Vec<u32>> {
    let ladder = exchange::ladder(&machine.described).map_err(errors::sim)?;
    let chips = ladder.chips();
    if from.max(to) >= chips {
        let message = format!(
            "there is no chip at position {}; positions are 0..{}",
            from.max(to),
            chips - 1
        );
        return Err(errors::raise("UsageError", message));
    }
    Ok(Route { from, to }.positions())
}
