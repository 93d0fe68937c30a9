//! Schedules: what is to be moved, in which order, and how to prove it right.
//!
//! ```text
//!   algorithm (collectives/) --builder--> order --> Schedule --> verify --> executors
//!   text, importers --------------------> order -->    |
//!                                                  transforms, limits
//! ```
//!
//! An algorithm knows ranks, chunks and at most a grid; it never knows a machine.

mod accesses;
pub mod aggregations;
pub mod barriers;
pub mod builder;
mod chunks;
pub mod classes;
pub mod collectives;
pub mod concatenate;
pub mod error;
pub mod exchange;
mod hoist;
pub mod ir;
mod marks;
pub mod order;
pub mod own_scratch;
pub mod patience;
pub mod patterns;
pub mod pull;
pub mod reorder;
pub mod reverse;
mod side_by_side;
pub mod spec;
pub mod sums_aside;
pub mod symmetric;
pub mod text;
pub mod transforms;
pub mod verify;
pub mod windows;

pub use accesses::Accesses;
pub use builder::{Builder, Shape};
pub use error::ScheduleError;
pub use ir::{Buffer, Schedule};
pub use side_by_side::side_by_side;
pub use spec::{Collective, Expected, Spec};
pub use verify::{verify, Verified, VerifyError};
