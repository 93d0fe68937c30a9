//! Options of a run as a Python dictionary: typed, and an unknown key is an error.

use linkwright_exec::executor::Skew as ThreadSkew;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// When ranks arrive, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Skew {
    /// All at once.
    None,
    /// Each at a random time within so long.
    Uniform(f64),
    /// One rank so long after the others.
    Late(u32, f64),
    /// Each so late.
    List(Vec<f64>),
}

impl From<Skew> for ThreadSkew {
    fn from(skew: Skew) -> Self {
        match skew {
            Skew::None => ThreadSkew::None,
            Skew::Uniform(ns) => ThreadSkew::Uniform(ns),
            Skew::Late(rank, ns) => ThreadSkew::OneLate(rank, ns),
            Skew::List(each) => ThreadSkew::List(each),
        }
    }
}

/// A dictionary of options that are taken one by one.
pub struct Options<'a, 'py> {
    given: Option<&'a Bound<'py, PyDict>>,
    known: Vec<&'static str>,
}

impl<'a, 'py> Options<'a, 'py> {
    /// Of the dictionary `given`, or of none.
    pub fn new(given: Option<&'a Bound<'py, PyDict>>) -> Self {
        Options {
            given,
            known: Vec::new(),
        }
    }

    /// The value of `key`; `None` where it is left out or `None`.
    pub fn take<T: FromPyObjectOwned<'py>>(&mut self, key: &'static str) -> PyResult<Option<T>> {
        self.known.push(key);
        let Some(given) = self.given else {
            return Ok(None);
        };
        let Some(value) = given.get_item(key)?.filter(|value| !value.is_none()) else {
            return Ok(None);
        };
        let taken: Result<T, PyErr> = value.extract().map_err(Into::into);
        taken
            .map(Some)
            .map_err(|error| wrong(key, &value, &error.to_string()))
    }

    /// The value of `key` among `all`, by name.
    pub fn word<T: Copy, const N: usize>(
        &mut self,
        key: &'static str,
        all: [T; N],
        name: fn(T) -> &'static str,
    ) -> PyResult<Option<T>> {
        let Some(text) = self.take::<String>(key)? else {
            return Ok(None);
        };
        let found = all.into_iter().find(|&each| name(each) == text);
        found.map(Some).ok_or_else(|| {
            let names = all.map(name).join(", ");
            let message = format!("unknown {key} `{text}`; known: {names}");
            errors::raise("UnknownNameError", message)
        })
    }

    /// `skew`: `none`, `uniform:2us`, `late:RANK:2us` or `list:0us,1us,...`.
    pub fn skew(&mut self) -> PyResult<Skew> {
        let Some(text) = self.take::<String>("skew")? else {
            return Ok(Skew::None);
        };
        read_skew(&text).ok_or_else(|| {
            let message = format!(
                "skew `{text}` is not understood; write `none`, `uniform:2us`, `late:RANK:2us` or `list:0us,1us`"
            );
            errors::raise("UsageError", message)
        })
    }

    /// Refuse what nobody took.
    pub fn finish(self) -> PyResult<()> {
        let Some(given) = self.given else {
            return Ok(());
        };
        for key in given.keys() {
            let key: String = key.extract()?;
            if !self.known.contains(&key.as_str()) {
                let message = format!("unknown option `{key}`; known: {}", self.known.join(", "));
                return Err(errors::raise("UnknownNameError", message));
            }
        }
        Ok(())
    }
}

fn wrong(key: &str, value: &Bound<'_, PyAny>, problem: &str) -> PyErr {
    errors::raise(
        "UsageError",
        format!("option `{key}` is {value}: {problem}"),
    )
}

fn read_skew(text: &str) -> Option<Skew> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "none" if rest.is_empty() => Some(Skew::None),
        "uniform" => Some(Skew::Uniform(nanoseconds(rest)?)),
        "late" => {
            let (rank, time) = rest.split_once(':')?;
            Some(Skew::Late(rank.parse().ok()?, nanoseconds(time)?))
        }
        "list" => Some(Skew::List(
            rest.split(',').map(nanoseconds).collect::<Option<_>>()?,
        )),
        _ => None,
    }
}

fn nanoseconds(text: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (digits, scale) = units
        .iter()
        .find_map(|(unit, scale)| text.trim().strip_suffix(unit).map(|rest| (rest, scale)))?;
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * scale)
}
