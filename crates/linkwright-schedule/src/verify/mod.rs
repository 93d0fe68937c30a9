//! Proof that a schedule does what its spec demands, in every execution.
//!
//! ```text
//!   bounds      participants, buffers, chunks exist; both sides of a transfer are equally long
//!   order       edges lead to smaller ids and to what their waiter can see; barriers are complete
//!   semantics   run by id, every chunk ends with exactly the contributions of the spec
//!   race        every hazard is ordered, so that every execution ends like the one by id
//! ```
//!
//! Semantics are checked for one execution, the one by id; the absence of races carries the result
//! over to all others: two executions can differ only in the order of two accesses to one chunk of
//! which at least one writes, and those pairs are exactly the hazards.
//!
//! Patterns have no postcondition and no order to keep; of them only bounds and order are checked.
//!
//! Not proved here: that a machine has routes and slots for the schedule, and that a run on it ends
//! in time.

pub(crate) mod bounds;
mod cells;
mod clocks;
mod contributions;
mod difference;
mod explain;
mod happens;
mod hazard;
mod order;
mod outcome;
mod race;
mod semantics;
mod shape;

pub use contributions::proof_key;
pub use outcome::{Verified, VerifyError};

use crate::ir::Schedule;
use crate::spec::Collective;
use cells::Cells;

/// Prove that `schedule` is right; the error names step, rank, chunk and cure.
pub fn verify(schedule: &Schedule) -> Result<Verified, VerifyError> {
    bounds::check(schedule)?;
    let mut report = Verified {
        operations: schedule.ops().len() as u64,
        edges: schedule.edge_count() as u64,
        ..Verified::default()
    };
    let barriers = order::check(schedule, &mut report)?;
    if schedule.spec.collective == Collective::Pattern {
        return Ok(report);
    }
    let cells = Cells::of(schedule)?;
    // Races first, though semantics explain more: the C library hands a table back to the system when it is freed
    // only if it is larger than those freed before, and the contents of all chunks are the largest.
    let ordered = race::check(schedule, &cells, &barriers, &mut report);
    semantics::check(schedule, &cells, &mut report)?;
    ordered.map(|()| report)
}

/// Whether every execution of a schedule within bounds ends like the one by id: no hazard lacks an order.
pub fn is_deterministic(schedule: &Schedule) -> bool {
    let mut report = Verified::default();
    let mut races = || {
        let barriers = order::check(schedule, &mut report)?;
        let cells = Cells::of(schedule)?;
        race::check(schedule, &cells, &barriers, &mut report)
    };
    races().is_ok()
}

#[cfg(test)]
mod tests;
