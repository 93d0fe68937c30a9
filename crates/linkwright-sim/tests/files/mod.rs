//! Files of the repository, for the tests.

use linkwright_core::Machine;

/// The text of a file, by its path in the repository.
pub fn text(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The machine that a file describes once each `from` in it is replaced by `to`.
pub fn machine(path: &str, changes: &[(&str, &str)]) -> Machine {
    let text = changes.iter().fold(text(path), |text, (from, to)| {
        assert!(text.contains(from), "{path}: {from}");
        text.replace(from, to)
    });
    Machine::parse(&text, path).unwrap_or_else(|e| panic!("{e}"))
}
