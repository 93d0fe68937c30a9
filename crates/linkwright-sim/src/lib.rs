//! Discrete-event simulation of schedules on modelled machines.
//!
//! ```text
//!   Schedule + Setup (placement, path, issue policy, arrivals)
//!        |
//!      engine  --messages-->  fabric (loggp, crossbar, ...)
//!        |     <--completions--
//!   Simulation (times per rank, links, critical path)  --> limits, trace
//! ```
//!
//! Time is integer picoseconds; ties break by (time, sequence); the same input gives the same
//! result on any number of threads.

pub mod bins;
mod costs;
pub mod critical;
mod engine;
pub mod error;
pub mod fabric;
pub mod fabrics;
mod graph;
mod latency;
pub mod limits;
mod memory;
mod messages;
mod msg;
pub mod network;
mod noise;
pub mod outcome;
mod pass;
pub mod placement;
mod prepared;
mod price;
pub mod probes;
pub mod protocol;
pub mod queue;
mod rank;
mod residence;
pub mod run;
pub mod setup;
mod simulated;
mod slack;
pub mod states;
pub mod sweep;
pub mod symmetric;
pub mod trace;

pub use critical::{CriticalPath, Segment, Spent};
pub use engine::simulate;
pub use error::SimError;
pub use limits::{Limit, Limits};
pub use messages::Networks;
pub use outcome::{OperationTimes, Simulation, Spread, Totals};
pub use placement::Placement;
pub use price::Pricer;
pub use run::{ask, lowered, Answer, How};
pub use setup::{Issue, Setup};
pub use simulated::SimulatedFabric;
pub use slack::slack;
