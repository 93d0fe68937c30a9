//! Execution of schedules on real hardware, and the timing of it.
//!
//! [`timer`] is the clock, [`sampling`] and [`guard`] the rules of measurement as small objects,
//! [`dtype`] and [`fill`] the data whose results are exactly predictable, [`topology`] the
//! processors, and [`threads`] the executor that gives every rank a core of this machine.

pub mod dtype;
pub mod fill;
pub mod guard;
pub mod sampling;
pub mod threads;
pub mod timer;
pub mod topology;
