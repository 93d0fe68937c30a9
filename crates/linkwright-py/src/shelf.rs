//! Files that machine files name, found by Python.

use crate::errors;
use linkwright_core::error::{MachineError, VariantError};
use linkwright_core::machine::{File, Files};
use pyo3::prelude::*;
use std::cell::RefCell;

/// Files by name, read by an object of Python with the methods `part`, `network` and `nodes`.
pub struct Shelf<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
    raised: RefCell<Option<PyErr>>,
}

impl<'a, 'py> Shelf<'a, 'py> {
    pub fn new(object: &'a Bound<'py, PyAny>) -> Self {
        Shelf {
            object,
            raised: RefCell::default(),
        }
    }

    fn file(&self, method: &str, name: &str) -> Result<File, MachineError> {
        let file = self.object.call_method1(method, (name,));
        let (name, text) = file.and_then(|f| f.extract()).map_err(|e| self.keep(e))?;
        Ok(File { name, text })
    }

    /// Keep what Python raised; the error here only ends the work.
    fn keep(&self, error: PyErr) -> MachineError {
        *self.raised.borrow_mut() = Some(error);
        MachineError::Variant(VariantError::Refused(String::new()))
    }

    /// The result of work that read these files.
    pub fn found<T>(self, found: Result<T, MachineError>) -> PyResult<T> {
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => found.map_err(errors::machine),
        }
    }
}

impl Files for Shelf<'_, '_> {
    fn part(&self, name: &str) -> Result<File, MachineError> {
        self.file("part", name)
    }

    fn network(&self, name: &str) -> Result<File, MachineError> {
        self.file("network", name)
    }

    fn nodes(&self) -> Vec<String> {
        let names = self.object.call_method0("nodes");
        let names = names.and_then(|names| names.extract());
        names.unwrap_or_else(|error| {
            self.keep(error);
            Vec::new()
        })
    }
}
