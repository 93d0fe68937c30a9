//! Python binding: converts arguments and columns, holds no logic.
//!
//! Tables leave as dictionaries of NumPy columns, never as one object per row, and every call that
//! computes releases the interpreter lock.

mod builder;
mod errors;
mod ladder;
mod links;
mod machine;
mod mpi;
mod options;
mod probes;
mod programs;
mod registry;
mod sampling;
mod schedule;
mod simulate;
mod stream;
mod sweep;
mod threads;

use pyo3::prelude::*;

/// The native half of linkwright.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(errors::kinds, module)?)?;
    module.add("measurement", sampling::constants(module.py())?)?;
    module.add_class::<machine::Machine>()?;
    module.add_function(wrap_pyfunction!(machine::machine_keys, module)?)?;
    module.add_function(wrap_pyfunction!(machine::machine_numbers, module)?)?;
    module.add_class::<schedule::Schedule>()?;
    module.add_class::<builder::Builder>()?;
    module.add_class::<mpi::MpiGroup>()?;
    module.add_function(wrap_pyfunction!(registry::algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(registry::patterns, module)?)?;
    module.add_function(wrap_pyfunction!(registry::collectives, module)?)?;
    module.add_function(wrap_pyfunction!(registry::bus_factor, module)?)?;
    module.add_function(wrap_pyfunction!(threads::cpus, module)?)?;
    module.add_function(wrap_pyfunction!(threads::run_threads, module)?)?;
    module.add_function(wrap_pyfunction!(stream::instruction_codes, module)?)?;
    module.add_function(wrap_pyfunction!(stream::instruction_stream, module)?)?;
    module.add_function(wrap_pyfunction!(stream::schedule_memory, module)?)?;
    module.add_function(wrap_pyfunction!(stream::arrival_delays, module)?)?;
    module.add_function(wrap_pyfunction!(threads::repeats_back_to_back, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::sample_work, module)?)?;
    module.add_function(wrap_pyfunction!(probes::convolution_layers, module)?)?;
    module.add_function(wrap_pyfunction!(probes::probes, module)?)?;
    module.add_function(wrap_pyfunction!(probes::run_probe, module)?)?;
    module.add_function(wrap_pyfunction!(probes::model_probe, module)?)?;
    module.add_function(wrap_pyfunction!(probes::caches, module)?)?;
    module.add_function(wrap_pyfunction!(probes::cycles_ns, module)?)?;
    module.add_function(wrap_pyfunction!(probes::available_memory, module)?)?;
    module.add_function(wrap_pyfunction!(links::pcie_link, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::fabrics, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::lower, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::check_options, module)?)?;
    module.add_class::<sweep::Simulations>()?;
    module.add_function(wrap_pyfunction!(simulate::quiet, module)?)?;
    module.add_function(wrap_pyfunction!(ladder::devices, module)?)?;
    module.add_function(wrap_pyfunction!(ladder::device_of, module)?)?;
    module.add_function(wrap_pyfunction!(ladder::chip_route, module)?)?;
    module.add_function(wrap_pyfunction!(programs::dma_programs, module)?)?;
    Ok(())
}
