//! What a GOAL text says: the operations and waits of every rank.

use super::lexer::short;
use crate::error::PlanError;
use crate::skeleton::Steps;

/// What one operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Send to a rank.
    Send { to: u32, bytes: u64, tag: u32 },
    /// Receive from a rank.
    Recv { from: u32, bytes: u64, tag: u32 },
    /// Calculate for so many ns.
    Calc { ns: u64 },
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub rank: u32,
    pub line: u32,
    pub lane: u8,
    pub kind: Kind,
    /// Empty where it has none.
    pub label: &'a str,
}

impl Step<'_> {
    /// An error in the line of this operation.
    pub fn error(&self, problem: impl Into<String>) -> PlanError {
        PlanError::at(format!("line {}", self.line), problem)
    }
}

/// "`waiter` requires `on`", or `irequires`; both are indices of operations of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub waiter: u32,
    pub on: u32,
    /// Whether only the start is waited for.
    pub start: bool,
}

/// What a GOAL text says.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub ranks: u32,
    pub steps: Vec<Step<'a>>,
    pub needs: Vec<Need>,
}

impl Steps for Plan<'_> {
    fn place(&self, step: u32) -> String {
        let Step {
            rank, line, label, ..
        } = self.steps[step as usize];
        match label {
            "" => format!("line {line} (rank {rank})"),
            label => format!("line {line} ({} of rank {rank})", short(label)),
        }
    }
}
