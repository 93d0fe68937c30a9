//! What an algorithm says of itself.

use crate::builder::Shape;
use crate::error::{Result, ScheduleError};
use crate::ir::Schedule;
use crate::spec::Collective;
use crate::symmetric::Program;

/// One algorithm; describes itself.
pub struct Algorithm {
    /// What it achieves.
    pub collective: Collective,
    /// Name within the collective, in snake case.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it does and when it is good, in a few sentences.
    pub description: &'static str,
    /// Rounds and bytes per rank, as a formula in p and S.
    pub cost: &'static str,
    /// What it demands of a shape, in words; empty when nothing.
    pub needs: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What every rank does, where all do the same: the schedule can then be folded. Waived, too, where
    /// the shape tells ranks apart.
    pub program: Option<fn(&Shape) -> Result<Program>>,
    /// Make the schedule; [`ScheduleError::Waived`] where the shape does not suit.
    pub build: fn(&Shape) -> Result<Schedule>,
}

impl Algorithm {
    /// `collective/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.collective.name(), self.name)
    }

    /// The error of an algorithm that cannot serve a shape.
    pub fn waive(&self, reason: impl Into<String>) -> ScheduleError {
        ScheduleError::Waived {
            algorithm: self.key(),
            reason: reason.into(),
        }
    }
}
