//! GOAL, the schedules of LogGOPSim and ATLAHS: sends, receives and calculations of each rank.
//!
//! ```text
//!   num_ranks 2
//!   rank 0 {                             rank 1 {
//!   l1: calc 100                         l1: recv 8b from 0 tag 0
//!   l2: send 8b to 1 tag 0 cpu 0         l2: calc 100
//!   l2 requires l1                       l2 requires l1
//!   }                                    }
//! ```
//!
//! A GOAL text says who sends how much to whom, and what waits for what, but not which data. It becomes
//! traffic: a pattern in which order and the absence of circles are proved, and contents are not.
//!
//! | GOAL | schedule |
//! |---|---|
//! | a send and the receive it meets (same ranks and tag, in order) | one put of the sender |
//! | `calc n`, n in ns | a compute of n operations; at 10^9 operations/s it lasts n ns |
//! | `a requires b`, b a send or calc | a waits for b: source free, or finished |
//! | `a requires b`, b a receive | a waits for the put that b meets and for what b requires |
//! | `a irequires b` (after the start of b), same `cpu` | a comes behind b in its lane |
//! | `a irequires b`, otherwise | a waits for what b waits for |
//! | `cpu c` | lane c |
//! | `nic n` | nothing: the machine chooses its ports |
//!
//! A send never waits for the receive that it meets (all messages are eager). GOAL gives no order to
//! what shares a cpu; a lane needs one, so operations go by the calculations before them, then by how
//! many steps are before them, then by line.
//!
//! Source: Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language" (ICPP 2009); the grammar
//! is that of `txt2bin` in spcl/LogGOPSim.

mod cut;
mod lexer;
mod matching;
mod order;
mod parse;
mod plan;
mod print;
mod waits;
mod write;

#[cfg(test)]
mod tests;

use crate::error::{PlanError, Result};
use crate::format::Format;
use linkwright_schedule::{text, verify, Schedule};

/// GOAL text.
pub static FORMAT: Format = Format {
    key: "goal",
    summary: "GOAL text of LogGOPSim and ATLAHS: sends, receives and calculations of each rank",
    description: "Says who sends how much to whom and what waits for what, but not which data: what is read is traffic, \
                  of which order is proved and contents are not. `calc` is in ns. Written are the messages and waits of \
                  any schedule: a get is a request and an answer, a notice is a message of 1 B, a local copy is `calc \
                  0`, and reductions are not told apart from copies.",
    source: "https://github.com/spcl/LogGOPSim",
    suffix: ".goal",
    recognises: lexer::begins,
    read: Some(read),
    write: write::write,
};

fn read(content: &str) -> Result<Schedule> {
    let plan = parse::parse(content)?;
    let partners = matching::partners(&plan)?;
    let before = order::of(&plan, &partners)?;
    let waits = waits::of(&plan, &partners)?;
    let text = print::print(&plan, &before, &waits)?;
    let schedule = text::parse(&text).map_err(|error| PlanError::whole(error.problem))?;
    verify(&schedule).map_err(|error| PlanError::whole(error.to_string()))?;
    Ok(schedule)
}
