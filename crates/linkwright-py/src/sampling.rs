//! The rules of measurement for work that Python does.

use std::cell::RefCell;
use std::time::Duration;

use linkwright_exec::guard::{Disturbance, Drops, ProcessGuard};
use linkwright_exec::measurement;
use linkwright_exec::sampling::{Samples, Sampling};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::hints::{self, row, Named, Typed};
use crate::options::Options;

/// The constants of the measurement rules.
#[pyclass(frozen, name = "measurement", module = "linkwright._native")]
pub struct Measurement;

#[pymethods]
impl Measurement {
    #[classattr]
    const CONFIDENCE: f64 = measurement::CONFIDENCE;
    #[classattr]
    const MIN_LAUNCHES: usize = measurement::MIN_LAUNCHES;
    #[classattr]
    const SAMPLES: usize = measurement::SAMPLES;
    #[classattr]
    const SETTLED_WITHIN: f64 = measurement::SETTLED_WITHIN;
    #[classattr]
    const WARMUP_AGREEING: usize = measurement::WARMUP_AGREEING;
    #[classattr]
    const WARMUP_WITHIN: f64 = measurement::WARMUP_WITHIN;
    #[classattr]
    const WARMUP_AT_MOST: usize = measurement::WARMUP_AT_MOST;
    #[classattr]
    const FOREIGN_SHARE: f64 = measurement::FOREIGN_SHARE;
    #[classattr]
    const CLOCK_MOVED: f64 = measurement::CLOCK_MOVED;
    #[classattr]
    const GPU_CLOCK_MOVED: f64 = measurement::GPU_CLOCK_MOVED;
    #[classattr]
    const CANARY_MOVED: f64 = measurement::CANARY_MOVED;
}

/// How much to measure: `samples, warmup_at_most, budget_s, settle_within`.
pub fn sampling_options(given: &mut Options<'_>) -> PyResult<Sampling> {
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
    work: Typed<'py, hints::Work>,
    options: Option<Named<'py>>,
) -> PyResult<Typed<'py, hints::SampledColumns>> {
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
        let done = work.object().call1((n,)).and_then(|_| py.check_signals());
        *raised.borrow_mut() = done.err();
        guard.and_then(|guard| guard.close().then_some(Disturbance::Preempted))
    });
    match raised.into_inner() {
        Some(error) => Err(error),
        None => sampled(py, samples),
    }
}

/// The columns that every sampler fills: `values_ns, first_ns, batch, warmed_up, drops`.
pub fn sampled(py: Python<'_>, samples: Samples) -> PyResult<Typed<'_, hints::SampledColumns>> {
    Ok(row!(
        py,
        drops = dropped(py, &samples.drops)?,
        values_ns = samples.values_ns.into_pyarray(py),
        ..samples.{first_ns, batch, warmed_up}
    ))
}

/// How many samples were dropped, by reason.
pub fn dropped<'py>(py: Python<'py>, drops: &Drops) -> PyResult<Bound<'py, PyDict>> {
    let counts = PyDict::new(py);
    for reason in Disturbance::ALL {
        counts.set_item(reason.name(), drops.of(reason))?;
    }
    Ok(counts)
}
