//! Exact non-negative fractions, so that a decimal in a machine file stays what it says.
//!
//! `1.6 GHz` is 1,600,000,000 Hz, and one cycle of it 5/8 ns: neither is a binary floating point
//! number. A machine file is therefore read into fractions, a duration is computed from them in
//! one go and rounded down once, to a whole picosecond. Arithmetic that does not fit 128 bits
//! returns `None`; nothing wraps.

use std::cmp::Ordering;

/// A non-negative fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    num: u128,
    den: u128,
}

impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio { num: 0, den: 1 };

    /// `num / den` in lowest terms.
    ///
    /// # Panics
    /// When `den` is zero.
    pub fn new(num: u128, den: u128) -> Ratio {
        assert!(den != 0, "a fraction needs a denominator above zero");
        let g = gcd(num, den);
        Ratio {
            num: num / g,
            den: den / g,
        }
    }

    /// A decimal such as `9`, `0.625` or `2.5e-3`, exactly. `None` for anything else, a sign
    /// included, and for what does not fit.
    pub fn from_decimal(text: &str) -> Option<Ratio> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((m, e)) => (m, e.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let digits: u128 = digits.parse().ok()?;
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let power = 10u128.checked_pow(exponent.unsigned_abs())?;
        if exponent >= 0 {
            Some(Ratio::new(digits.checked_mul(power)?, 1))
        } else {
            Some(Ratio::new(digits, power))
        }
    }

    /// Whether this is zero.
    pub fn is_zero(self) -> bool {
        self.num == 0
    }

    /// The product, where it fits.
    pub fn times(self, other: Ratio) -> Option<Ratio> {
        // Cancelling crosswise first keeps the factors as small as the product itself.
        let a = Ratio::new(self.num, other.den);
        let b = Ratio::new(other.num, self.den);
        Some(Ratio {
            num: a.num.checked_mul(b.num)?,
            den: a.den.checked_mul(b.den)?,
        })
    }

    /// The quotient; `None` also for a division by zero.
    pub fn over(self, other: Ratio) -> Option<Ratio> {
        if other.is_zero() {
            return None;
        }
        self.times(Ratio {
            num: other.den,
            den: other.num,
        })
    }

    /// The integer below or equal, where it fits 64 bits.
    pub fn floor(self) -> Option<u64> {
        u64::try_from(self.num / self.den).ok()
    }

    /// The integer this is, if it is one and fits 64 bits.
    pub fn whole(self) -> Option<u64> {
        (self.den == 1).then(|| u64::try_from(self.num).ok())?
    }

    /// The nearest floating point number, for output and for rates.
    pub fn to_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

impl From<u64> for Ratio {
    fn from(n: u64) -> Ratio {
        Ratio {
            num: u128::from(n),
            den: 1,
        }
    }
}

impl PartialOrd for Ratio {
    /// `None` only where the comparison does not fit 128 bits.
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        let left = self.num.checked_mul(other.den)?;
        Some(left.cmp(&other.num.checked_mul(self.den)?))
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(Ratio::from_decimal("9"), Some(Ratio::new(9, 1)));
        assert_eq!(Ratio::from_decimal("0.625"), Some(Ratio::new(5, 8)));
        assert_eq!(Ratio::from_decimal("2.5e-3"), Some(Ratio::new(1, 400)));
        assert_eq!(Ratio::from_decimal("1.6E9"), Some(1_600_000_000.into()));
        for bad in ["", ".", "-1", "nan", "inf", "1e999", "1.2.3", "0x10"] {
            assert_eq!(Ratio::from_decimal(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_does_not_fit_is_none() {
        let big = Ratio::new(u128::MAX, 1);
        assert_eq!(big.times(Ratio::new(2, 1)), None);
        assert_eq!(big.times(Ratio::new(1, u128::MAX)), Some(1.into()));
        assert_eq!(big.floor(), None);
        assert_eq!(Ratio::new(1, 1).over(Ratio::ZERO), None);
        assert_eq!(Ratio::new(1, 2).whole(), None);
    }

    proptest! {
        #[test]
        fn product_and_quotient_undo_each_other(a in 1u64.., b in 1u64.., c in 1u64..) {
            let x = Ratio::new(a.into(), b.into());
            let y = Ratio::from(c);
            prop_assert_eq!(x.times(y).unwrap().over(y), Some(x));
            prop_assert_eq!(x.floor().unwrap(), a / b);
        }
    }
}
