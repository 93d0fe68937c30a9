//! What the pass knows of each rank: its lanes, what it has handled, when it was last busy.

use crate::critical::Cause;
use crate::setup::Issue;
use linkwright_schedule::ir::{Op, OpKind, COMPUTE_LANE};

/// The walk cannot tell: the engine has to do it.
pub(super) struct Unsuitable;

/// One queue of a rank.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub free_at: u64,
    /// What freed it.
    pub cause: Cause,
    /// Transfers of the batch under way, when the last of them completes, and which that is.
    batch: u32,
    completes: u64,
    last: u32,
}

/// The receiving side of a rank.
#[derive(Clone, Copy)]
pub(super) struct Receiver {
    /// When it has handled its arrivals so far: none before it is there itself.
    handled: u64,
    /// The latest arrival and when it was sent: ties are handled in the order of sending.
    latest: (u64, u64),
    in_order: bool,
    /// Whether handling any arrival took time.
    busy: bool,
}

/// All that is known of a rank, in one place: a walk visits the ranks in turn.
#[derive(Clone, Copy)]
pub(super) struct Rank {
    /// Messages, and arithmetic.
    pub lanes: [Lane; 2],
    /// Lane of the schedule from which it sends, once known.
    sends_from: Option<u8>,
    pub receiver: Receiver,
    pub finish: u64,
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
            batch: 0,
            completes: 0,
            last: 0,
        };
        Rank {
            lanes: [lane; 2],
            sends_from: None,
            receiver: Receiver {
                handled: at,
                latest: (0, 0),
                in_order: true,
                busy: false,
            },
            finish: at,
        }
    }

    /// That messages leave from this lane of the schedule: all that a rank sends must come from one.
    #[inline]
    pub fn sends_from(&mut self, lane: u8) -> Result<(), Unsuitable> {
        let known = *self.sends_from.get_or_insert(lane);
        match known == lane && lane != COMPUTE_LANE {
            true => Ok(()),
            false => Err(Unsuitable),
        }
    }

    /// The lane of a local operation; a fence stands among the messages.
    #[inline]
    pub fn lane_of(&mut self, op: &Op) -> Result<usize, Unsuitable> {
        match op.kind != OpKind::Fence && op.lane == COMPUTE_LANE {
            true => Ok(ARITHMETIC),
            false => self.sends_from(op.lane).map(|()| MESSAGES),
        }
    }

    /// Whether the lane's batch ends before `op` is issued; then the lane pays for it.
    #[inline]
    pub fn ends_batch(
        &self,
        op: &Op,
        index: usize,
        waits: u64,
        issue: Issue,
    ) -> Result<bool, Unsuitable> {
        let lane = &self.lanes[index];
        let size = match issue {
            Issue::Unlimited => return Ok(false),
            Issue::Batch(size) => size,
            Issue::Blocking | Issue::Window(_) => 1,
        };
        if lane.batch == 0 {
            return Ok(false);
        }
        let full = op.kind == OpKind::Put && lane.batch >= size;
        let ready = waits.max(lane.free_at);
        if !full && lane.completes == ready {
            // Which comes first is a matter of the queue.
            return Err(Unsuitable);
        }
        Ok(full || lane.completes < ready)
    }

    /// All transfers of the batch are complete: the lane looks after them and is free.
    #[inline]
    pub fn free_batch(&mut self, index: usize, barrier: u64, end: &mut End) {
        let lane = &mut self.lanes[index];
        if lane.batch == 0 {
            return;
        }
        let (completes, cause) = (lane.completes, Cause::completion(lane.last));
        let free_at = completes.max(lane.free_at) + barrier;
        (lane.batch, lane.free_at, lane.cause) = (0, free_at, cause);
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

impl Lane {
    /// Transfer `id` completes in the sense of the path.
    #[inline]
    pub fn complete(&mut self, id: u32, at: u64) {
        self.batch += 1;
        if self.batch == 1 || at >= self.completes {
            (self.completes, self.last) = (at, id);
        }
    }
}

impl Receiver {
    /// When an arrival that was sent at `sent` and delivered at `at` is handled, which takes `cost`.
    #[inline]
    pub fn handle(&mut self, at: u64, sent: u64, cost: u64) -> Result<u64, Unsuitable> {
        self.in_order &= self.latest <= (at, sent);
        self.latest = (at, sent);
        self.busy |= cost > 0;
        if self.busy && !self.in_order {
            return Err(Unsuitable);
        }
        let visible = at.max(self.handled) + cost;
        if self.busy {
            self.handled = visible;
        }
        Ok(visible)
    }
}
