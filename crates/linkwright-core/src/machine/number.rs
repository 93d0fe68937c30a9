//! A number of a machine file: a table `{ value, unit, status, source }`.
//!
//! Everything that does not depend on its reader is checked here, once: the unit is in the closed
//! list, the status is one of six, a source is given, the value is finite and not negative, a rate is
//! not zero. Decimals are kept as exact fractions.
//!
//! A word or a flag may be written the same way, without a unit: then it has a status and a source.
//!
//! The status shows how much of a model rests on evidence: `documented` and `measured` come from
//! outside, `derived` is arithmetic on these, `fitted` was set to meet measurements, `post_hoc` was
//! chosen among alternatives after they were seen, and `assumed` was chosen to have something.

use std::fmt;

use toml::de::{DeTable, DeValue};

use super::unit::{Clocked, Unit, UNITS};
use crate::error::{closest, suggest, At, MachineError};
use crate::ratio::Ratio;

crate::words! {
    /// How a number came to be known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Status {
        /// The vendor or a paper states it.
        Documented = "documented",
        /// A measurement yielded it.
        Measured = "measured",
        /// Arithmetic on documented or measured numbers.
        Derived = "derived",
        /// Set so that the model meets measurements.
        Fitted = "fitted",
        /// Chosen among alternatives after the measurements were seen.
        PostHoc = "post_hoc",
        /// Chosen without evidence, to have something.
        Assumed = "assumed",
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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

/// How a number is written, for error messages.
pub(crate) const NUMBER_FORM: &str = "{ value = ..., unit = \"...\", \
     status = \"documented|measured|derived|fitted|post_hoc|assumed\", source = \"...\" }";

/// How a word or a flag with a status is written, for error messages.
const WORD_FORM: &str = "{ value = \"...\", \
     status = \"documented|measured|derived|fitted|post_hoc|assumed\", source = \"...\" }";

/// A table is a number as soon as one key says so; then the others must be there too.
pub(super) fn is_number(table: &DeTable<'_>) -> bool {
    (table.keys()).any(|k| matches!(k.get_ref().as_ref(), "value" | "unit" | "status"))
}

/// A table without a unit whose value is a text or a flag is a word.
pub(super) fn is_word(table: &DeTable<'_>) -> bool {
    let is_text = |value: &DeValue<'_>| value.is_str() || value.is_bool();
    !table.contains_key("unit") && table.get("value").is_some_and(|v| is_text(v.get_ref()))
}

/// Why a word or a flag has its value.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    pub status: Status,
    pub source: String,
}

impl Number {
    /// Take the value, a scalar or a list of scalars.
    pub fn set(&mut self, value: &DeValue<'_>, at: At) -> Result<(), MachineError> {
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

/// A number's table while it is read.
pub(super) struct NumberTable<'a> {
    pub table: &'a DeTable<'a>,
    /// Where the number begins.
    pub offset: usize,
    /// The spot of an offset in the file; of the number itself, or of one of its keys.
    pub at: &'a dyn Fn(usize, Option<&str>) -> At,
}

impl NumberTable<'_> {
    /// The value of a word or a flag, and why it has it.
    pub fn read_word(&self) -> Result<(&DeValue<'_>, Basis), MachineError> {
        self.check_keys(&["value", "status", "source"])?;
        let (_, value) = self.part("value")?;
        let (status, source) = (self.status()?, self.text("source")?.1);
        Ok((value, Basis { status, source }))
    }

    pub fn read(&self) -> Result<Number, MachineError> {
        self.check_keys(&["value", "unit", "status", "source"])?;
        let (value_at, value) = self.part("value")?;
        let (unit_at, unit) = self.text("unit")?;
        let unit = Unit::find(&unit).ok_or_else(|| MachineError::UnknownUnit {
            at: (self.at)(unit_at, None),
            cure: suggest(&unit, UNITS.iter().map(|u| u.name)),
            unit,
        })?;
        let status = self.status()?;
        let (_, source) = self.text("source")?;
        let mut number = Number {
            texts: Vec::new(),
            values: Vec::new(),
            list: false,
            unit,
            status,
            source,
        };
        number.set(value, (self.at)(value_at, None))?;
        Ok(number)
    }

    fn status(&self) -> Result<Status, MachineError> {
        let (status_at, status) = self.text("status")?;
        Status::from_name(&status).ok_or_else(|| MachineError::UnknownChoice {
            at: (self.at)(status_at, Some("status")),
            cure: suggest(&status, Status::ALL.iter().map(|s| s.name())),
            value: status,
        })
    }

    /// There are these keys and no other.
    fn check_keys(&self, known: &[&str]) -> Result<(), MachineError> {
        let is_known = |key: &str| known.contains(&key);
        let Some(other) = self.table.keys().find(|k| !is_known(k.get_ref())) else {
            return Ok(());
        };
        let free = (known.iter().copied()).filter(|key| self.find(key).is_none());
        Err(MachineError::UnknownKey {
            at: (self.at)(other.span().start, None),
            key: other.get_ref().to_string(),
            cure: match closest(other.get_ref(), free) {
                Some(best) => format!("did you mean `{best}`?"),
                None => self.form(),
            },
        })
    }

    /// The offset of a key and what stands behind it.
    fn find(&self, key: &str) -> Option<(usize, &DeValue<'_>)> {
        let (found, value) = self.table.iter().find(|(k, _)| **k.get_ref() == *key)?;
        Some((found.span().start, value.get_ref()))
    }

    fn part(&self, key: &str) -> Result<(usize, &DeValue<'_>), MachineError> {
        self.find(key).ok_or_else(|| MachineError::MissingKey {
            at: (self.at)(self.offset, None),
            key: key.to_string(),
            cure: self.form(),
        })
    }

    /// How it is written, for error messages.
    fn form(&self) -> String {
        match is_word(self.table) {
            true => format!("a word with a status is {WORD_FORM}"),
            false => format!("a number is {NUMBER_FORM}"),
        }
    }

    fn text(&self, key: &str) -> Result<(usize, String), MachineError> {
        let (start, value) = self.part(key)?;
        let found = match value {
            DeValue::String(text) if !text.trim().is_empty() => {
                return Ok((start, text.to_string()))
            }
            DeValue::String(_) => "an empty text".to_string(),
            other => format!("a value of TOML type {}", other.type_str()),
        };
        Err(MachineError::WrongType {
            at: (self.at)(start, Some(key)),
            found,
            needed: "a text that is not empty".to_string(),
        })
    }
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
