//! Python binding: converts arguments and columns, holds no logic.

use pyo3::prelude::*;

/// The native half of linkwright.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
