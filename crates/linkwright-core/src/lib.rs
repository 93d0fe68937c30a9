//! Units, identifiers, machine descriptions: what every other crate stands on.
//!
//! A [`machine::Machine`] says what there is: endpoints, links, routes, costs. It knows nothing
//! of schedules. Every number of a machine carries its unit, status and source.

pub mod ids;
pub mod units;

pub use ids::{EndpointId, LinkId, Participant};
pub use units::{Bytes, BytesPerSec, TimePs};
