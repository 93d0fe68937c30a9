//! Composition: stages over the digits of the ranks, each with an exchange of its own.
//!
//! ```text
//!   recipe (recipe.rs) --line.rs: one line--> layout.rs: all ranks --> blocks.rs, rooted.rs, exchange.rs --> Schedule
//! ```
//!
//! A recipe cuts the vector into parts. In each part, ranks are numbers of several digits: dimensions of a grid, levels
//! of a machine, or factors of one. A stage is an exchange along one of them, written once for all of its lines.

mod blocks;
pub mod costs;
pub mod enumerate;
pub mod estimate;
mod exchange;
pub(crate) mod explored;
mod layout;
mod line;
pub mod neighbours;
pub mod recipe;
mod rooted;
pub mod staging;

#[cfg(test)]
mod tests;

pub use recipe::{Composition, Digit, Part, Primitive, Stage, Way};

use linkwright_schedule::error::{Result, ScheduleError};
use linkwright_schedule::transforms::pipeline;
use linkwright_schedule::{Collective, Schedule, Shape};

/// The schedule of `recipe` for `shape`; waived where the stages do not suit it.
pub fn compose(recipe: &Composition, shape: &Shape) -> Result<Schedule> {
    shape.check()?;
    let schedule = match recipe.collective {
        Collective::Allreduce | Collective::Allgather | Collective::ReduceScatter => {
            staging::write(recipe, shape)?
        }
        Collective::Broadcast => rooted::write(recipe, shape)?,
        Collective::Alltoall => exchange::write(recipe, shape)?,
        other => {
            return Err(ScheduleError::Waived {
                algorithm: "composition".into(),
                reason: format!("{} has no stages", other.name()),
            })
        }
    };
    let schedule = match recipe.slices {
        0 | 1 => schedule,
        slices => pipeline(&schedule, slices)?,
    };
    match recipe.reads {
        None => Ok(schedule),
        Some(reads) => reads.apply(&schedule),
    }
}
