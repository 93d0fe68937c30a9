//! What the file of an algorithm needs.

pub(super) use super::algorithm::{algorithm, Algorithm};
pub(super) use crate::builder::{Builder, Shape, Slot};
pub(super) use crate::error::{Result, ScheduleError};
pub(super) use crate::ir::{Buffer, Hint, Schedule};
pub(super) use crate::spec::Collective;
pub(super) use crate::symmetric::{Group, Program};
