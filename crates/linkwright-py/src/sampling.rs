//! The rules of measurement for work that Python does.

use std::cell::RefCell;
use std::time::Duration;

use linkwright_exec::guard::{Disturbance, ProcessGuard};
use linkwright_exec::sampling::{Sampler, Stopping};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::Options;
use crate::probes::sampled;

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
    let sampler = Sampler {
        stopping: Stopping {
            samples: given.take("samples")?.unwrap_or(100),
            budget: Duration::from_secs_f64(given.take("budget_s")?.unwrap_or(1.0)),
            settle_within: given.take("settle_within")?,
        },
        warmup_at_most: given.take("warmup_at_most")?.unwrap_or(50),
    };
    let whole_process = given.take("whole_process")?.unwrap_or(false);
    given.finish()?;
    // The first exception ends the measurement; it is raised when that has ended.
    let raised: RefCell<Option<PyErr>> = RefCell::new(None);
    let stop = || raised.borrow().is_some();
    let samples = sampler.measure_until(&stop, |n| {
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
