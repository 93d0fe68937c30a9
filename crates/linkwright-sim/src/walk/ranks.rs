//! The state of one rank.

use super::trail::{Cause, Record};
use crate::rules::{Batch, Receiver};

/// One queue of a rank.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub free_at: u64,
    /// What freed it.
    pub cause: Option<Cause>,
}

/// A rank: the lane of its messages and that of its arithmetic, and its receiving side.
#[derive(Clone)]
pub(super) struct Rank {
    pub lanes: [Lane; 2],
    /// Transfers of the lane of messages.
    pub batch: Batch<Record>,
    pub receiver: Receiver,
    pub finish: u64,
}

pub(super) const MESSAGES: usize = 0;
pub(super) const ARITHMETIC: usize = 1;

impl Rank {
    /// A rank that arrives at `at`.
    pub fn arriving(at: u64) -> Self {
        let lane = Lane {
            free_at: at,
            cause: None,
        };
        Rank {
            lanes: [lane; 2],
            batch: Batch::default(),
            receiver: Receiver::arriving(at),
            finish: at,
        }
    }
}
