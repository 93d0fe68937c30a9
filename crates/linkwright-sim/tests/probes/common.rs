//! A machine without probe tables, and answers that are waived.

use linkwright_core::{Machine, MachineError};
use linkwright_sim::SimError;

/// Four tiles at 1 GHz, with memory of 1 MiB each.
const PLAIN: &str = r#"
[machine]
name = "plain"
summary = "for tests"
description = "for tests"
sources = ["by definition"]
format = 1
clock = { value = 1, unit = "GHz", status = "assumed", source = "round" }
[[level]]
name = "tile"
count = 4
source = "by definition"
[endpoints]
source = "by definition"
count = 4
capacity = { value = 1, unit = "MiB", status = "assumed", source = "round" }
[fabric]
kind = "loggp"
latency = { value = 1, unit = "us", status = "assumed", source = "round" }
gap = { value = 1, unit = "us", status = "assumed", source = "round" }
bandwidth = { value = 1, unit = "GB/s", status = "assumed", source = "round" }
[path.put]
summary = "a put"
"#;

pub fn machine(tables: &str) -> Machine {
    read(tables).unwrap()
}

pub fn read(tables: &str) -> Result<Machine, MachineError> {
    Machine::parse(&format!("{PLAIN}{tables}"), "plain.toml")
}

/// Why a probe is not answered.
pub fn waived<T: std::fmt::Debug>(result: Result<T, SimError>) -> String {
    match result {
        Err(error @ SimError::Waived { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}
