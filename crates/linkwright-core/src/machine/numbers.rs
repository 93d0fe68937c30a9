//! The numbers of a machine: listed for people, and changed for a study.
//!
//! [`Machine::with_value`] makes the variants of a sensitivity study or a fit, and lists the changed
//! number as `assumed`.

use super::number::Status;
use super::tree::{self, Node, Table, Value};
use super::Machine;
use crate::error::{closest, join, At, MachineError};

/// The unit of a word or a flag in a list of numbers.
const WORD: &str = "word";

/// One number of a machine file, or one word or flag that states its status, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberRow {
    /// Dotted path, such as `fabric.hop_latency`.
    pub key: String,
    /// The value as written; a list in brackets.
    pub value: String,
    /// The unit as written.
    pub unit: &'static str,
    /// How it came to be known.
    pub status: Status,
    /// Title of the document, and place in it, or the reasoning.
    pub source: String,
}

impl Machine {
    /// Every number of the file, in the order of the file.
    pub fn numbers(&self) -> Vec<NumberRow> {
        let mut rows = Vec::new();
        collect(&self.tree, "", &mut rows);
        rows.sort_by_key(|&(line, _)| line);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// How many numbers were fitted.
    pub fn fitted(&self) -> usize {
        let rows = self.numbers();
        rows.iter().filter(|r| r.status == Status::Fitted).count()
    }

    /// This machine with the value of one key replaced, written as in the file: `12`, `[1, 2]` for a
    /// number, which keeps its unit, or `"dynamic"`, `true` for the rest.
    pub fn with_value(&self, key: &str, literal: &str) -> Result<Machine, MachineError> {
        self.with_values(&[(key, literal)])
    }

    /// The same with several keys at once, which may depend on each other.
    pub fn with_values(&self, values: &[(&str, &str)]) -> Result<Machine, MachineError> {
        let mut changed = self.tree.clone();
        for (key, literal) in values {
            self.replace(&mut changed, key, literal)?;
        }
        self.changed(changed)
    }

    fn replace(&self, changed: &mut Table, key: &str, literal: &str) -> Result<(), MachineError> {
        let at = At {
            file: self.file().to_string(),
            line: 0,
            key: key.to_string(),
        };
        let Some(node) = find(changed, key) else {
            let known: Vec<String> = self.numbers().into_iter().map(|n| n.key).collect();
            return Err(MachineError::UnknownKey {
                at: At {
                    key: String::new(),
                    ..at
                },
                key: key.to_string(),
                cure: match closest(key, known.iter().map(String::as_str)) {
                    Some(best) => format!("did you mean `{best}`?"),
                    None => "no number of the machine resembles it".to_string(),
                },
            });
        };
        tree::replace(node, literal, &at)
    }
}

/// The node at a dotted path, such as `path.write.start` or `endpoints.memory[0].capacity`.
fn find<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Node> {
    let (head, rest) = match key.split_once('.') {
        Some((head, rest)) => (head, Some(rest)),
        None => (key, None),
    };
    let (name, index) = match head.split_once('[') {
        Some((name, index)) => (name, Some(index.strip_suffix(']')?.parse::<usize>().ok()?)),
        None => (head, None),
    };
    let (_, mut node) =
        (table.entries.iter_mut().map(|(k, n)| (k, n))).find(|(k, _)| *k == name)?;
    if let Some(index) = index {
        node = match &mut node.value {
            Value::List(items) => items.get_mut(index)?,
            _ => return None,
        };
    }
    let Some(rest) = rest else {
        return Some(node);
    };
    match &mut node.value {
        Value::Table(inner) => find(inner, rest),
        _ => None,
    }
}

fn collect(table: &Table, path: &str, rows: &mut Vec<(usize, NumberRow)>) {
    for (key, node) in &table.entries {
        collect_node(node, &join(path, key), rows);
    }
}

fn collect_node(node: &Node, path: &str, rows: &mut Vec<(usize, NumberRow)>) {
    match &node.value {
        Value::Table(table) => collect(table, path, rows),
        Value::List(items) => {
            for (i, item) in items.iter().enumerate() {
                collect_node(item, &format!("{path}[{i}]"), rows);
            }
        }
        Value::Number(n) => {
            let row = NumberRow {
                key: path.to_string(),
                value: n.text(),
                unit: n.unit.name,
                status: n.status,
                source: n.source.clone(),
            };
            rows.push((node.line, row));
        }
        Value::Text(word) => rows.extend(word_row(node, path, word.clone())),
        Value::Flag(flag) => rows.extend(word_row(node, path, flag.to_string())),
        Value::Integer(_) => {}
    }
}

/// A word is listed only if it states its status: the others are structure.
fn word_row(node: &Node, path: &str, value: String) -> Option<(usize, NumberRow)> {
    let basis = node.basis.as_ref()?;
    let row = NumberRow {
        key: path.to_string(),
        value,
        unit: WORD,
        status: basis.status,
        source: basis.source.clone(),
    };
    Some((node.line, row))
}
