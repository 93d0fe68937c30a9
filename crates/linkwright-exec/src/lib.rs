//! Execution of schedules on real hardware, and the timing of it.
//!
//! [`mod@reference`] moves data only, [`threads`] gives every rank a core of this machine, [`mpi`] a process
//! on any host. They share the clock ([`timer`]), the rules of measurement as small objects
//! ([`sampling`], [`guard`], with their constants in [`measurement`]), data whose results are exactly
//! predictable ([`dtype`], [`fill`], [`buffers`]) and the processors ([`topology`]).

mod aligned;
pub mod buffers;
pub mod compute;
mod crew;
pub mod dtype;
pub mod error;
pub mod executor;
pub mod fill;
pub mod guard;
pub mod lowered;
mod mapping;
pub mod measurement;
pub mod mpi;
pub mod probes;
#[cfg(not(loom))] // built on `threads::stream`
pub mod program;
pub mod reference;
pub mod round_trip;
mod rounds;
pub mod sampling;
pub mod threads;
pub mod timer;
pub mod topology;
mod traffic;

pub use error::{ExecError, Result};
