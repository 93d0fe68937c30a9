//! Synthesis: schedules that are found for the machine at hand.
//!
//! ```text
//!   Problem --> methods --drafts--> Judge --prices on all cores--> verdicts
//!                  ^                  |
//!                  +---- Graph -------+--> Winner: verified, simulated without a limit
//! ```
//!
//! A *method* proposes schedules; the *judge* prices them on the simulator and remembers the best. Methods see the
//! machine as a *graph* of links. The same seed gives the same winners on any number of threads.

pub mod candidate;
pub mod compose;
pub mod graph;
pub mod judge;
pub mod kept;
pub mod lasting;
pub mod links;
pub mod method;
pub mod methods;
pub mod problem;
pub mod reads;
pub mod synthesize;
pub mod verdict;

pub use candidate::{Candidate, Draft, Recipe};
pub use graph::Graph;
pub use judge::{Control, Judge, Verdict, Winner};
pub use lasting::{Answer, Lasting};
pub use method::Method;
pub use methods::METHODS;
pub use problem::Problem;
pub use synthesize::{synthesize, Choices, Found};

/// Result of a search.
pub type Result<T> = std::result::Result<T, linkwright_sim::SimError>;
