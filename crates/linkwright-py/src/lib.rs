//! Python binding: converts arguments and columns, holds no logic.
//!
//! Tables leave as dictionaries of NumPy columns, never as one object per row, and every call that
//! computes releases the interpreter lock.

mod answer;
mod ask;
mod builder;
mod errors;
mod hints;
mod how;
mod html;
mod ladder;
mod limits;
mod links;
mod machine;
mod mpi;
mod network;
mod options;
mod out_of_memory;
mod plans;
mod probes;
mod program;
mod programs;
mod registry;
mod sampling;
mod schedule;
mod stream;
mod sweep;
mod synthesis;
mod tables;
mod threads;

#[global_allocator]
static MEMORY: out_of_memory::OrEnd = out_of_memory::OrEnd;

/// The native half of linkwright.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::answer::{
        Answer, Counts, Limit, Links, Messages, Operations, Path, Ranks, Timeline,
    };
    #[pymodule_export]
    use super::ask::{ask, check_how, fabrics, lower, quiet};
    #[pymodule_export]
    use super::builder::Builder;
    #[pymodule_export]
    use super::errors::kinds;
    #[pymodule_export]
    use super::how::How;
    #[pymodule_export]
    use super::ladder::{chip_route, device_of, devices};
    #[pymodule_export]
    use super::limits::limits;
    #[pymodule_export]
    use super::links::pcie_link;
    #[pymodule_export]
    use super::machine::{
        machine_keys, machine_numbers, network_keys, runs_of_names, Draft, Machine,
    };
    #[pymodule_export]
    use super::mpi::MpiGroup;
    #[pymodule_export]
    use super::options::check_issue;
    #[pymodule_export]
    use super::plans::{plan_formats, read_schedule};
    #[pymodule_export]
    use super::probes::{
        available_memory, caches, convolution_layers, cycles_ns, model_probe, probes, run_probe,
    };
    #[pymodule_export]
    use super::program::{
        check_memory, combine, initial_memory, moment_codes, rank_programs, without_aggregations,
    };
    #[pymodule_export]
    use super::programs::dma_programs;
    #[pymodule_export]
    use super::registry::{algorithms, bus_factor, collectives, pattern_bytes, patterns};
    #[pymodule_export]
    use super::sampling::{sample_work, Measurement};
    #[pymodule_export]
    use super::schedule::{proof_key, Schedule};
    #[pymodule_export]
    use super::stream::{arrival_delays, instruction_codes, instruction_stream, schedule_memory};
    #[pymodule_export]
    use super::sweep::Simulations;
    #[pymodule_export]
    use super::synthesis::{synthesis_methods, synthesize, Synthesis};
    #[pymodule_export]
    use super::tables::{read_table, table_rows, write_table};
    #[pymodule_export]
    use super::threads::{cpus, repeats_back_to_back, run_threads};

    #[allow(non_upper_case_globals)] // a name of Python
    /// The version of the package.
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
