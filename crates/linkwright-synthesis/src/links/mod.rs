//! Search on links: schedules for graphs that no algorithm was written for.
//!
//! ```text
//!   wires  --matching, packing, flows-->  plan  --order-->  times  --write-->  schedule
//!   pairs and their links                 who sends what    when               puts in lanes
//! ```
//!
//! Every step is a plain function, so a plan may come from anywhere. [`search`] decides what is tried; three methods of the
//! registry give the schedules to the judge.

mod clock;
pub mod fabric;
pub mod flows;
mod loads;
pub mod matching;
pub mod nets;
pub mod order;
pub mod packing;
pub mod plan;
pub(crate) mod propose;
pub mod recipe;
pub mod search;
pub mod wires;
pub mod write;
