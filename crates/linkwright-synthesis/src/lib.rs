//! Schedules that are found for the machine at hand.

pub mod error;
pub mod links;
