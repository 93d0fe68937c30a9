//! The executors of this machine.

use linkwright_core::Issue;
use linkwright_exec::buffers::Data;
use linkwright_exec::dtype::{DType, ReduceOp};
use linkwright_exec::executor::{Launch, RunOptions};
use linkwright_exec::lowered::without_aggregations;
use linkwright_exec::threads::{self, Threads};
use linkwright_exec::topology::Topology;
use linkwright_exec::ExecError;
use numpy::IntoPyArray;
use pyo3::prelude::*;

use crate::errors;
use crate::hints::{self, row, Named, Typed};
use crate::options::Options;
use crate::sampling::{dropped, sampling_options};
use crate::schedule::Schedule;

/// Processors that this process may use, in topology order.
#[pyfunction]
pub fn cpus() -> Vec<u32> {
    Topology::discover().cpus.iter().map(|cpu| cpu.id).collect()
}

/// Whether the threads executor repeats `schedule` without a barrier, on two sets of buffers in turn.
#[pyfunction]
pub fn repeats_back_to_back(py: Python<'_>, schedule: &Schedule) -> PyResult<bool> {
    schedule.proved(py).map(threads::repeats_back_to_back)
}

/// One launch of `schedule` on threads.
///
/// Options: `dtype, op, seed, cpus, samples, warmup_at_most, budget_s, settle_within, batch, check,
/// skew, issue`; all may be left out. Columns: `slowest_ns` by sample, `start_ns` and `finish_ns` by
/// (sample, rank).
#[pyfunction]
#[pyo3(signature = (schedule, options=None))]
pub fn run_threads<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, hints::LaunchColumns>> {
    let mut given = Options::new(options);
    let (data, run) = run_options(&mut given)?;
    let cpus: Vec<u32> = given.take("cpus")?.unwrap_or_default();
    let issue = given.issue()?.unwrap_or(Issue::Unlimited);
    given.finish()?;
    let ordered = schedule.proved(py)?;
    let launch = py.detach(|| -> Result<Launch, ExecError> {
        let threads = Threads::new().with_placement(&cpus)?.with_issue(issue);
        let lowered = without_aggregations(ordered, "threads")?;
        threads.prepare(&lowered, data)?.run(&run)
    });
    columns(py, launch.map_err(errors::exec)?)
}

/// Data and protocol of a run that takes no other options but an issue policy.
pub fn run_options_with_issue<'a>(
    options: Option<Named<'_>>,
) -> PyResult<(Data, RunOptions<'a>, Issue)> {
    let mut given = Options::new(options);
    let (data, run) = run_options(&mut given)?;
    let issue = given.issue()?.unwrap_or(Issue::Unlimited);
    given.finish()?;
    Ok((data, run, issue))
}

/// Data and protocol of a run that takes no other options.
pub fn only_run_options<'a>(options: Option<Named<'_>>) -> PyResult<(Data, RunOptions<'a>)> {
    let mut given = Options::new(options);
    let taken = run_options(&mut given)?;
    given.finish()?;
    Ok(taken)
}

/// Data and protocol of a run, as every executor takes them.
fn run_options<'a>(given: &mut Options<'_>) -> PyResult<(Data, RunOptions<'a>)> {
    let data = Data {
        dtype: given
            .word("dtype", DType::ALL, DType::name)?
            .unwrap_or(DType::F32),
        op: given
            .word("op", ReduceOp::ALL, ReduceOp::name)?
            .unwrap_or(ReduceOp::Sum),
        seed: given.take("seed")?.unwrap_or(0),
    };
    let run = RunOptions {
        sampling: sampling_options(given)?,
        batch: given.take("batch")?,
        unchecked: given.take("check")?.is_some_and(|check: bool| !check),
        skew: given.skew()?,
        seed: data.seed,
        cancelled: None,
    };
    Ok((data, run))
}

/// What a launch yielded.
pub fn columns(py: Python<'_>, launch: Launch) -> PyResult<Typed<'_, hints::LaunchColumns>> {
    Ok(row!(
        py,
        ranks = launch.ranks,
        slowest_ns = launch.slowest_ns.into_pyarray(py),
        start_ns = launch.start_ns.into_pyarray(py),
        finish_ns = launch.finish_ns.into_pyarray(py),
        disturbed_ns = launch.disturbed_ns.into_pyarray(py),
        ..launch.{first_ns, row_ns},
        message_ns = launch.message_ns.into_pyarray(py),
        ..launch.{batch, back_to_back, warmup_batches, warmed_up},
        drops = dropped(py, &launch.drops)?,
        ..launch.{out_of_time, oversubscribed, cpus, unpinned, checked_elements}
    ))
}
