//! Searches for schedules.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use linkwright_schedule::{Collective, Shape};
use linkwright_sim::SimError;
use linkwright_synthesis::{
    self as synthesis, Answer, Choices, Control, Found, Lasting, Problem, Winner, METHODS,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors;
use crate::hints::{self, row, Typed};
use crate::machine::Machine;
use crate::schedule::{exchange, Schedule};

/// How often a wait looks whether Ctrl-C was pressed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

enum News {
    Improved(Box<Winner>),
    Ended(Result<Box<Found>, SimError>),
    /// There is nothing more to come.
    Gone,
}

/// A search under way; iterate for improvements, the last one is the fastest: `method, recipe, time_ps, schedule, issue,
/// path, tried, elapsed_s` each. Then `answer` is the one whose gain lasts.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Synthesis {
    news: Mutex<Receiver<News>>,
    stop: Arc<AtomicBool>,
    /// Set once it has ended.
    found: Mutex<Option<Box<Found>>>,
}

impl Synthesis {
    /// What `part` takes from what was found.
    fn of_found<T>(&self, part: impl FnOnce(&Found) -> T) -> Option<T> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_deref().map(part)
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

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Typed<'py, hints::Anything>>> {
        loop {
            match py.detach(|| self.next()) {
                Some(News::Improved(winner)) => return improvement(py, *winner).map(Some),
                Some(News::Ended(Ok(found))) => {
                    let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                    all.get_or_insert(found);
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
        self.of_found(|found| found.tried)
    }

    /// Known algorithms at which the search did not look, because its time was over; set once it has ended.
    #[getter]
    fn unseen(&self) -> Option<u64> {
        self.of_found(|found| found.unseen)
    }

    /// The schedule that is worth its gain, once the search has ended: as an improvement, and `lasting`, how much of the
    /// gain over the best known algorithm is left elsewhere: `draws, wins, least, serial, lasts,
    /// lasts_serial`; None of what has no
    /// gain, and of what could not be judged in time.
    #[getter]
    fn answer<'py>(&self, py: Python<'py>) -> PyResult<Option<Typed<'py, hints::Anything>>> {
        let answer = self.of_found(|found| found.answer.clone());
        answer.map(|one| answered(py, one)).transpose()
    }

    /// The fastest schedule on the machine as described, where `answer` is another one.
    #[getter]
    fn fastest<'py>(&self, py: Python<'py>) -> PyResult<Option<Typed<'py, hints::Anything>>> {
        let fastest = self.of_found(|found| found.fastest.clone()).flatten();
        fastest.map(|one| answered(py, one)).transpose()
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
/// With `serial_starts`, transfers of a rank start one after another, whatever their lanes. With `fastest`, the answer is
/// the fastest schedule even where its gain does not last. `counts` and `routing` are those of `Schedule.build`.
#[pyfunction]
#[pyo3(signature = (machine, collective, ranks, bytes, *, element_bytes=4, root=0, grid=None, path=None, seed=0,
                    budget_s=30.0, methods=None, threads=0, serial_starts=false, fastest=false,
                    counts=None, routing=None))]
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
    fastest: bool,
    counts: Option<Vec<u64>>,
    routing: Option<(u32, u32, u64, u32, u64)>,
) -> PyResult<Synthesis> {
    let Some(collective) = Collective::from_name(collective) else {
        let message = format!("unknown collective `{collective}`");
        return Err(errors::raise("UnknownNameError", message));
    };
    let mut shape = Shape::new(ranks, bytes / u64::from(element_bytes.max(1)));
    (shape.element_bytes, shape.root, shape.grid) = (element_bytes, root, grid.unwrap_or_default());
    shape.exchange = exchange(counts, routing, Vec::new());
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
    let choices = Choices {
        control,
        methods,
        fastest,
    };
    Ok(Synthesis {
        news: Mutex::new(begin(problem, choices)),
        stop,
        found: Mutex::new(None),
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
        let _ = sender.send(News::Ended(found.map(Box::new)));
    });
    news
}

fn improvement(py: Python<'_>, winner: Winner) -> PyResult<Typed<'_, hints::Anything>> {
    let candidate = winner.candidate;
    Ok(row!(
        py,
        method = candidate.method,
        recipe = candidate.recipe.to_string(),
        time_ps = winner.time.0,
        schedule = Bound::new(py, Schedule::of(candidate.schedule))?,
        issue = candidate.issue.to_string(),
        path = candidate.path,
        tried = winner.tried,
        elapsed_s = winner.elapsed.as_secs_f64(),
    ))
}

fn answered(py: Python<'_>, answer: Answer) -> PyResult<Typed<'_, hints::Anything>> {
    let row = improvement(py, answer.winner)?;
    let lasting = answer.lasting.map(|lasting| told(py, &lasting));
    row.object().set_item("lasting", lasting.transpose()?)?;
    Ok(row)
}

fn told<'py>(py: Python<'py>, lasting: &Lasting) -> PyResult<Typed<'py, hints::Anything>> {
    Ok(row!(
        py,
        ..lasting.{draws, wins, least, serial},
        lasts = lasting.lasts(),
        lasts_serial = lasting.stays_serial(),
    ))
}

/// All methods of synthesis: `key, summary, description, source` each.
#[pyfunction]
pub fn synthesis_methods(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::DescribedRow>>> {
    let row =
        |method: &&synthesis::Method| Ok(row!(py, ..method.{key, summary, description, source}));
    METHODS.iter().map(row).collect()
}
