//! Proof that a folded schedule does what its spec demands: for rank 0, and so for all.
//!
//! The steps are those of `crate::verify`; what it says of operations is said of instances here. Where
//! each rank does the same in its own coordinates, the schedule is the image of itself under the group,
//! and the image of a proof is a proof: a hazard between instances (k, e) and (k', e') is ordered at rank 0
//! if and only if it is at every rank.
//!
//! Contents are always followed exactly: intervals of ranks can be turned, fingerprints cannot.

mod bounds;
mod contents;
mod race;
mod semantics;

use super::Folded;
use crate::ir::OpKind;
use crate::verify::{Verified, VerifyError};

/// Number of operations above which a separate thread pays off.
const LONG: usize = 1 << 16;

impl Folded {
    /// Prove that the schedule over all ranks is right; the numbers are those of all ranks together.
    pub fn verify(&self) -> Result<Verified, VerifyError> {
        bounds::check(self)?;
        let mut report = Verified {
            operations: self.ops().len() as u64,
            edges: self.waits.len() as u64,
            exact: true,
            ..Verified::default()
        };
        for op in self.ops() {
            report.messages += u64::from(op.is_message());
            report.notices += u64::from(op.kind == OpKind::Notice);
        }
        // Neither proof needs the other; of a long program each has a thread.
        let (contents, hazards) = match self.ops().len() < LONG {
            true => (semantics::check(self)?, race::check(self)),
            false => std::thread::scope(|threads| {
                let hazards = threads.spawn(|| race::check(self));
                let contents = semantics::check(self);
                let hazards = hazards.join().expect("a proof does not panic");
                Ok((contents?, hazards))
            })?,
        };
        report.chunk_moves = contents;
        (report.hazards, report.long_searches) = hazards?;
        let all = |of_one: u64| of_one * u64::from(self.ranks());
        Ok(Verified {
            operations: all(report.operations),
            messages: all(report.messages),
            notices: all(report.notices),
            edges: all(report.edges),
            chunk_moves: all(report.chunk_moves),
            hazards: all(report.hazards),
            long_searches: all(report.long_searches),
            exact: true,
        })
    }
}

#[cfg(test)]
mod tests;
