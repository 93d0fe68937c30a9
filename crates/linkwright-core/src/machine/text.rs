//! Write the tree of a machine as TOML that people read and edit.
//!
//! ```text
//! fabric -> kind -> "flow"                    [fabric]
//!        -> links -> nvlink -> ...     ->     kind = "flow"
//!
//!                                             [fabric.links.nvlink]
//! ```
//!
//! Keys keep their order. A number is on one line with its source, and so is a short list. Reading the text gives the
//! same machine again.

use std::fmt::Write;

use super::tree::{Node, Table, Value};

/// Maximum length of a list on one line, in characters.
const WIDTH: usize = 120;

/// Write a document, and set the line and order of its nodes to those in the text.
pub(super) fn write(tree: &mut Table) -> String {
    let mut writer = Writer {
        text: String::new(),
        line: 1,
    };
    writer.table(tree, "");
    writer.text
}

struct Writer {
    text: String,
    line: usize,
}

impl Writer {
    /// Write the keys of a table, then the tables inside.
    fn table(&mut self, table: &mut Table, path: &str) {
        table.line = self.line;
        table.entries.sort_by_key(|(_, node)| has_header(node));
        for (key, node) in &mut table.entries {
            let key = key_text(key);
            if !has_header(node) {
                let text = value_text(node);
                number_lines(node, self.line);
                self.put(&format!("{key} = {text}\n"));
            } else if path.is_empty() {
                self.inner(node, &key);
            } else {
                self.inner(node, &format!("{path}.{key}"));
            }
        }
    }

    /// Write a table or a list of tables, with headers; a table that contains only tables needs none.
    fn inner(&mut self, node: &mut Node, name: &str) {
        node.line = self.line_of_header();
        match &mut node.value {
            Value::Table(table) => {
                let inside =
                    !table.entries.is_empty() && table.entries.iter().all(|(_, n)| has_header(n));
                if !inside {
                    self.header(&format!("[{name}]"));
                }
                let line = node.line;
                self.table(table, name);
                table.line = line;
            }
            Value::List(items) => {
                for item in items {
                    item.line = self.line_of_header();
                    self.header(&format!("[[{name}]]"));
                    if let Value::Table(table) = &mut item.value {
                        self.table(table, name);
                        table.line = item.line;
                    }
                }
            }
            _ => unreachable!("only tables have headers"),
        }
    }

    /// The line that a header written now would be on.
    fn line_of_header(&self) -> usize {
        self.line + usize::from(!self.text.is_empty())
    }

    fn header(&mut self, header: &str) {
        let space = if self.text.is_empty() { "" } else { "\n" };
        self.put(&format!("{space}{header}\n"));
    }

    fn put(&mut self, text: &str) {
        self.line += text.matches('\n').count();
        self.text += text;
    }
}

/// Set the lines of a value that begins on this line, and of its items.
fn number_lines(node: &mut Node, line: usize) {
    node.line = line;
    match &mut node.value {
        Value::Table(table) => {
            table.line = line;
            for (_, inner) in &mut table.entries {
                number_lines(inner, line);
            }
        }
        Value::List(items) => {
            let texts: Vec<String> = items.iter().map(value_text).collect();
            let one_line = fits(&texts);
            for (i, item) in items.iter_mut().enumerate() {
                number_lines(item, if one_line { line } else { line + 1 + i });
            }
        }
        _ => {}
    }
}

/// Whether a value has a header of its own: a table, or a list of tables.
fn has_header(node: &Node) -> bool {
    let is_table = |node: &Node| matches!(node.value, Value::Table(_));
    match &node.value {
        Value::List(items) => !items.is_empty() && items.iter().all(is_table),
        _ => is_table(node),
    }
}

fn key_text(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !key.is_empty() && key.chars().all(bare) {
        true => key.to_string(),
        false => quoted(key),
    }
}

fn value_text(node: &Node) -> String {
    let text = match &node.value {
        Value::Text(text) if text.contains('\n') => {
            let lines: Vec<String> = text.split('\n').map(escaped).collect();
            format!("\"\"\"\n{}\"\"\"", lines.join("\n"))
        }
        Value::Text(text) => quoted(text),
        Value::Flag(flag) => flag.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::List(items) => list_text(&items.iter().map(value_text).collect::<Vec<_>>()),
        Value::Table(table) => {
            let keys = table.entries.iter();
            let keys: Vec<_> = keys
                .map(|(k, n)| format!("{} = {}", key_text(k), value_text(n)))
                .collect();
            format!("{{ {} }}", keys.join(", "))
        }
        Value::Number(number) => {
            let value = match number.list {
                true => list_text(&number.texts),
                false => number.texts.concat(),
            };
            let (unit, status, source) = (number.unit.name, number.status, quoted(&number.source));
            return format!("{{ value = {value}, unit = \"{unit}\", status = \"{status}\", source = {source} }}");
        }
    };
    match &node.basis {
        Some(basis) => format!(
            "{{ value = {text}, status = \"{}\", source = {} }}",
            basis.status,
            quoted(&basis.source)
        ),
        None => text,
    }
}

/// Whether a list of these items fits on one line.
fn fits(items: &[String]) -> bool {
    let separators = 2 * items.len().saturating_sub(1);
    items.iter().map(|item| item.chars().count()).sum::<usize>() + separators + 2 <= WIDTH
}

fn list_text(items: &[String]) -> String {
    if fits(items) {
        return format!("[{}]", items.join(", "));
    }
    let lines: String = items.iter().map(|item| format!("  {item},\n")).collect();
    format!("[\n{lines}]")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => found += "\\\"",
            '\\' => found += "\\\\",
            '\n' => found += "\\n",
            '\r' => found += "\\r",
            '\t' => found += "\\t",
            '\u{8}' => found += "\\b",
            '\u{c}' => found += "\\f",
            c if c < ' ' || c == '\u{7f}' => {
                write!(found, "\\u{:04x}", u32::from(c)).expect("a string takes all");
            }
            c => found.push(c),
        }
    }
    found
}
