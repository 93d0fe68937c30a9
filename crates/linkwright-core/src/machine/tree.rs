//! The text of a machine file as an ordered tree whose numbers are checked.
//!
//! TOML knows only integers and floats; here a *number* is a table `{ value, unit, status, source }`
//! and everything that can be said about it without knowing who reads it is checked once: the unit
//! is in the closed list, the status is one of five, a source is given, the value is finite and not
//! negative, a rate is not zero. Decimals are kept as exact fractions. Every key remembers its line.

use std::collections::BTreeSet;
use std::mem::discriminant;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::unit::{Clocked, Unit, UNITS};
use super::Status;
use crate::error::{closest, suggest, At, MachineError};
use crate::ratio::Ratio;

/// A value with the line it stands on.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub line: usize,
    pub value: Value,
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
}

/// A number of the machine, or a list of numbers that share unit, status and source.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    /// As written.
    pub texts: Vec<String>,
    pub values: Vec<Ratio>,
    /// Whether `value` was written as a list.
    pub list: bool,
    pub unit: &'static Unit,
    pub status: Status,
    pub source: String,
}

/// Read a whole file.
pub(crate) fn parse(text: &str, file: &str) -> Result<Table, MachineError> {
    let builder = Builder { text, file };
    match DeTable::parse(text) {
        Ok(table) => builder.table(table.get_ref(), 0, ""),
        Err(error) => Err(builder.syntax(&error)),
    }
}

struct Builder<'a> {
    text: &'a str,
    file: &'a str,
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
        let head = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + head.iter().filter(|&&b| b == b'\n').count()
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
            let value = self.value(value, key.span().start, &inner)?;
            let line = self.line(key.span().start);
            entries.push((name, Node { line, value }));
        }
        let line = self.line(offset);
        Ok(Table { line, entries })
    }

    fn value(
        &self,
        value: &Spanned<DeValue<'_>>,
        offset: usize,
        path: &str,
    ) -> Result<Value, MachineError> {
        Ok(match value.get_ref() {
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
                    let start = item.span().start;
                    let value = self.value(item, start, &format!("{path}[{i}]"))?;
                    let line = self.line(start);
                    list.push(Node { line, value });
                }
                Value::List(list)
            }
            DeValue::Table(table) if is_number(table) => {
                Value::Number(self.number(table, offset, path)?)
            }
            DeValue::Table(table) => Value::Table(self.table(table, offset, path)?),
        })
    }

    fn number(
        &self,
        table: &DeTable<'_>,
        offset: usize,
        path: &str,
    ) -> Result<Number, MachineError> {
        let at = |start| self.at(start, path);
        let known = ["value", "unit", "status", "source"];
        let keys: BTreeSet<&str> = table.keys().map(|k| k.get_ref().as_ref()).collect();
        if let Some((key, _)) = (table.iter()).find(|(k, _)| !known.contains(&&**k.get_ref())) {
            let free = known.into_iter().filter(|k| !keys.contains(k));
            return Err(MachineError::UnknownKey {
                at: at(key.span().start),
                key: key.get_ref().to_string(),
                cure: match closest(key.get_ref(), free) {
                    Some(best) => format!("did you mean `{best}`?"),
                    None => format!("a number is {NUMBER_FORM}"),
                },
            });
        }
        let get = |key: &str| table.iter().find(|(k, _)| **k.get_ref() == *key);
        let missing = |key: &str| MachineError::MissingKey {
            at: at(offset),
            key: key.to_string(),
            cure: format!("a number is {NUMBER_FORM}"),
        };
        let text = |key: &str| -> Result<(String, usize), MachineError> {
            let (k, value) = get(key).ok_or_else(|| missing(key))?;
            match value.get_ref() {
                DeValue::String(s) if !s.trim().is_empty() => Ok((s.to_string(), k.span().start)),
                other => Err(MachineError::WrongType {
                    at: self.at(k.span().start, &join(path, key)),
                    found: match other {
                        DeValue::String(_) => "an empty text".to_string(),
                        other => format!("a value of TOML type {}", other.type_str()),
                    },
                    needed: "a text that is not empty".to_string(),
                }),
            }
        };

        let (key, value) = get("value").ok_or_else(|| missing("value"))?;
        let (unit_name, unit_at) = text("unit")?;
        let unit = Unit::find(&unit_name).ok_or_else(|| MachineError::UnknownUnit {
            at: at(unit_at),
            cure: suggest(&unit_name, UNITS.iter().map(|u| u.name)),
            unit: unit_name,
        })?;
        let (status, status_at) = text("status")?;
        let status = Status::find(&status).ok_or_else(|| MachineError::UnknownChoice {
            at: self.at(status_at, &join(path, "status")),
            cure: suggest(&status, Status::ALL.iter().map(|s| s.name())),
            value: status,
        })?;
        let (source, _) = text("source")?;

        let mut number = Number {
            texts: Vec::new(),
            values: Vec::new(),
            list: false,
            unit,
            status,
            source,
        };
        number.set(value.get_ref(), at(key.span().start))?;
        Ok(number)
    }
}

impl Number {
    /// Take the value, a scalar or a list of scalars.
    fn set(&mut self, value: &DeValue<'_>, at: At) -> Result<(), MachineError> {
        self.list = value.is_array();
        let scalars: Vec<&DeValue<'_>> = match value {
            DeValue::Array(items) => items.iter().map(|i| i.get_ref()).collect(),
            scalar => vec![scalar],
        };
        let read: Result<Vec<_>, _> = scalars.iter().map(|s| decimal(s, self.unit)).collect();
        match read {
            Ok(pairs) => {
                (self.texts, self.values) = pairs.into_iter().unzip();
                Ok(())
            }
            Err((value, problem)) => Err(MachineError::BadValue { at, value, problem }),
        }
    }

    /// The value as written.
    pub fn text(&self) -> String {
        if self.list {
            format!("[{}]", self.texts.join(", "))
        } else {
            self.texts.concat()
        }
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
    let builder = Builder {
        text: literal,
        file: &at.file,
    };
    let value = builder.value(&parsed, 0, &at.key)?;
    if discriminant(&value) != discriminant(&node.value) || matches!(value, Value::Table(_)) {
        return Err(MachineError::WrongType {
            at: at.clone(),
            found: value.found(),
            needed: format!("a value like {}", node.value.found()),
        });
    }
    node.value = value;
    Ok(())
}

/// How a number is written, for error messages.
pub(crate) const NUMBER_FORM: &str = "{ value = ..., unit = \"...\", \
     status = \"documented|measured|derived|fitted|assumed\", source = \"...\" }";

/// A table is a number as soon as one key says so; then the others must be there too.
fn is_number(table: &DeTable<'_>) -> bool {
    (table.keys()).any(|k| matches!(k.get_ref().as_ref(), "value" | "unit" | "status"))
}

/// An exact, finite, non-negative value, or what was written and what is wrong with it.
fn decimal(scalar: &DeValue<'_>, unit: &Unit) -> Result<(String, Ratio), (String, String)> {
    let (text, radix) = match scalar {
        DeValue::Integer(n) => (n.as_str().to_string(), n.radix()),
        DeValue::Float(x) => (x.as_str().to_string(), 10),
        DeValue::String(text) => {
            let problem = "is a text; write the number without quotes";
            return Err((format!("\"{text}\""), problem.to_string()));
        }
        other => {
            let problem = format!("holds a {}; write a number", other.type_str());
            return Err(("value".to_string(), problem));
        }
    };
    let bad = |problem: &str| Err((text.clone(), problem.to_string()));
    if radix != 10 {
        return bad("is not decimal; write decimal digits");
    }
    if text.contains("nan") || text.contains("inf") {
        return bad("is not finite; leave the key out where the model allows that");
    }
    if text.starts_with('-') {
        return bad("is negative; a machine's number is zero or more");
    }
    let Some(value) = Ratio::from_decimal(text.trim_start_matches('+')) else {
        return bad("has too many digits; use a larger or smaller unit");
    };
    if value.is_zero() && (unit.dimension.must_exceed_zero() || unit.clocked == Clocked::PerCycle) {
        return bad(&format!(
            "is zero, and {} divides something; it must be above zero",
            unit.dimension.phrase()
        ));
    }
    Ok((text, value))
}

/// A dotted path.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    }
}
