//! One value for each axis of a probe, checked against its description.

use super::description::{Axis, AxisKind, Description, ProbeError};
use crate::error::suggest;

/// A value of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    Word(&'static str),
}

/// What a probe is asked: every axis has a value, the default where none was given.
#[derive(Clone, Debug)]
pub struct Assignment {
    probe: &'static Description,
    values: Vec<Value>,
}

impl Assignment {
    /// Reads `given` as (axis, value) pairs, such as (`working_set`, `64K`).
    pub fn parse(
        probe: &'static Description,
        given: &[(&str, &str)],
    ) -> Result<Assignment, ProbeError> {
        for &(key, _) in given {
            probe.axis(key)?;
        }
        let values = (probe.axes.iter())
            .map(|axis| {
                let text = given.iter().rev().find(|(key, _)| *key == axis.key);
                read(probe, axis, text.map_or(axis.default, |&(_, text)| text))
            })
            .collect::<Result<_, _>>()?;
        Ok(Assignment { probe, values })
    }

    /// The probe.
    pub fn probe(&self) -> &'static Description {
        self.probe
    }

    /// The number of bytes or of things on this axis, which the description must have.
    pub fn number(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Number(number) => number,
            Value::Word(word) => panic!("axis `{key}` holds the word `{word}`"),
        }
    }

    /// The word on this axis, which the description must have.
    pub fn word(&self, key: &str) -> &'static str {
        match self.value(key) {
            Value::Word(word) => word,
            Value::Number(number) => panic!("axis `{key}` holds the number {number}"),
        }
    }

    fn value(&self, key: &str) -> Value {
        let place = self.probe.axes.iter().position(|axis| axis.key == key);
        self.values[place.unwrap_or_else(|| panic!("{} has no axis `{key}`", self.probe.key))]
    }
}

fn read(probe: &'static Description, axis: &'static Axis, text: &str) -> Result<Value, ProbeError> {
    let (value, needed) = match axis.kind {
        AxisKind::Bytes => (
            size(text).map(Value::Number),
            "a number of bytes; write a whole number, with K, M or G for powers of 1024"
                .to_string(),
        ),
        AxisKind::Count => (
            text.parse().ok().map(Value::Number),
            "a whole number".to_string(),
        ),
        AxisKind::Word(words) => {
            let found = words.iter().find(|word| **word == text);
            let cure = suggest(text, words.iter().copied());
            (
                found.map(|word| Value::Word(word)),
                format!("a known value; {cure}"),
            )
        }
    };
    value.ok_or_else(|| ProbeError::BadValue {
        probe: probe.key,
        axis: axis.key,
        value: text.to_string(),
        needed,
    })
}

/// `4096`, `4K`, `2M`, `1G`.
fn size(text: &str) -> Option<u64> {
    let factors = [("K", 1u64 << 10), ("M", 1 << 20), ("G", 1 << 30)];
    let scaled = factors
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    let (digits, factor) = scaled.unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::super::MEMORY_LATENCY;
    use super::*;

    #[test]
    fn values_are_typed_and_defaults_fill_the_rest() {
        let asked = Assignment::parse(&MEMORY_LATENCY, &[("working_set", "64K")]).unwrap();
        assert_eq!(asked.number("working_set"), 65_536);
        assert_eq!(asked.number("neighbours"), 0);
        assert_eq!(asked.word("order"), "random");
    }

    #[test]
    fn mistakes_name_the_cure() {
        let error = |key, value| {
            let parsed = Assignment::parse(&MEMORY_LATENCY, &[(key, value)]);
            parsed.unwrap_err().to_string()
        };
        assert_eq!(
            error("working_sets", "4K"),
            "unknown axis `working_sets`; did you mean `working_set`?"
        );
        assert_eq!(
            error("order", "randm"),
            "probe memory_latency: axis order: `randm` is not a known value; did you mean `random`?"
        );
        assert!(error("working_set", "4 kilo").contains("is not a number of bytes"));
        assert!(error("neighbours", "-1").contains("is not a whole number"));
    }
}
