//! Searches for schedules.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linkwright_schedule::{Collective, Shape};
use linkwright_sim::SimError;
use linkwright_synthesis::{self as synthesis, Choices, Control, Problem, Winner, METHODS};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::machine::Machine;
use crate::schedule::Schedule;

/// How often a wait looks whether Ctrl-C was pressed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

enum News {
    Improved(Box<Winner>),
    Ended(Result<(u64, u64), SimError>),
    /// There is nothing more to come.
    Gone,
}

/// A search under way; iterate for improvements, the last one is the best: `method, recipe, time_ps, schedule, issue,
/// path, tried, elapsed_s` each.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Synthesis {
    news: Mutex<Receiver<News>>,
    stop: Arc<AtomicBool>,
    /// Candidates priced, and known algorithms left out.
    counts: Mutex<Option<(u64, u64)>>,
}

impl Synthesis {
    fn counts(&self) -> Option<(u64, u64)> {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<News> {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        match news.recv_timeout(SIGNALS_EVERY) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(News::Gone),
        }
    }
}

#[pymethods]
impl Synthesis {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            match py.detach(|| self.next()) {
                Some(News::Improved(winner)) => return improvement(py, *winner).map(Some),
                Some(News::Ended(Ok(counts))) => {
                    let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                    all.get_or_insert(counts);
                    return Ok(None);
                }
                Some(News::Ended(Err(why))) => return Err(errors::sim(why)),
                Some(News::Gone) if self.tried().is_some() => return Ok(None),
                Some(News::Gone) => {
                    let message =
                        "the search ended without an answer, by a bug; see standard error";
                    return Err(PyRuntimeError::new_err(message));
                }
                None => py.check_signals()?,
            }
        }
    }

    /// End the search soon; what it has found so far can still be taken.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Candidates priced in all, once the search has ended.
    #[getter]
    fn tried(&self) -> Option<u64> {
        self.counts().map(|counts| counts.0)
    }

    /// Known algorithms at which the search did not look, because its time was over; set once it has ended.
    #[getter]
    fn unseen(&self) -> Option<u64> {
        self.counts().map(|counts| counts.1)
    }
}

impl Drop for Synthesis {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Search for a fast schedule of `collective` on `machine`, in the background.
///
/// `bytes` is the size of the vector, `budget_s` the time to search, `methods` names some of `synthesis_methods()`
/// (none: all), `threads` 0 is one for each processor. The same `seed` gives the same winners, whatever `threads` is.
/// With `serial_starts`, transfers of a rank start one after another, whatever their lanes.
#[pyfunction]
#[pyo3(signature = (machine, collective, ranks, bytes, *, element_bytes=4, root=0, grid=None, path=None, seed=0,
                    budget_s=30.0, methods=None, threads=0, serial_starts=false))]
#[allow(clippy::too_many_arguments)] // keywords of Python
pub fn synthesize(
    machine: &Machine,
    collective: &str,
    ranks: u32,
    bytes: u64,
    element_bytes: u32,
    root: u32,
    grid: Option<Vec<u32>>,
    path: Option<String>,
    seed: u64,
    budget_s: f64,
    methods: Option<Vec<String>>,
    threads: usize,
    serial_starts: bool,
) -> PyResult<Synthesis> {
    let Some(collective) = Collective::from_name(collective) else {
        let message = format!("unknown collective `{collective}`");
        return Err(errors::raise("UnknownNameError", message));
    };
    let mut shape = Shape::new(ranks, bytes / u64::from(element_bytes.max(1)));
    (shape.element_bytes, shape.root, shape.grid) = (element_bytes, root, grid.unwrap_or_default());
    let budget = Duration::try_from_secs_f64(budget_s).map_err(|_| {
        let message = format!("a budget of {budget_s} s is no time; give 0 or more seconds");
        errors::raise("UsageError", message)
    })?;
    let problem = Problem::new(&machine.described, collective, shape, path, seed);
    let problem = Problem {
        serial_starts,
        ..problem.map_err(errors::sim)?
    };
    let methods = methods.unwrap_or_default();
    known(&methods)?;
    let stop = Arc::new(AtomicBool::new(false));
    let control = Control {
        stop: stop.clone(),
        budget,
        threads,
    };
    Ok(Synthesis {
        news: Mutex::new(begin(problem, Choices { control, methods })),
        stop,
        counts: Mutex::new(None),
    })
}

/// Refuse methods that do not exist.
fn known(methods: &[String]) -> PyResult<()> {
    let keys: Vec<&str> = METHODS.iter().map(|method| method.key).collect();
    match methods
        .iter()
        .find(|method| !keys.contains(&method.as_str()))
    {
        None => Ok(()),
        Some(unknown) => {
            let message = format!("no method `{unknown}`; known: {}", keys.join(", "));
            Err(errors::raise("UnknownNameError", message))
        }
    }
}

fn begin(problem: Problem, choices: Choices) -> Receiver<News> {
    let (sender, news) = channel();
    thread::spawn(move || {
        let improved = sender.clone();
        let report = move |winner: &Winner| {
            // A refused send means that nobody listens any more; `Drop` then ends the search.
            let _ = improved.send(News::Improved(Box::new(winner.clone())));
        };
        let found = synthesis::synthesize(problem, choices, Box::new(report));
        let _ = sender.send(News::Ended(found.map(|found| (found.tried, found.unseen))));
    });
    news
}

fn improvement(py: Python<'_>, winner: Winner) -> PyResult<Bound<'_, PyDict>> {
    let row = PyDict::new(py);
    let candidate = winner.candidate;
    row.set_item("method", candidate.method)?;
    row.set_item("recipe", candidate.recipe.to_string())?;
    row.set_item("time_ps", winner.time.0)?;
    row.set_item(
        "schedule",
        Bound::new(py, Schedule::of(candidate.schedule))?,
    )?;
    row.set_item("issue", candidate.issue.to_string())?;
    row.set_item("path", candidate.path)?;
    row.set_item("tried", winner.tried)?;
    row.set_item("elapsed_s", winner.elapsed.as_secs_f64())?;
    Ok(row)
}

/// All methods of synthesis: `key, summary, description, source` each.
#[pyfunction]
pub fn synthesis_methods(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |method: &&synthesis::Method| {
        let row = PyDict::new(py);
        row.set_item("key", method.key)?;
        row.set_item("summary", method.summary)?;
        row.set_item("description", method.description)?;
        row.set_item("source", method.source)?;
        Ok(row)
    };
    METHODS.iter().map(row).collect()
}
