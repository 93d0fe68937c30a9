//! What readers ask of a machine file, noted while it is read: the source of its JSON schema.
//!
//! Only the reader of a table knows its keys, and it asks for each by name and kind through
//! [`Section`](super::Section). A [`Recorder`] that is handed to the parser keeps what was asked, table by
//! table, so that the schema cannot say anything else than the program reads:
//!
//! ```text
//! fabric{loggp}.level[]     latency   required   a number of dimension time
//! ```
//!
//! `{loggp}` is the `kind` that the table has, `[]` one of several tables, `*` any name. A table counts once it
//! was read to its end; a key is required where every such reading required it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::unit::Dimension;

/// What a reader expects behind a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'w> {
    Number(Dimension),
    Numbers(Dimension),
    Text,
    /// A name that the file gives elsewhere.
    Name,
    Texts,
    Words(&'w [&'static str]),
    Flag,
    Integer,
    Integers,
    Places,
    Any,
    Table,
    Tables,
}

/// A form by name, with the words of a choice or the dimension of a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedForm {
    /// `number`, `text`, `table`, ...
    pub name: &'static str,
    /// Words of a choice; the dimension of a number.
    pub words: Vec<&'static str>,
}

impl Form<'_> {
    fn recorded(self) -> RecordedForm {
        let (name, words) = match self {
            Form::Number(dimension) => ("number", vec![dimension.name()]),
            Form::Numbers(dimension) => ("numbers", vec![dimension.name()]),
            Form::Text => ("text", Vec::new()),
            Form::Name => ("name", Vec::new()),
            Form::Texts => ("texts", Vec::new()),
            Form::Words(words) => ("choice", words.to_vec()),
            Form::Flag => ("flag", Vec::new()),
            Form::Integer => ("integer", Vec::new()),
            Form::Integers => ("integers", Vec::new()),
            Form::Places => ("places", Vec::new()),
            Form::Any => ("any", Vec::new()),
            Form::Table => ("table", Vec::new()),
            Form::Tables => ("tables", Vec::new()),
        };
        RecordedForm { name, words }
    }
}

/// One reading of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    table: String,
    /// Whether its keys are names.
    pub named: bool,
    keys: BTreeMap<String, BTreeSet<RecordedForm>>,
    required: BTreeSet<String>,
    /// What keys mean, where the reader says so.
    pub meanings: BTreeMap<String, &'static str>,
}

impl Reading {
    pub fn note(&mut self, key: &str, form: Form<'_>, required: bool) {
        let key = if self.named { "*" } else { key };
        let forms = self.keys.entry(key.to_string()).or_default();
        forms.insert(form.recorded());
        if required {
            self.required.insert(key.to_string());
        }
    }

    pub fn variant(&mut self, kind: &str) {
        self.table += &format!("{{{kind}}}");
    }

    /// The reading of the table or tables `key` in this one.
    pub fn inside(&self, key: &str) -> Reading {
        let key = if self.named { "*" } else { key };
        let form = self.keys.get(key).into_iter().flatten();
        let several = form.clone().any(|f| f.name == "tables");
        let brackets = if several { "[]" } else { "" };
        Reading {
            table: crate::error::join(&self.table, &format!("{key}{brackets}")),
            ..Reading::default()
        }
    }
}

/// A table as all its readings together describe it.
#[derive(Clone, Debug)]
pub struct RecordedTable {
    /// Every key that was asked for, `*` for any name, with the forms that it may have.
    pub keys: BTreeMap<String, BTreeSet<RecordedForm>>,
    /// The keys that every reading required.
    pub required: BTreeSet<String>,
    /// What keys mean, where the reader says so.
    pub meanings: BTreeMap<String, &'static str>,
}

/// Keeps what was asked of the machines that are parsed with it.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    tables: Arc<Mutex<BTreeMap<String, RecordedTable>>>,
}

impl Recorder {
    /// The tables that were read to their end.
    pub fn tables(&self) -> BTreeMap<String, RecordedTable> {
        self.tables.lock().expect("no reader panics").clone()
    }

    pub(crate) fn add(&self, reading: Reading) {
        let mut tables = self.tables.lock().expect("no reader panics");
        let Reading {
            keys,
            required,
            meanings,
            ..
        } = reading;
        match tables.get_mut(&reading.table) {
            None => {
                let table = RecordedTable {
                    keys,
                    required,
                    meanings,
                };
                tables.insert(reading.table, table);
            }
            Some(known) => {
                known.required.retain(|key| required.contains(key));
                known.meanings.extend(meanings);
                for (key, forms) in keys {
                    known.keys.entry(key).or_default().extend(forms);
                }
            }
        }
    }
}
