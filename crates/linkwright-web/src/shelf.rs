//! The files that machine files name: the page brings them along.

use std::cell::RefCell;
use std::rc::Rc;

use linkwright_core::error::{MachineError, UnknownName, VariantError};
use linkwright_core::machine::{File, Files};
use serde_json::Value;

use crate::question::texts;

/// `parts` and `networks`, texts by name, and `nodes`, the names of machines that can be nodes.
#[derive(Clone, Default)]
pub struct Shelf(Rc<Value>);

thread_local! {
    static SHELF: RefCell<Shelf> = RefCell::default();
}

impl Shelf {
    /// Take over the files of a request for all that follow.
    pub fn keep(request: &Value) {
        SHELF.set(Shelf(Rc::new(request.clone())));
    }

    /// What was kept.
    pub fn kept() -> Self {
        SHELF.with_borrow(Clone::clone)
    }

    fn file(&self, folder: &str, what: &str, name: &str) -> Result<File, MachineError> {
        let texts = &self.0[folder];
        if let Some(text) = texts[name].as_str() {
            return Ok(File {
                name: format!("{name}.toml"),
                text: text.to_string(),
            });
        }
        let known = texts.as_object().into_iter().flatten();
        let unknown = UnknownName {
            at: "this page".into(),
            what: what.into(),
            name: name.into(),
            known: known.map(|(name, _)| name.clone()).collect(),
            otherwise: None,
        };
        Err(MachineError::Variant(VariantError::from(unknown)))
    }
}

impl Files for Shelf {
    fn part(&self, name: &str) -> Result<File, MachineError> {
        self.file("parts", "part", name)
    }

    fn network(&self, name: &str) -> Result<File, MachineError> {
        self.file("networks", "network", name)
    }

    fn nodes(&self) -> Vec<String> {
        texts(&self.0, "nodes")
    }
}
