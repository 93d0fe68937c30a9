//! Devices and routes of machines whose chips form a ladder.

use linkwright_sim::fabrics::exchange::{self, ladder::Device};
use pyo3::prelude::*;

use crate::errors;
use crate::hints::{self, row, Typed};
use crate::machine::Machine;

fn row<'py>(py: Python<'py>, device: &Device) -> PyResult<Typed<'py, hints::DeviceRow>> {
    Ok(row!(py, ..device.{id, first}, members = device.members.clone()))
}

/// All devices of `machine` by id: `id, first` (position of its first chip), `members` (device ids of its
/// chips, by position) each.
#[pyfunction]
pub fn devices<'py>(
    py: Python<'py>,
    machine: &Machine,
) -> PyResult<Vec<Typed<'py, hints::DeviceRow>>> {
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
) -> PyResult<Typed<'py, hints::DeviceRow>> {
    let ladder = exchange::ladder(&machine.described).map_err(errors::sim)?;
    row(py, &ladder.device_of(&ids).map_err(errors::sim)?)
}
