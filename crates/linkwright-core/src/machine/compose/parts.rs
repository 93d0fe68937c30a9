//! Parts of machine files: `parts = ["hopper"]` names tables that several machines share.
//!
//! Tables of the same name are merged; where both have a key, a later part wins over an earlier one, and the file over
//! its parts.

use super::Files;
use crate::error::{At, MachineError};
use crate::machine::tree::{self, Node, Table, Value};

/// Merge a machine file over its parts, in place; return whether it names any.
pub(super) fn merged(
    tree: &mut Table,
    file: &str,
    files: &dyn Files,
) -> Result<bool, MachineError> {
    let Some(parts) = tree.remove("parts") else {
        return Ok(false);
    };
    let mut below = Table::default();
    for name in names(&parts, file)? {
        let part = files.part(&name)?;
        let mut tables = tree::parse(&part.text, &part.name)?;
        if let Some(node) = tables.get("parts") {
            return Err(MachineError::Inconsistent {
                at: at(&part.name, node.line),
                problem: "a part has no parts of its own; name them in the machine file"
                    .to_string(),
            });
        }
        tables.remove("part"); // the part's own name and summary
        merge(&mut below, tables);
    }
    merge(&mut below, std::mem::take(tree));
    *tree = below;
    Ok(true)
}

fn at(file: &str, line: usize) -> At {
    At {
        file: file.to_string(),
        line,
        key: "parts".to_string(),
    }
}

fn names(node: &Node, file: &str) -> Result<Vec<String>, MachineError> {
    let name = |node: &Node| match &node.value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    };
    let names = match &node.value {
        Value::List(items) => items.iter().map(name).collect(),
        _ => None,
    };
    names.ok_or_else(|| MachineError::Inconsistent {
        at: at(file, node.line),
        problem: "write names of parts, such as `parts = [\"hopper\"]`".to_string(),
    })
}

/// Put the entries of `above` into `below`.
fn merge(below: &mut Table, above: Table) {
    for (key, node) in above.entries {
        match (below.get_mut(&key), node) {
            (
                Some(Node {
                    value: Value::Table(old),
                    ..
                }),
                Node {
                    value: Value::Table(new),
                    ..
                },
            ) => merge(old, new),
            (Some(old), node) => *old = node,
            (None, node) => below.entries.push((key, node)),
        }
    }
}
