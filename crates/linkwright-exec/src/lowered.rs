//! A schedule without what an executor lacks; verified again where something was replaced.

use crate::error::{ExecError, Result};
use linkwright_schedule::aggregations::gather_and_put;
use linkwright_schedule::error::ScheduleError;
use linkwright_schedule::ir::{OpKind, Schedule};
use linkwright_schedule::{barriers, verify};
use std::borrow::Cow;

/// The schedule with gets and puts in place of aggregations, for memories that ranks share.
pub fn without_aggregations<'a>(
    schedule: &'a Schedule,
    executor: &'static str,
) -> Result<Cow<'a, Schedule>> {
    match schedule.has(OpKind::Aggregate) {
        true => replaced(gather_and_put(schedule), executor),
        false => Ok(Cow::Borrowed(schedule)),
    }
}

/// The schedule with messages between two ranks in place of aggregations and barriers.
pub(crate) fn in_messages<'a>(
    schedule: &'a Schedule,
    executor: &'static str,
) -> Result<Cow<'a, Schedule>> {
    let schedule = without_aggregations(schedule, executor)?;
    match schedule.has(OpKind::Barrier) {
        true => replaced(barriers::disseminate(&schedule), executor),
        false => Ok(schedule),
    }
}

fn replaced(
    made: std::result::Result<Schedule, ScheduleError>,
    executor: &'static str,
) -> Result<Cow<'static, Schedule>> {
    let waived = |reason: String| ExecError::Waived { executor, reason };
    let made = made.map_err(|error| waived(error.to_string()))?;
    verify(&made).map_err(|error| waived(error.to_string()))?;
    Ok(Cow::Owned(made))
}
