//! What a PCIe link carries, without latencies and engines.

use linkwright_sim::fabrics::host_link::config::Config;
use pyo3::prelude::*;

use crate::errors;
use crate::hints::{self, row, Typed};
use crate::machine::Machine;

/// The link of a machine whose fabric is `host_link`, for given numbers of bytes that the device reads and writes:
/// `read_ps`, `write_ps` on the link alone, `read_rate`, `write_rate` in bytes per second of payload.
#[pyfunction]
pub fn pcie_link<'py>(
    py: Python<'py>,
    machine: &Machine,
    read_bytes: u64,
    write_bytes: u64,
) -> PyResult<Typed<'py, hints::PcieLinkRow>> {
    let link = Config::from_machine(&machine.described)
        .map_err(errors::sim)?
        .link;
    Ok(row!(
        py,
        read_ps = link.read_time(read_bytes).0,
        write_ps = link.write_time(write_bytes).0,
        read_rate = link.read_rate(read_bytes).0,
        write_rate = link.write_rate(write_bytes).0,
    ))
}
