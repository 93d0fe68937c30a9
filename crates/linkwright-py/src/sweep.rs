//! Many experiments on one machine, on all cores.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linkwright_schedule::patterns::Traffic;
use linkwright_schedule::Shape;
use linkwright_sim::sweep::{Experiment, Finding, Next, Question, Sweep};
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::errors;
use crate::hints::{self, Named, Typed};
use crate::how::How;
use crate::machine::Machine;
use crate::options::Options;
use crate::probes::{answered, assignment};
use crate::schedule::{exchange, Schedule};

/// How often a wait looks whether Ctrl-C was pressed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// `(kind, key, shape or axes, how)`; kind is `collective`, `pattern`, `probe`, or `schedule` for one that is
/// given, or for a collective of which one rank may stand for all `fold` or `stream`.
type Asked<'py> = (String, String, Named<'py>, Py<How>);

/// How an experiment ended.
#[derive(IntoPyObject)]
enum Outcome<'py> {
    Answer(Bound<'py, Answer>),
    Modelled(Typed<'py, hints::ModelledRow>),
    Raised(Bound<'py, PyException>),
}

/// Simulations of a list of experiments under way; iterate for `(place in the list, result)`, in the order in which
/// they end. A result is an `Answer`, or what `model_probe` gives, or the exception that it raises.
#[pyclass(frozen, module = "linkwright._native")]
pub struct Simulations {
    running: Mutex<Option<Sweep>>,
    how: Vec<Py<How>>,
    wrong: Mutex<Vec<(usize, PyErr)>>,
}

#[pymethods]
impl Simulations {
    /// Begin; `jobs` threads, 0 for one on each processor. An experiment is `(kind, key, shape, how)`: the
    /// keywords of `Schedule.build` or `Schedule.pattern` (of a given one `schedule`), or the axes of a probe.
    #[new]
    #[pyo3(signature = (machine, experiments, jobs=0))]
    fn new(
        py: Python<'_>,
        machine: &Machine,
        experiments: Vec<Asked<'_>>,
        jobs: usize,
    ) -> PyResult<Self> {
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        let how = experiments
            .iter()
            .map(|(.., how)| how.clone_ref(py))
            .collect();
        for (place, asked) in experiments.into_iter().enumerate() {
            match experiment(machine, place, asked) {
                Ok(read) => right.push(read),
                Err(error) => wrong.push((place, error)),
            }
        }
        let no_threads = |why| PyMemoryError::new_err(format!("no threads: {why}"));
        let sweep = Sweep::start(machine.described.clone(), right, jobs).map_err(no_threads)?;
        Ok(Simulations {
            running: Mutex::new(Some(sweep)),
            how,
            wrong: Mutex::new(wrong),
        })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(usize, Outcome<'py>)>> {
        if let Some((place, error)) = self.wrong.lock().expect("no panic while held").pop() {
            return Ok(Some((place, thrown(py, error)?)));
        }
        loop {
            let next = py.detach(|| {
                let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                (running.as_ref()).map_or(Next::End, |sweep| sweep.next_within(SIGNALS_EVERY))
            });
            match next {
                Next::Result(place, Ok(found)) => {
                    return Ok(Some((place, given(py, found, &self.how[place])?)))
                }
                Next::Result(place, Err(why)) => {
                    return Ok(Some((place, thrown(py, errors::sim(why))?)))
                }
                Next::Later => py.check_signals()?,
                Next::End => return Ok(None),
            }
        }
    }

    /// Begin no further experiment.
    fn stop(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn experiment(machine: &Machine, place: usize, asked: Asked<'_>) -> PyResult<Experiment> {
    let (kind, key, about, how) = asked;
    let question = match kind.as_str() {
        "probe" => Question::Probe(assignment(&key, &about)?),
        "collective" | "fold" | "stream" => {
            let mut given = Options::new(Some(about));
            let shape = shape(&mut given)?;
            given.finish()?;
            match kind.as_str() {
                "fold" => Question::Folded(key, shape),
                "stream" => Question::Streamed(key, shape),
                _ => Question::Collective(key, shape),
            }
        }
        "schedule" => {
            let mut given = Options::new(Some(about));
            let schedule: Option<Py<Schedule>> = given.take("schedule")?;
            given.finish()?;
            let missing = || errors::raise("UsageError", "no `schedule` is given; pass one");
            Question::Given(schedule.ok_or_else(missing)?.get().shared())
        }
        "pattern" => {
            let mut given = Options::new(Some(about));
            let traffic = Traffic {
                shape: shape(&mut given)?,
                seed: 0,
                count: given.take("count")?.unwrap_or(1),
                both_ways: given.take("both_ways")?.unwrap_or(false),
            };
            given.finish()?;
            Question::Pattern(key, traffic)
        }
        _ => {
            let message = format!(
                "unknown kind `{kind}`; known: collective, fold, pattern, probe, schedule, stream"
            );
            return Err(errors::raise("UnknownNameError", message));
        }
    };
    Ok(Experiment {
        place,
        question,
        how: how.get().on(&machine.described)?,
    })
}

/// A shape by the keywords of `Schedule.build`.
pub fn shape(given: &mut Options<'_>) -> PyResult<Shape> {
    let mut shape = Shape::new(
        given.take("ranks")?.unwrap_or(0),
        given.take("elements")?.unwrap_or(0),
    );
    shape.element_bytes = given.take("element_bytes")?.unwrap_or(shape.element_bytes);
    shape.root = given.take("root")?.unwrap_or(shape.root);
    shape.grid = given.take("grid")?.unwrap_or_default();
    shape.exchange = exchange(
        given.take("counts")?,
        given.take("routing")?,
        given.take("owners")?.unwrap_or_default(),
    );
    Ok(shape)
}

fn given<'py>(py: Python<'py>, found: Finding, how: &Py<How>) -> PyResult<Outcome<'py>> {
    Ok(match found {
        Finding::Times(found) => Outcome::Answer(Bound::new(
            py,
            Answer::new(*found, how.clone_ref(py), None),
        )?),
        Finding::Answer(answer) => Outcome::Modelled(answered(py, answer)?),
    })
}

fn thrown(py: Python<'_>, error: PyErr) -> PyResult<Outcome<'_>> {
    let raised = error.into_value(py).into_bound(py).into_any();
    Ok(Outcome::Raised(raised.cast_into()?))
}
