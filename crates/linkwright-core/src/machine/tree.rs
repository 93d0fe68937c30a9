//! The text of a machine file as an ordered tree whose numbers are checked.
//!
//! TOML knows only integers and floats; here a *number* is a table `{ value, unit, status, source }`,
//! read by [`number`](super::number). Every key remembers its line.

use std::mem::discriminant;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::number::{is_number, is_word, Basis, Number, NumberTable, Status, NUMBER_FORM};
use crate::error::{join, At, MachineError};

/// A value with the line it stands on.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub line: usize,
    pub value: Value,
    /// Of a word or a flag that states it; a number has its own.
    pub basis: Option<Basis>,
}

/// What may stand behind a key.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Flag(bool),
    /// An integer outside a number table: the size of a level, a place of a grid.
    Integer(u64),
    List(Vec<Node>),
    Table(Table),
    Number(Number),
}

impl Value {
    /// The kind of value, for error messages.
    pub fn found(&self) -> String {
        match self {
            Value::Text(text) => format!("the text \"{text}\""),
            Value::Flag(flag) => format!("`{flag}`"),
            Value::Integer(n) => format!("the bare integer {n}"),
            Value::List(_) => "a list".to_string(),
            Value::Table(_) => "a table".to_string(),
            Value::Number(_) => "a number with unit, status and source".to_string(),
        }
    }
}

/// A table, its entries in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub line: usize,
    pub entries: Vec<(String, Node)>,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|(k, _)| k == key).map(|(_, n)| n)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(k, _)| k.as_str())
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let entry = self.entries.iter_mut().find(|(k, _)| k == key);
        entry.map(|(_, node)| node)
    }

    /// The table behind a key, if that is one.
    pub fn table_mut(&mut self, key: &str) -> Option<&mut Table> {
        match &mut self.get_mut(key)?.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The list behind a key, if that is one.
    pub fn list_mut(&mut self, key: &str) -> Option<&mut Vec<Node>> {
        match &mut self.get_mut(key)?.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Put a value behind a key, which keeps its place; a new key is the last.
    pub fn set(&mut self, key: &str, value: impl Into<Node>) {
        match self.get_mut(key) {
            Some(node) => *node = value.into(),
            None => self.entries.push((key.to_string(), value.into())),
        }
    }

    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let place = self.entries.iter().position(|(k, _)| k == key)?;
        Some(self.entries.remove(place).1)
    }
}

impl Node {
    /// Whether this is the text.
    pub fn is_text(&self, text: &str) -> bool {
        matches!(&self.value, Value::Text(found) if found == text)
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Node {
            line: 0,
            value,
            basis: None,
        }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Value::Text(text.to_string()).into()
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Value::Text(text).into()
    }
}

impl From<Table> for Node {
    fn from(table: Table) -> Self {
        Value::Table(table).into()
    }
}

impl From<Number> for Node {
    fn from(number: Number) -> Self {
        Value::Number(number).into()
    }
}

impl<N: Into<Node>> From<Vec<N>> for Node {
    fn from(items: Vec<N>) -> Self {
        Value::List(items.into_iter().map(Into::into).collect()).into()
    }
}

impl<K: Into<String>> FromIterator<(K, Node)> for Table {
    fn from_iter<I: IntoIterator<Item = (K, Node)>>(entries: I) -> Self {
        Table {
            line: 0,
            entries: entries.into_iter().map(|(k, n)| (k.into(), n)).collect(),
        }
    }
}

/// Read a whole file.
pub(crate) fn parse(text: &str, file: &str) -> Result<Table, MachineError> {
    let builder = Builder::new(text, file);
    match DeTable::parse(text) {
        Ok(table) => builder.table(table.get_ref(), 0, ""),
        Err(error) => Err(builder.syntax(&error)),
    }
}

struct Builder<'a> {
    text: &'a str,
    file: &'a str,
    /// Where lines end; a search among them keeps reading linear in the text.
    ends: Vec<usize>,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str, file: &'a str) -> Self {
        Builder {
            text,
            file,
            ends: text.match_indices('\n').map(|(end, _)| end).collect(),
        }
    }
}

impl Builder<'_> {
    /// The parser's words, and what they are about where that is one line.
    fn syntax(&self, error: &toml::de::Error) -> MachineError {
        let span = error.span().unwrap_or_default();
        let mut problem = error.message().trim().replace('\n', ", ");
        match self.text.get(span.clone()) {
            Some(about) if !about.is_empty() && !about.contains('\n') => {
                problem = format!("{problem}: `{about}`");
            }
            _ => {}
        }
        MachineError::Syntax {
            at: self.at(span.start, ""),
            problem,
        }
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.ends.partition_point(|&end| end < offset)
    }

    fn at(&self, offset: usize, key: &str) -> At {
        At {
            file: self.file.to_string(),
            line: self.line(offset),
            key: key.to_string(),
        }
    }

    fn table(&self, table: &DeTable<'_>, offset: usize, path: &str) -> Result<Table, MachineError> {
        let mut ordered: Vec<_> = table.iter().collect();
        ordered.sort_by_key(|(key, _)| key.span().start);
        let mut entries = Vec::with_capacity(ordered.len());
        for (key, value) in ordered {
            let name = key.get_ref().to_string();
            let inner = join(path, &name);
            let node = self.node(value, key.span().start, &inner)?;
            entries.push((name, node));
        }
        let line = self.line(offset);
        Ok(Table { line, entries })
    }

    fn node(
        &self,
        value: &Spanned<DeValue<'_>>,
        offset: usize,
        path: &str,
    ) -> Result<Node, MachineError> {
        let line = self.line(offset);
        let (value, basis) = match value.get_ref() {
            DeValue::Table(table) if is_word(table) => {
                let at = &self.place(path);
                let word = NumberTable { table, offset, at };
                let (value, basis) = word.read_word()?;
                (self.value(value, offset, path)?, Some(basis))
            }
            value => (self.value(value, offset, path)?, None),
        };
        Ok(Node { line, value, basis })
    }

    /// The spot of an offset below `path`, or of a key there.
    fn place<'s>(&'s self, path: &'s str) -> impl Fn(usize, Option<&str>) -> At + 's {
        move |start, key| match key {
            Some(key) => self.at(start, &join(path, key)),
            None => self.at(start, path),
        }
    }

    fn value(&self, value: &DeValue<'_>, offset: usize, path: &str) -> Result<Value, MachineError> {
        Ok(match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Integer(n) => {
                let parsed = u64::from_str_radix(n.as_str(), n.radix());
                Value::Integer(parsed.map_err(|_| MachineError::BadValue {
                    at: self.at(offset, path),
                    value: n.to_string(),
                    problem: "is negative or too large; a size or place is needed".to_string(),
                })?)
            }
            DeValue::Float(float) => {
                return Err(MachineError::WrongType {
                    at: self.at(offset, path),
                    found: format!("the bare number {float}"),
                    needed: format!("{NUMBER_FORM}, with value = {float}"),
                })
            }
            DeValue::Datetime(date) => {
                return Err(MachineError::WrongType {
                    at: self.at(offset, path),
                    found: format!("the date {date}"),
                    needed: "a number, a text or a table".to_string(),
                })
            }
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    list.push(self.node(item, item.span().start, &format!("{path}[{i}]"))?);
                }
                Value::List(list)
            }
            DeValue::Table(table) if is_number(table) => {
                let at = &self.place(path);
                Value::Number(NumberTable { table, offset, at }.read()?)
            }
            DeValue::Table(table) => Value::Table(self.table(table, offset, path)?),
        })
    }
}

/// Put the value written in `literal` in place of the node's; a number keeps its unit, any other
/// value its kind.
pub(crate) fn replace(node: &mut Node, literal: &str, at: &At) -> Result<(), MachineError> {
    let parsed = DeValue::parse(literal).map_err(|error| MachineError::Syntax {
        at: at.clone(),
        problem: format!(
            "{}: `{literal}`",
            error.message().trim().replace('\n', ", ")
        ),
    })?;
    if let Value::Number(number) = &mut node.value {
        let was = format!("{} ({}: {})", number.text(), number.status, number.source);
        number.set(parsed.get_ref(), at.clone())?;
        number.status = Status::Assumed;
        number.source = format!("set for this run; the file says {was}");
        return Ok(());
    }
    let builder = Builder::new(literal, &at.file);
    let value = builder.value(parsed.get_ref(), 0, &at.key)?;
    if discriminant(&value) != discriminant(&node.value) || matches!(value, Value::Table(_)) {
        return Err(MachineError::WrongType {
            at: at.clone(),
            found: value.found(),
            needed: format!("a value like {}", node.value.found()),
        });
    }
    if let Some(basis) = &mut node.basis {
        let was = format!(
            "{} ({}: {})",
            node.value.found(),
            basis.status,
            basis.source
        );
        basis.status = Status::Assumed;
        basis.source = format!("set for this run; the file says {was}");
    }
    node.value = value;
    Ok(())
}
