//! Python binding: converts arguments and columns, holds no logic.
//!
//! Tables leave as dictionaries of NumPy columns, never as one object per row, and every call that
//! computes releases the interpreter lock.

mod answer;
mod ask;
mod builder;
mod dma_chip;
mod errors;
mod hints;
mod how;
mod html;
mod ladder;
mod limits;
mod links;
mod log;
mod machine;
mod machine_keys;
mod mpi;
mod network;
mod options;
mod out_of_memory;
mod plans;
mod probes;
mod program;
mod registry;
mod sampling;
mod schedule;
mod shelf;
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
    use super::{
        answer::{
            Answer, Counts, Limit, Links, Messages, Operations, Path, Ranks, Spread, Timeline,
        },
        ask::{ask, check_how, fabrics, lower, quiet},
        builder::Builder,
        dma_chip::DmaChip,
        errors::kinds,
        how::How,
        ladder::{device_of, devices},
        limits::limits,
        links::pcie_link,
        log::LogScanner,
        machine::{Draft, Machine},
        machine_keys::{machine_keys, machine_numbers, network_keys, runs_of_names},
        mpi::MpiGroup,
        options::check_issue,
        plans::{plan_formats, read_schedule},
        probes::{
            available_memory, caches, convolution_layers, cycles_ns, model_probe, probes, run_probe,
        },
        program::{
            check_memory, combine, initial_memory, moment_codes, rank_programs,
            without_aggregations,
        },
        registry::{algorithms, bus_factor, collectives, pattern_bytes, patterns},
        sampling::{sample_work, Measurement},
        schedule::{check_routing, expert_loads, proof_key, Schedule},
        stream::{arrival_delays, instruction_codes, instruction_stream, schedule_memory},
        sweep::Simulations,
        synthesis::{synthesis_methods, synthesize, Synthesis},
        tables::{read_table, table_rows, write_table},
        threads::{cpus, repeats_back_to_back, run_threads},
    };

    #[allow(non_upper_case_globals)] // a name of Python
    /// The version of the package.
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
