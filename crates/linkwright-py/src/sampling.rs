//! The rules of measurement for work that Python does.

use std::cell::RefCell;
use std::time::Duration;

use linkwright_exec::guard::{Disturbance, ProcessGuard};
use linkwright_exec::measurement;
use linkwright_exec::sampling::{Samples, Sampling};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::Options;

/// The constants of the measurement rules, as a module of their own.
pub fn constants(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    let module = PyModule::new(py, "measurement")?;
    module.add("CONFIDENCE", measurement::CONFIDENCE)?;
    module.add("MIN_LAUNCHES", measurement::MIN_LAUNCHES)?;
    module.add("SAMPLES", measurement::SAMPLES)?;
    module.add("SETTLED_WITHIN", measurement::SETTLED_WITHIN)?;
    module.add("WARMUP_AGREEING", measurement::WARMUP_AGREEING)?;
    module.add("WARMUP_WITHIN", measurement::WARMUP_WITHIN)?;
    module.add("WARMUP_AT_MOST", measurement::WARMUP_AT_MOST)?;
    module.add("FOREIGN_SHARE", measurement::FOREIGN_SHARE)?;
    module.add("CLOCK_MOVED", measurement::CLOCK_MOVED)?;
    module.add("GPU_CLOCK_MOVED", measurement::GPU_CLOCK_MOVED)?;
    module.add("CANARY_MOVED", measurement::CANARY_MOVED)?;
    Ok(module)
}

/// How much to measure: `samples, warmup_at_most, budget_s, settle_within`.
pub fn sampling_options(given: &mut Options<'_, '_>) -> PyResult<Sampling> {
    let usual = Sampling::default();
    Ok(Sampling {
        samples: given.take("samples")?.unwrap_or(usual.samples),
        warmup_at_most: given
            .take("warmup_at_most")?
            .unwrap_or(usual.warmup_at_most),
        time_budget: given
            .take("budget_s")?
            .map_or(usual.time_budget, Duration::from_secs_f64),
        settle_within: given.take("settle_within")?,
    })
}

/// One launch of `work(n)`, which does its work n times, on the calling thread.
///
/// Options: `samples, warmup_at_most, budget_s, settle_within`; `whole_process` drops samples during which any
/// thread of this process lost its core, not the calling one only. Columns as those of `run_probe`.
#[pyfunction]
#[pyo3(signature = (work, options=None))]
pub fn sample_work<'py>(
    py: Python<'py>,
    work: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Options::new(options);
    let sampling = sampling_options(&mut given)?;
    let whole_process = given.take("whole_process")?.unwrap_or(false);
    given.finish()?;
    // The first exception ends the measurement; it is raised when that has ended.
    let raised: RefCell<Option<PyErr>> = RefCell::new(None);
    let stop = || raised.borrow().is_some();
    let samples = sampling.measure(&stop, |n| {
        if stop() {
            return None;
        }
        let guard = whole_process.then(ProcessGuard::open);
        let done = work.call1((n,)).and_then(|_| py.check_signals());
        *raised.borrow_mut() = done.err();
        guard.and_then(|guard| guard.close().then_some(Disturbance::Preempted))
    });
    match raised.into_inner() {
        Some(error) => Err(error),
        None => sampled(py, samples),
    }
}

/// The columns that every sampler fills: `values_ns, first_ns, batch, warmed_up, drops`.
pub fn sampled(py: Python<'_>, samples: Samples) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    let drops = PyDict::new(py);
    for reason in Disturbance::ALL {
        drops.set_item(reason.name(), samples.drops.of(reason))?;
    }
    table.set_item("drops", drops)?;
    table.set_item("values_ns", samples.values_ns.into_pyarray(py))?;
    table.set_item("first_ns", samples.first_ns)?;
    table.set_item("batch", samples.batch)?;
    table.set_item("warmed_up", samples.warmed_up)?;
    Ok(table)
}
