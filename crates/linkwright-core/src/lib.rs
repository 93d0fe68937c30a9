//! Units, identifiers, machine descriptions: what every other crate stands on.
//!
//! A [`machine::Machine`] says what there is: endpoints, links, routes, costs. It knows nothing
//! of schedules. Every number of a machine carries its unit, status and source.

pub mod clock;
pub mod error;
pub mod free_memory;
pub mod ids;
pub mod issue;
pub mod machine;
pub mod probes;
pub mod random;
pub mod ratio;
pub mod skew;
pub mod units;
mod words;

pub use error::MachineError;
pub use ids::{EndpointId, Participant};
pub use issue::Issue;
pub use machine::Machine;
pub use ratio::Ratio;
pub use skew::Skew;
pub use units::{Bytes, BytesPerSec, Clock, TimePs};
