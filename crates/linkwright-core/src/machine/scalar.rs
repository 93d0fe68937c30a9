//! One value of a number, converted to what its reader needs.
//!
//! This file checks the dimension of the unit, applies the clock and rounds a duration, once and down.
//! A value that must be whole and is not is an error; it is never rounded.

use super::number::Number;
use super::unit::{Clocked, Dimension};
use crate::error::{At, MachineError};
use crate::ratio::Ratio;
use crate::units::{Clock, TimePs};

/// One scalar of a number, ready for conversion.
pub(super) struct Scalar<'n> {
    pub at: At,
    pub number: &'n Number,
    pub index: usize,
    pub clock: Option<Clock>,
}

impl Scalar<'_> {
    /// The value in base units of `dimension`.
    pub fn base(&self, dimension: Dimension) -> Result<Ratio, MachineError> {
        let unit = self.number.unit;
        if unit.dimension != dimension {
            return Err(MachineError::WrongDimension {
                at: self.at.clone(),
                unit: unit.name.to_string(),
                is: unit.dimension,
                needed: dimension,
            });
        }
        let clock = self.clock.map(Clock::hertz);
        if clock.is_none() && unit.clocked != Clocked::No {
            return Err(self.no_clock());
        }
        let base = (unit.worth(clock).and_then(|w| w.times(self.value())))
            .ok_or_else(|| self.too_large())?;
        let (least, largest, range) = dimension.range();
        match base.is_zero() || (least..=largest).contains(&base.to_f64()) {
            true => Ok(base),
            false => Err(self.bad(&format!(
                "is beyond what machines have; choose {} of {range}",
                dimension.phrase()
            ))),
        }
    }

    /// Picoseconds, rounded down.
    pub fn time(&self) -> Result<TimePs, MachineError> {
        let ps = self.base(Dimension::Time)?;
        ps.floor().map(TimePs).ok_or_else(|| self.too_large())
    }

    /// Cycles of the machine's clock, exactly.
    pub fn fractional_cycles(&self) -> Result<Ratio, MachineError> {
        let ps = self.base(Dimension::Time)?;
        let clock = self.clock.ok_or_else(|| self.no_clock())?;
        let period = Ratio::from(1_000_000_000_000).over(clock.hertz());
        (period.and_then(|p| ps.over(p))).ok_or_else(|| self.too_large())
    }

    /// Cycles of the machine's clock, which must be whole.
    pub fn cycles(&self) -> Result<u64, MachineError> {
        let cycles = self.fractional_cycles()?;
        cycles.whole().ok_or_else(|| {
            self.bad("is not a whole number of clock cycles; choose a value that is")
        })
    }

    /// An integer number of base units.
    pub fn whole(&self, dimension: Dimension) -> Result<u64, MachineError> {
        let base = self.base(dimension)?;
        (base.whole()).ok_or_else(|| self.bad("is not a whole number; choose a value that is"))
    }

    /// Base units as the nearest floating point number.
    pub fn float(&self, dimension: Dimension) -> Result<f64, MachineError> {
        self.base(dimension).map(Ratio::to_f64)
    }

    /// A ratio above 0 and at most 1.
    pub fn share(&self) -> Result<f64, MachineError> {
        let share = self.float(Dimension::Ratio)?;
        if !(share > 0.0 && share <= 1.0) {
            return Err(self.bad("is not a share; choose a value above 0 and at most 1"));
        }
        Ok(share)
    }

    fn value(&self) -> Ratio {
        self.number.values[self.index]
    }

    fn bad(&self, problem: &str) -> MachineError {
        MachineError::BadValue {
            at: self.at.clone(),
            value: format!(
                "{} {}",
                self.number.texts[self.index], self.number.unit.name
            ),
            problem: problem.to_string(),
        }
    }

    fn too_large(&self) -> MachineError {
        self.bad("is too large; the model counts in 64 bits")
    }

    fn no_clock(&self) -> MachineError {
        MachineError::NoClock {
            at: self.at.clone(),
            unit: self.number.unit.name.to_string(),
        }
    }
}
