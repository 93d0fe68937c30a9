//! Lines and rows of logs, for the readers in Python.

use std::collections::HashMap;

use linkwright_tables::log::{Said, Scanner, HEAD};
use pyo3::prelude::*;

/// Size, us, line, 10^9 B/s twice, whether in place, wrong elements.
type Row = (u64, f64, u32, f64, f64, bool, Option<u64>);

/// Finds the lines of a log that say something.
#[pyclass(frozen, module = "linkwright._native")]
pub struct LogScanner(Scanner);

#[pymethods]
impl LogScanner {
    #[new]
    fn new(marks: Vec<(String, u8)>, types: HashMap<String, u64>, operators: Vec<String>) -> Self {
        LogScanner(Scanner::new(marks, types, operators))
    }

    /// (number, marks, how many such lines, text, rows) of each line to be read, and how many others are not blank. Of
    /// rows, the text is their type, operator and root.
    #[allow(clippy::type_complexity)] // a tuple takes a tenth of the time of a class
    fn scan(&self, text: &str, first: u32) -> (Vec<(u32, u8, u32, String, Vec<Row>)>, u64) {
        let (found, passed) = self.0.scan(text);
        let found = found.into_iter().map(|(at, said)| match said {
            Said::Line(line, marks, times) => (first + at, marks, times, line.to_owned(), vec![]),
            Said::Rows(kind, rows) => {
                let rows = rows
                    .iter()
                    .zip(first + at..)
                    .flat_map(|((size, pair), line)| {
                        [false, true]
                            .into_iter()
                            .zip(pair)
                            .map(move |(in_place, one)| {
                                (*size, one.0, line, one.1, one.2, in_place, one.3)
                            })
                    });
                (first + at, HEAD, 1, kind.join(" "), rows.collect())
            }
        });
        (found.collect(), passed)
    }
}
