//! Synthesis of schedules for a machine at hand.

pub mod compose;
