//! What the pass knows of each rank: its lanes, what it has handled, when it was last busy.

use crate::critical::Cause;
use crate::rules::{Batch, Receiver, Undecided};
use linkwright_schedule::ir::{Op, OpKind, COMPUTE_LANE};

/// One queue of a rank.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub free_at: u64,
    /// What freed it.
    pub cause: Cause,
}

/// All that is known of a rank, in one place: a walk visits the ranks in turn.
#[derive(Clone, Copy)]
pub(super) struct Rank {
    /// Messages, and arithmetic.
    pub lanes: [Lane; 2],
    /// Transfers of the lane of messages.
    pub batch: Batch<u32>,
    pub receiver: Receiver,
    pub finish: u64,
    /// Lane of the schedule from which it sends, once known.
    sends_from: Option<u8>,
}

pub(super) const MESSAGES: usize = 0;
pub(super) const ARITHMETIC: usize = 1;

/// When the last thing happened, and why.
pub(super) type End = (u64, Cause);

impl Rank {
    pub fn arriving(at: u64) -> Self {
        let lane = Lane {
            free_at: at,
            cause: Cause::NONE,
        };
        Rank {
            lanes: [lane; 2],
            batch: Batch::default(),
            receiver: Receiver::arriving(at),
            finish: at,
            sends_from: None,
        }
    }

    /// That messages leave from this lane of the schedule: all that a rank sends must come from one.
    #[inline]
    pub fn sends_from(&mut self, lane: u8) -> Result<(), Undecided> {
        let known = *self.sends_from.get_or_insert(lane);
        match known == lane && lane != COMPUTE_LANE {
            true => Ok(()),
            false => Err(Undecided),
        }
    }

    /// The lane of a local operation; a fence stands among the messages.
    #[inline]
    pub fn lane_of(&mut self, op: &Op) -> Result<usize, Undecided> {
        match op.kind != OpKind::Fence && op.lane == COMPUTE_LANE {
            true => Ok(ARITHMETIC),
            false => self.sends_from(op.lane).map(|()| MESSAGES),
        }
    }

    /// All transfers of the batch are complete: the lane looks after them and is free.
    #[inline]
    pub fn end_batch(&mut self, barrier: u64, end: &mut End) {
        let Some((completes, last)) = self.batch.end() else {
            return;
        };
        let cause = Cause::completion(last);
        let free_at = completes.max(self.lanes[MESSAGES].free_at) + barrier;
        self.lanes[MESSAGES] = Lane { free_at, cause };
        self.busy_until(completes, cause, end);
        self.busy_until(free_at, cause, end);
    }

    /// The rank was busy until `at` because of `cause`.
    #[inline]
    pub fn busy_until(&mut self, at: u64, cause: Cause, end: &mut End) {
        self.finish = at.max(self.finish);
        if at > end.0 {
            *end = (at, cause);
        }
    }
}
