//! Typed reading of one table, which reports every key that was not asked for.
//!
//! The reader of a table (a fabric for `[fabric]`, the machine for `[endpoints]`) asks for each key
//! once, by name and kind, and ends with [`Section::finish`]. A key that it did not ask for is an
//! error, so a misspelt optional key cannot silently fall back to its default:
//!
//! ```
//! # use linkwright_core::{machine::Machine, MachineError, TimePs};
//! # fn read(machine: &Machine) -> Result<(), MachineError> {
//! let mut f = machine.fabric_section();
//! let hop: TimePs = f.time("hop_latency")?;
//! let depth: Option<u64> = f.optional_count("queue_depth")?;
//! f.finish()?;
//! # Ok(()) }
//! ```
//!
//! Each kind comes three times: required (`time`), `optional_time`, and as list (`times`). Reading
//! checks the dimension of the unit; times are rounded down to a picosecond, everything else is exact
//! or an error.

use std::collections::BTreeSet;

use super::number::{Number, NUMBER_FORM};
use super::recorder::{Form, Reading, Recorder};
use super::scalar::Scalar;
use super::tree::{Node, Table, Value};
use super::unit::Dimension;
use crate::error::{closest, join, suggest, At, MachineError};
use crate::ratio::Ratio;
use crate::units::{Bytes, BytesPerSec, Clock, TimePs};

/// What all sections of a file have in common.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub file: String,
    pub clock: Option<Clock>,
    /// Where the keys that readers ask for are noted, while a schema is made.
    pub recorder: Option<Recorder>,
}

/// A table being read.
#[derive(Debug)]
#[must_use = "call finish(), which reports unknown keys"]
pub struct Section<'a> {
    context: &'a Context,
    table: &'a Table,
    path: String,
    asked: BTreeSet<String>,
    /// What a schema says of this table; `None` unless one is being made.
    reading: Option<Box<Reading>>,
}

macro_rules! readers {
    ($($(#[$doc:meta])* $one:ident, $optional:ident, $many:ident, $ty:ty, $dimension:ident, $convert:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $one(&mut self, key: &str) -> Result<$ty, MachineError> {
                let form = Form::Number(Dimension::$dimension);
                self.required(key, form, |s, node| s.one(key, node, $convert))
            }

            /// The same, `None` where the key is absent.
            pub fn $optional(&mut self, key: &str) -> Result<Option<$ty>, MachineError> {
                let form = Form::Number(Dimension::$dimension);
                self.optional(key, form, |s, node| s.one(key, node, $convert))
            }

            /// The same for a list; a single value is a list of one.
            pub fn $many(&mut self, key: &str) -> Result<Vec<$ty>, MachineError> {
                let form = Form::Numbers(Dimension::$dimension);
                self.required(key, form, |s, node| s.many(key, node, $convert))
            }
        )*
    };
}

impl<'a> Section<'a> {
    pub(crate) fn root(context: &'a Context, table: &'a Table) -> Self {
        let reading = context.recorder.as_ref().map(|_| Box::default());
        Section {
            context,
            table,
            path: String::new(),
            asked: BTreeSet::new(),
            reading,
        }
    }

    readers! {
        /// A duration, rounded down to a picosecond.
        time, optional_time, times, TimePs, Time, |s| s.time();
        /// A duration in whole cycles of the machine's clock.
        cycles, optional_cycles, cycle_list, u64, Time, |s| s.cycles();
        /// A duration in cycles of the machine's clock, with fractions.
        fractional_cycles, optional_fractional_cycles, fractional_cycle_list, Ratio, Time,
            |s| s.fractional_cycles();
        /// A rate of data, never zero.
        rate, optional_rate, rates, BytesPerSec, Rate, |s| s.float(Dimension::Rate).map(BytesPerSec);
        /// A rate of arithmetic in operations per second, never zero.
        work, optional_work, works, f64, Work, |s| s.float(Dimension::Work);
        /// A whole number of bytes.
        bytes, optional_bytes, sizes, Bytes, Size, |s| s.whole(Dimension::Size).map(Bytes);
        /// A whole number of things: hops, flits, channels.
        count, optional_count, counts, u64, Count, |s| s.whole(Dimension::Count);
        /// A factor.
        ratio, optional_ratio, ratios, f64, Ratio, |s| s.float(Dimension::Ratio);
        /// A part of a whole: above 0, at most 1.
        share, optional_share, shares, f64, Ratio, |s| s.share();
        /// A clock other than the machine's.
        clock, optional_clock, clocks, Clock, Frequency, |s| s.base(Dimension::Frequency).map(Clock::new);
    }

    /// A count that the reader keeps in fewer bits.
    pub fn small_count<T: TryFrom<u64>>(&mut self, key: &str) -> Result<T, MachineError> {
        let count = self.count(key)?;
        T::try_from(count).map_err(|_| {
            let problem = format!("{count} are more than this model has room for; write fewer");
            self.inconsistent(key, problem)
        })
    }

    /// A text.
    pub fn text(&mut self, key: &str) -> Result<String, MachineError> {
        self.required(key, Form::Text, |s, node| s.as_text(key, node))
    }

    /// A text, `None` where the key is absent.
    pub fn optional_text(&mut self, key: &str) -> Result<Option<String>, MachineError> {
        self.optional(key, Form::Text, |s, node| s.as_text(key, node))
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &str) -> Result<Vec<String>, MachineError> {
        self.required(key, Form::Texts, |s, node| s.as_texts(key, node))
    }

    /// A list of texts, `None` where the key is absent.
    pub fn optional_texts(&mut self, key: &str) -> Result<Option<Vec<String>>, MachineError> {
        self.optional(key, Form::Texts, |s, node| s.as_texts(key, node))
    }

    /// One of a closed list of words, as its index in `words`.
    pub fn choice(&mut self, key: &str, words: &[&'static str]) -> Result<usize, MachineError> {
        self.note(key, Form::Words(words), true);
        let found = self.find(key, |s, node| s.as_choice(key, node, words))?;
        if let Some(chosen) = found.filter(|_| key == "kind") {
            self.variant(words[chosen]);
        }
        found.ok_or_else(|| self.missing_choice(key, words))
    }

    /// One of a closed list of words, `None` where the key is absent.
    pub fn optional_choice(
        &mut self,
        key: &str,
        words: &[&'static str],
    ) -> Result<Option<usize>, MachineError> {
        self.optional(key, Form::Words(words), |s, node| {
            s.as_choice(key, node, words)
        })
    }

    /// One of the names that the file gives elsewhere, such as those of its levels, as its index.
    pub fn name(&mut self, key: &str, names: &[&str]) -> Result<usize, MachineError> {
        self.note(key, Form::Name, true);
        let found = self.find(key, |s, node| s.as_choice(key, node, names))?;
        found.ok_or_else(|| self.missing_choice(key, names))
    }

    /// One of the names that the file gives elsewhere, `None` where the key is absent.
    pub fn optional_name(
        &mut self,
        key: &str,
        names: &[&str],
    ) -> Result<Option<usize>, MachineError> {
        self.optional(key, Form::Name, |s, node| s.as_choice(key, node, names))
    }

    fn missing_choice(&self, key: &str, words: &[&str]) -> MachineError {
        self.missing_with(key, format!("add it, as one of {}", words.join(", ")))
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &str) -> Result<bool, MachineError> {
        self.required(key, Form::Flag, |s, node| s.as_flag(key, node))
    }

    /// `true` or `false`, `None` where the key is absent.
    pub fn optional_flag(&mut self, key: &str) -> Result<Option<bool>, MachineError> {
        self.optional(key, Form::Flag, |s, node| s.as_flag(key, node))
    }

    /// A bare integer: structure, such as the number of columns, not a number of the machine.
    pub fn integer(&mut self, key: &str) -> Result<u64, MachineError> {
        self.required(key, Form::Integer, |s, node| s.as_integer(key, node))
    }

    /// A bare integer, `None` where the key is absent.
    pub fn optional_integer(&mut self, key: &str) -> Result<Option<u64>, MachineError> {
        self.optional(key, Form::Integer, |s, node| s.as_integer(key, node))
    }

    /// A single number of one of these dimensions, as it is stated.
    pub(crate) fn stated(
        &mut self,
        key: &str,
        kinds: &[Dimension],
    ) -> Result<&'a Node, MachineError> {
        let found = self.optional_stated(key, kinds)?;
        for kind in kinds {
            self.note(key, Form::Number(*kind), true);
        }
        found.ok_or_else(|| self.missing(key))
    }

    /// The same, `None` where the key is absent.
    pub(crate) fn optional_stated(
        &mut self,
        key: &str,
        kinds: &[Dimension],
    ) -> Result<Option<&'a Node>, MachineError> {
        for kind in kinds {
            self.note(key, Form::Number(*kind), false);
        }
        self.find(key, |s, node| {
            s.one(key, node, |scalar| {
                let own = scalar.number.unit.dimension;
                let kind = kinds.iter().find(|kind| **kind == own);
                scalar.base(*kind.unwrap_or(&kinds[0]))
            })?;
            Ok(node)
        })
    }

    /// A bare integer in 32 bits.
    pub fn small_integer(&mut self, key: &str) -> Result<u32, MachineError> {
        let integer = self.integer(key)?;
        u32::try_from(integer).map_err(|_| {
            let problem = format!("{integer} are more than a model has room for; write fewer");
            self.inconsistent(key, problem)
        })
    }

    /// Whether the word "any" stands there instead of a size; the key counts as read.
    pub(crate) fn is_any(&mut self, key: &str) -> bool {
        self.note(key, Form::Any, false);
        matches!(self.table.get(key), Some(Node { value: Value::Text(word), .. }) if word == "any")
    }

    /// A list of bare integers, such as the columns in use.
    pub fn optional_integers(&mut self, key: &str) -> Result<Option<Vec<u64>>, MachineError> {
        self.optional(key, Form::Integers, |s, node| {
            (s.as_list(key, node)?.iter())
                .map(|item| s.as_integer(key, item))
                .collect()
        })
    }

    /// A list of `[x, y]` places.
    pub fn optional_places(&mut self, key: &str) -> Result<Option<Vec<(u64, u64)>>, MachineError> {
        self.optional(key, Form::Places, |s, node| {
            let pair = |item: &Node| match &item.value {
                Value::List(xy) if xy.len() == 2 => {
                    Ok((s.as_integer(key, &xy[0])?, s.as_integer(key, &xy[1])?))
                }
                _ => Err(s.wrong_type(key, item, "a place `[x, y]`")),
            };
            s.as_list(key, node)?.iter().map(pair).collect()
        })
    }

    /// A table inside this one; finish it on its own.
    pub fn section(&mut self, key: &str) -> Result<Section<'a>, MachineError> {
        self.required(key, Form::Table, |s, node| s.as_section(key, key, node))
    }

    /// A table inside this one, `None` where it is absent.
    pub fn optional_section(&mut self, key: &str) -> Result<Option<Section<'a>>, MachineError> {
        self.optional(key, Form::Table, |s, node| s.as_section(key, key, node))
    }

    /// The tables of `[[key]]`, in the order of the file; none where it is absent.
    pub fn sections(&mut self, key: &str) -> Result<Vec<Section<'a>>, MachineError> {
        let list = self.optional(key, Form::Tables, |s, node| s.as_list(key, node))?;
        (list.unwrap_or_default().iter().enumerate())
            .map(|(i, item)| self.as_section(key, &format!("{key}[{i}]"), item))
            .collect()
    }

    /// The keys of this table in the order of the file, for tables whose keys are names.
    pub fn names(&mut self) -> Vec<&'a str> {
        self.keys_are_names();
        self.table.keys().collect()
    }

    /// The keys of this table are names, which a schema does not list.
    pub fn keys_are_names(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.named = true;
        }
    }

    /// The entries of this table in the order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Node)> {
        self.table.entries.iter().map(|(k, n)| (k.as_str(), n))
    }

    /// The table is of this kind, which decides about its other keys; `kind` counts as read.
    pub(crate) fn variant(&mut self, kind: &str) {
        self.asked.insert("kind".to_string());
        if let Some(reading) = &mut self.reading {
            reading.variant(kind);
        }
    }

    /// What a key means, for a schema; the other keys are those of tables that docs/formats.md describes.
    pub(crate) fn meaning(&mut self, key: &str, meaning: &'static str) {
        if let Some(reading) = &mut self.reading {
            reading.meanings.insert(key.to_string(), meaning);
        }
    }

    /// The table itself.
    pub(crate) fn table(&self) -> &'a Table {
        self.table
    }

    /// Count the key as read.
    fn note(&mut self, key: &str, form: Form<'_>, required: bool) {
        self.asked.insert(key.to_string());
        if let Some(reading) = &mut self.reading {
            reading.note(key, form, required);
        }
    }

    /// Whether the key is there; does not count as reading it. A key that is read only if this says so is unknown
    /// to a schema made of files without it; ask for it as optional instead.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The place of a key of this table, for errors of its reader.
    pub fn at(&self, key: &str) -> At {
        let line = self.table.get(key).map_or(self.table.line, |n| n.line);
        self.spot(key, line)
    }

    /// An error at a key of this table: two statements that exclude each other.
    pub fn inconsistent(&self, key: &str, problem: impl Into<String>) -> MachineError {
        MachineError::Inconsistent {
            at: self.at(key),
            problem: problem.into(),
        }
    }

    /// The error for a missing key; an unread key with a similar name may be what was meant.
    pub fn missing(&self, key: &str) -> MachineError {
        self.missing_with(key, "add it".to_string())
    }

    fn missing_with(&self, key: &str, cure: String) -> MachineError {
        let unread = self.table.keys().filter(|k| !self.asked.contains(*k));
        MachineError::MissingKey {
            at: self.at(""),
            key: key.to_string(),
            cure: match closest(key, unread) {
                Some(other) => format!("did you mean it by `{other}`?"),
                None => cure,
            },
        }
    }

    /// End of reading: any key not asked for is an error.
    pub fn finish(self) -> Result<(), MachineError> {
        let unknown = |(key, _): &&(String, Node)| !self.asked.contains(key);
        if let Some((key, node)) = self.table.entries.iter().find(unknown) {
            return Err(self.unknown_key(key, node));
        }
        if let (Some(recorder), Some(reading)) = (&self.context.recorder, self.reading) {
            recorder.add(*reading);
        }
        Ok(())
    }

    fn unknown_key(&self, key: &str, node: &Node) -> MachineError {
        let asked = self.asked.iter().map(String::as_str);
        // A key that is present cannot be what was meant, unless nothing else is close.
        let absent = asked.clone().filter(|k| !self.has(k));
        let cure = match closest(key, absent) {
            Some(best) => format!("did you mean `{best}`?"),
            None => suggest(key, asked),
        };
        MachineError::UnknownKey {
            at: self.spot("", node.line),
            key: key.to_string(),
            cure,
        }
    }

    fn spot(&self, key: &str, line: usize) -> At {
        At {
            file: self.context.file.clone(),
            line,
            key: if key.is_empty() {
                self.path.clone()
            } else {
                join(&self.path, key)
            },
        }
    }

    fn optional<T>(
        &mut self,
        key: &str,
        form: Form<'_>,
        read: impl FnOnce(&Self, &'a Node) -> Result<T, MachineError>,
    ) -> Result<Option<T>, MachineError> {
        self.note(key, form, false);
        self.find(key, read)
    }

    fn required<T>(
        &mut self,
        key: &str,
        form: Form<'_>,
        read: impl FnOnce(&Self, &'a Node) -> Result<T, MachineError>,
    ) -> Result<T, MachineError> {
        self.note(key, form, true);
        self.find(key, read)?.ok_or_else(|| self.missing(key))
    }

    fn find<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Self, &'a Node) -> Result<T, MachineError>,
    ) -> Result<Option<T>, MachineError> {
        (self.table.get(key)).map(|n| read(self, n)).transpose()
    }

    fn wrong_type(&self, key: &str, node: &Node, needed: &str) -> MachineError {
        MachineError::WrongType {
            at: self.spot(key, node.line),
            found: node.value.found(),
            needed: needed.to_string(),
        }
    }

    fn as_text(&self, key: &str, node: &Node) -> Result<String, MachineError> {
        match &node.value {
            Value::Text(_) if node.basis.is_some() => {
                Err(self.wrong_type(key, node, "a text without a status"))
            }
            Value::Text(text) if !text.trim().is_empty() => Ok(text.clone()),
            _ => Err(self.wrong_type(key, node, "a text that is not empty")),
        }
    }

    fn as_texts(&self, key: &str, node: &Node) -> Result<Vec<String>, MachineError> {
        let items = self.as_list(key, node)?.iter();
        items.map(|item| self.as_text(key, item)).collect()
    }

    fn as_choice(&self, key: &str, node: &Node, words: &[&str]) -> Result<usize, MachineError> {
        let Value::Text(value) = &node.value else {
            return Err(self.wrong_type(
                key,
                node,
                &format!("one of the texts {}", words.join(", ")),
            ));
        };
        (words.iter().position(|w| *w == value)).ok_or_else(|| MachineError::UnknownChoice {
            at: self.spot(key, node.line),
            cure: suggest(value, words.iter().copied()),
            value: value.clone(),
        })
    }

    fn as_flag(&self, key: &str, node: &Node) -> Result<bool, MachineError> {
        match node.value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(self.wrong_type(key, node, "`true` or `false`")),
        }
    }

    fn as_integer(&self, key: &str, node: &Node) -> Result<u64, MachineError> {
        match node.value {
            Value::Integer(n) => Ok(n),
            _ => Err(self.wrong_type(key, node, "a bare integer")),
        }
    }

    fn as_list(&self, key: &str, node: &'a Node) -> Result<&'a [Node], MachineError> {
        match &node.value {
            Value::List(items) => Ok(items),
            _ => Err(self.wrong_type(key, node, "a list")),
        }
    }

    /// The table at `place`, such as `level[0]`, of the key `level`.
    fn as_section(
        &self,
        key: &str,
        place: &str,
        node: &'a Node,
    ) -> Result<Section<'a>, MachineError> {
        match &node.value {
            Value::Table(table) => Ok(Section {
                context: self.context,
                table,
                path: join(&self.path, place),
                asked: BTreeSet::new(),
                reading: self.reading.as_ref().map(|r| Box::new(r.inside(key))),
            }),
            _ => Err(self.wrong_type(place, node, "a table")),
        }
    }

    fn one<T>(
        &self,
        key: &str,
        node: &Node,
        convert: impl Fn(&Scalar<'_>) -> Result<T, MachineError>,
    ) -> Result<T, MachineError> {
        let mut all = self.many(key, node, convert)?;
        if let (Value::Number(Number { list: false, .. }), Some(one)) = (&node.value, all.pop()) {
            return Ok(one);
        }
        Err(MachineError::WrongType {
            at: self.spot(key, node.line),
            found: "a list of values".to_string(),
            needed: "a single value".to_string(),
        })
    }

    fn many<T>(
        &self,
        key: &str,
        node: &Node,
        convert: impl Fn(&Scalar<'_>) -> Result<T, MachineError>,
    ) -> Result<Vec<T>, MachineError> {
        let Value::Number(number) = &node.value else {
            return Err(self.wrong_type(key, node, NUMBER_FORM));
        };
        (0..number.values.len())
            .map(|index| {
                convert(&Scalar {
                    at: self.spot(key, node.line),
                    number,
                    index,
                    clock: self.context.clock,
                })
            })
            .collect()
    }
}
