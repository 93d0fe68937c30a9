//! Format computed numbers as text for a machine file.

use crate::error::{MachineError, VariantError};
use crate::machine::number::{Number, Status};
use crate::machine::unit::Unit;
use crate::ratio::Ratio;

impl Number {
    /// Make a number from one computed value.
    pub(super) fn computed(
        text: String,
        unit: &'static Unit,
        status: Status,
        source: String,
    ) -> Result<Number, MachineError> {
        let value = Ratio::from_decimal(&text).ok_or_else(|| {
            VariantError::refused(format!(
                "{source}: {text} {} has too many digits",
                unit.name
            ))
        })?;
        Ok(Number {
            texts: vec![text],
            values: vec![value],
            list: false,
            unit,
            status,
            source,
        })
    }

    /// The value as written; `None` for a list.
    pub(super) fn single(&self) -> Option<f64> {
        let text = self.texts.first().filter(|_| !self.list)?;
        text.replace('_', "").parse().ok()
    }

    /// This number with its `value` multiplied by `factor` and rounded to ten digits.
    pub(super) fn scaled(
        &self,
        value: f64,
        factor: f64,
        status: Status,
        source: String,
    ) -> Result<Number, MachineError> {
        let product: f64 = format!("{:.9e}", value * factor)
            .parse()
            .expect("a number was written");
        Number::computed(shortest(product), self.unit, status, source)
    }
}

/// A value in the fewest digits that read back to it, `800.0` or `1e-07`; always with a point or an exponent.
pub(super) fn shortest(value: f64) -> String {
    let (mantissa, exponent) = scientific(format!("{value:e}"));
    if !(-4..16).contains(&exponent) {
        return with_exponent(&mantissa, exponent);
    }
    let text = value.to_string();
    match text.contains('.') {
        true => text,
        false => text + ".0",
    }
}

/// A value in at most six digits, `2`, `0.25`, `1e+06`.
pub(super) fn short(value: f64) -> String {
    const DIGITS: i32 = 6;
    let (mantissa, exponent) = scientific(format!("{value:.5e}"));
    if !(-4..DIGITS).contains(&exponent) {
        return with_exponent(without_zeros(&mantissa), exponent);
    }
    let places = usize::try_from(DIGITS - 1 - exponent).expect("an exponent below the digits");
    without_zeros(&format!("{value:.places$}")).to_string()
}

/// A count with a comma between thousands.
pub(super) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut found = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            found.push(',');
        }
        found.push(digit);
    }
    found
}

fn scientific(text: String) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').expect("written with an exponent");
    (
        mantissa.to_string(),
        exponent.parse().expect("an exponent is an integer"),
    )
}

fn with_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn without_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_few_digits() {
        let values = [800.0, 0.25, 1e16, 1e-7, 12345678.5, 0.0001, 1.0 / 3.0];
        let texts = [
            "800.0",
            "0.25",
            "1e+16",
            "1e-07",
            "12345678.5",
            "0.0001",
            "0.3333333333333333",
        ];
        assert_eq!(values.map(shortest), texts);
        let texts = [
            "800",
            "0.25",
            "1e+16",
            "1e-07",
            "1.23457e+07",
            "0.0001",
            "0.333333",
        ];
        assert_eq!(values.map(short), texts);
        assert_eq!(
            [7, 1_440_000, 999, 1000].map(grouped),
            ["7", "1,440,000", "999", "1,000"]
        );
    }
}
