//! Attributes as text and as numbers within bounds.

use crate::error::{PlanError, Result};
use quick_xml::events::BytesStart;
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The attributes of an element that are used, as they stand in the file.
pub(super) struct Attributes<'a, const N: usize> {
    keys: &'static [&'static str; N],
    /// By the places of their keys.
    pub values: [Option<&'a str>; N],
}

impl<'a, const N: usize> Attributes<'a, N> {
    /// Attributes not in `keys` are for the runtime to choose a plan and say nothing of it.
    pub fn of(element: &'a BytesStart, keys: &'static [&'static str; N]) -> Result<Self> {
        let mut values = [None; N];
        for attribute in element.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| PlanError::whole(error.to_string()))?;
            let name = attribute.key.as_ref();
            let Some(k) = keys.iter().position(|key| key.as_bytes() == name) else {
                continue;
            };
            let Cow::Borrowed(bytes) = attribute.value else {
                continue;
            };
            if values[k].is_some() {
                let problem = format!("{} stands there twice; keep one", keys[k]);
                return Err(PlanError::whole(problem));
            }
            values[k] = Some(std::str::from_utf8(bytes).unwrap_or_default());
        }
        Ok(Attributes { keys, values })
    }

    /// The text of attribute `k`, which must be there.
    pub fn text(&self, k: usize) -> Result<&'a str> {
        let missing = || PlanError::whole(format!("{} is missing; add it", self.keys[k]));
        self.values[k].ok_or_else(missing)
    }

    /// A number of `range`.
    pub fn signed(&self, k: usize, range: RangeInclusive<i64>) -> Result<i64> {
        let text = self.text(k)?;
        match text.trim().parse::<i64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ if range.is_empty() => self.refuse(k, text, "nothing fits there"),
            _ => {
                let cure = format!("it must be {} to {}", range.start(), range.end());
                self.refuse(k, text, &cure)
            }
        }
    }

    /// A number of `range`, which has no negative part.
    pub fn number<T: TryFrom<i64>>(&self, k: usize, range: RangeInclusive<i64>) -> Result<T> {
        let number = self.signed(k, range)?;
        T::try_from(number).or_else(|_| self.refuse(k, &number.to_string(), "it is too large"))
    }

    /// An error about attribute `k`.
    pub fn refuse<T>(&self, k: usize, value: &str, cure: &str) -> Result<T> {
        let value: String = value.escape_debug().take(40).collect();
        let key = self.keys[k];
        Err(PlanError::whole(format!("{key}=\"{value}\": {cure}")))
    }
}
