//! Searches for schedules, as iterators of improvements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linkwright_schedule::Collective;
use linkwright_synthesis::{
    search, Found, Limits, Method, Problem, SynthesisError, Winner, METHODS,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::machine::Machine;
use crate::options::Options;
use crate::schedule::Schedule;
use crate::sweep::shape as read_shape;

/// How often a wait looks whether Ctrl-C was pressed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// What a search says while it runs.
enum Told {
    Better(Box<Winner>, usize),
    End(Result<Box<Found>, SynthesisError>),
}

/// A search under way; iterate for its improvements, `time_ps, method, recipe, issue, schedule, tried`, of which the
/// last is the best. After the end, `found` has what is worth telling of the whole.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Synthesis {
    told: Mutex<Receiver<Told>>,
    stop: Arc<AtomicBool>,
    found: Mutex<Option<Box<Found>>>,
}

#[pymethods]
impl Synthesis {
    /// Begin to search for a schedule of a collective on `machine`. `shape` has the keywords of `Schedule.build`;
    /// options, all of which may be left out: `path`, `seed`, `budget_s` (until there are no more candidates),
    /// `jobs` (threads; 0 for one on each processor), `methods` (all).
    #[new]
    #[pyo3(signature = (machine, collective, shape, options=None))]
    fn new(
        machine: &Machine,
        collective: &str,
        shape: &Bound<'_, PyDict>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let Some(collective) = Collective::from_name(collective) else {
            let message = format!("unknown collective `{collective}`");
            return Err(errors::raise("UnknownNameError", message));
        };
        let mut given = Options::new(Some(shape));
        let shape = read_shape(&mut given)?;
        given.finish()?;
        let mut asked = Options::new(options);
        let (path, seed) = (asked.take("path")?, asked.take("seed")?.unwrap_or(0));
        let budget_s: Option<f64> = asked.take("budget_s")?;
        let jobs = asked.take("jobs")?.unwrap_or(0);
        let methods: Vec<String> = asked.take("methods")?.unwrap_or_default();
        asked.finish()?;
        let problem = Problem::new(&machine.described, collective, &shape, path, seed)
            .map_err(errors::synthesis)?;
        let stop = Arc::new(AtomicBool::new(false));
        let limits = Limits {
            budget: budget_s.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX)),
            jobs,
            stop: stop.clone(),
        };
        let (sender, told) = channel();
        // Nobody may be listening any more; the search then ends with the flag that says so.
        thread::spawn(move || {
            let improvements = sender.clone();
            let better = move |winner: &Winner, tried: usize| {
                let _ = improvements.send(Told::Better(Box::new(winner.clone()), tried));
            };
            let found = search(&problem, &methods, &limits, better);
            let _ = sender.send(Told::End(found.map(Box::new)));
        });
        Ok(Synthesis {
            told: Mutex::new(told),
            stop,
            found: Mutex::new(None),
        })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            let told = py.detach(|| {
                let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                told.recv_timeout(SIGNALS_EVERY)
            });
            match told {
                Ok(Told::Better(winner, tried)) => {
                    return improvement(py, *winner, tried).map(Some)
                }
                Ok(Told::End(Ok(found))) => {
                    *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                    return Ok(None);
                }
                Ok(Told::End(Err(error))) => return Err(errors::synthesis(error)),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// End the search with the best so far; keep on iterating until the end.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// After the end: `tried`, `complete`, `known_ps` and `known` (the best registered algorithm), `bound_ps` and
    /// `bound_name` (what no schedule beats); None before.
    #[getter]
    fn found<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_ref().map(|found| summary(py, found)).transpose()
    }
}

impl Drop for Synthesis {
    fn drop(&mut self) {
        self.stop();
    }
}

fn improvement(py: Python<'_>, winner: Winner, tried: usize) -> PyResult<Bound<'_, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("time_ps", winner.time.0)?;
    row.set_item("method", winner.method)?;
    row.set_item("recipe", winner.recipe.to_string())?;
    row.set_item("issue", winner.issue.to_string())?;
    row.set_item("schedule", Bound::new(py, Schedule::new(winner.schedule))?)?;
    row.set_item("tried", tried)?;
    Ok(row)
}

fn summary<'py>(py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("tried", found.tried)?;
    row.set_item("complete", found.complete)?;
    row.set_item("known_ps", found.known.as_ref().map(|known| known.0 .0))?;
    row.set_item(
        "known",
        found.known.as_ref().map(|known| known.1.to_string()),
    )?;
    row.set_item("bound_ps", found.bound.map(|bound| bound.0 .0))?;
    row.set_item("bound_name", found.bound.map(|bound| bound.1))?;
    Ok(row)
}

/// All methods of search: `key, summary, description, source` each.
#[pyfunction]
pub fn synthesis_methods(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |method: &&Method| {
        let row = PyDict::new(py);
        row.set_item("key", method.key)?;
        row.set_item("summary", method.summary)?;
        row.set_item("description", method.description)?;
        row.set_item("source", method.source)?;
        Ok(row)
    };
    METHODS.iter().map(entry).collect()
}
