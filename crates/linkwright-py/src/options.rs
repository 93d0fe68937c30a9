//! Options of a run as a Python dictionary: typed, and an unknown key is an error.

use linkwright_core::{Issue, Skew};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;

use crate::errors;
use crate::hints::Named;

/// A dictionary of options that are taken one by one.
pub struct Options<'py> {
    given: Option<Named<'py>>,
    known: Vec<&'static str>,
}

impl<'py> Options<'py> {
    /// Of the dictionary `given`, or of none.
    pub fn new(given: Option<Named<'py>>) -> Self {
        Options {
            given,
            known: Vec::new(),
        }
    }

    /// The value of `key`; `None` where it is left out or `None`.
    pub fn take<T: FromPyObjectOwned<'py>>(&mut self, key: &'static str) -> PyResult<Option<T>> {
        self.known.push(key);
        let Some(Named(given)) = &self.given else {
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
        let text: Option<String> = self.take("skew")?;
        let read = text.map_or(Ok(Skew::None), |text| text.parse());
        read.map_err(errors::skew)
    }

    /// `issue`: `blocking`, `window(k)`, `batch(k)` or `unlimited`.
    pub fn issue(&mut self) -> PyResult<Option<Issue>> {
        let text: Option<String> = self.take("issue")?;
        let read = text.map(|text| text.parse()).transpose();
        read.map_err(errors::issue)
    }

    /// Refuse unknown keys.
    pub fn finish(self) -> PyResult<()> {
        let Some(Named(given)) = self.given else {
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

/// Raise if `policy` names no issue policy.
#[pyfunction]
pub fn check_issue(policy: &str) -> PyResult<()> {
    let read: Result<Issue, _> = policy.parse();
    read.map(|_| ()).map_err(errors::issue)
}

fn wrong(key: &str, value: &Bound<'_, PyAny>, problem: &str) -> PyErr {
    errors::raise(
        "UsageError",
        format!("option `{key}` is {value}: {problem}"),
    )
}
