//! Schedules that are found for the machine at hand.
//!
//! ```text
//!   Problem (machine, collective, shape) -> methods -- candidates --> Judge -- simulates --> the best so far
//! ```
//!
//! A [`Method`] proposes candidates; the [`Judge`] prices them on all cores and keeps the fastest, which it proves.

pub mod candidate;
pub mod error;
pub mod judge;
pub mod method;
pub mod portfolio;
pub mod problem;
pub mod search;

pub use candidate::{Candidate, Recipe};
pub use error::{Result, SynthesisError};
pub use judge::{Judge, Limits, Verdict, Winner};
pub use method::{find, Method, METHODS};
pub use problem::Problem;
pub use search::{search, Found};
