//! Search on links: schedules for graphs that no algorithm was written for.
//!
//! ```text
//!   wires  --matching, packing, flows-->  plan  --order-->  times  --write-->  schedule
//!   pairs and their links                 who sends what    when               puts in lanes
//! ```

mod clock;
pub mod fabric;
pub mod flows;
mod loads;
pub mod matching;
pub mod nets;
pub mod order;
pub mod packing;
pub mod plan;
pub mod recipe;
pub mod search;
pub mod wires;
pub mod write;
