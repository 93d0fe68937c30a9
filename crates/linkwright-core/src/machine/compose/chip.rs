//! Remove networks of a chip: messages that used one take the first of those left.

use crate::error::{MachineError, UnknownName, VariantError};
use crate::machine::tree::{Node, Table, Value};

fn name(network: &Node) -> Option<&str> {
    match &network.value {
        Value::Table(table) => text(table.get("name")?),
        _ => None,
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Remove networks, and replace their names wherever hints use them.
pub(super) fn remove(tree: &mut Table, without: &[String], file: &str) -> Result<(), MachineError> {
    let fabric = tree.table_mut("fabric");
    let Some(all) = fabric.and_then(|fabric| fabric.list_mut("network")) else {
        return Ok(());
    };
    let names: Vec<String> = all.iter().filter_map(name).map(String::from).collect();
    if let Some(gone) = without.iter().find(|gone| !names.contains(gone)) {
        return Err(MachineError::Variant(VariantError::from(UnknownName {
            at: format!("{file}: --without"),
            what: "network".to_string(),
            name: gone.clone(),
            known: names,
            otherwise: None,
        })));
    }
    let left: Vec<String> = names
        .into_iter()
        .filter(|name| !without.contains(name))
        .collect();
    let Some(first) = left.first() else {
        let problem = format!(
            "{file}: --without {}: no network is left",
            without.join(" and ")
        );
        return Err(VariantError::refused(problem));
    };
    let is_left = |node: &Node, own: fn(&Node) -> Option<&str>| {
        own(node).is_some_and(|name| left.iter().any(|l| l == name))
    };
    all.retain(|network| is_left(network, name));
    if let Some(hints) = tree.table_mut("hints") {
        for (_, hint) in &mut hints.entries {
            match &mut hint.value {
                Value::List(names) => names.retain(|node| is_left(node, text)),
                Value::Table(table) => {
                    let gone = table.entries.iter_mut().filter(|(_, n)| !is_left(n, text));
                    gone.for_each(|(_, node)| *node = Node::from(first.as_str()));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
