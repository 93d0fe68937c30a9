//! A rank that does without an event queue, for the order-free pass.
//!
//! Operations are met by id, not in the order of time. A *batch* of transfers frees its lane when the last of
//! them completes, so the operation behind it has to say whether that comes first. A *receiver* handles
//! arrivals one after another, so they have to come in the order in which they are met, unless handling
//! them takes no time. Where neither can be told, the engine has to simulate.

use crate::critical::Cause;
use crate::fabric::Times;
use crate::setup::Issue;
use linkwright_core::machine::Completion;
use linkwright_schedule::ir::{Combine, Op, OpKind, COMPUTE_LANE};

/// The outcome depends on what has not been met yet.
pub(crate) struct Undecided;

/// When the last thing happened, and why.
pub(crate) type End = (u64, Cause);

/// One queue of a rank.
#[derive(Clone, Copy)]
pub(crate) struct Lane {
    pub free_at: u64,
    /// What freed it.
    pub cause: Cause,
}

/// All that is known of a rank, in one place: ranks are visited in turn.
#[derive(Clone, Copy)]
pub(crate) struct Rank {
    /// Messages, and arithmetic.
    pub lanes: [Lane; 2],
    /// Transfers of the lane of messages.
    pub batch: Batch,
    pub receiver: Receiver,
    pub finish: u64,
    /// Lane of the schedule from which it sends, once known.
    sends_from: Option<u8>,
}

pub(crate) const MESSAGES: usize = 0;
pub(crate) const ARITHMETIC: usize = 1;

/// Whether `op` occupies the arithmetic unit of its rank.
#[inline]
pub(crate) fn combines(op: &Op) -> bool {
    op.kind == OpKind::Local && op.combine == Combine::Reduce
}

impl Rank {
    /// A rank that arrives at `at`.
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

    /// The lane of a local operation; a fence stands among the messages. A combination among the messages would wait
    /// for the arithmetic unit, whose lane is followed apart, so it is undecided.
    #[inline]
    pub fn lane_of(&mut self, op: &Op) -> Result<usize, Undecided> {
        match op.kind != OpKind::Fence && op.lane == COMPUTE_LANE {
            true => Ok(ARITHMETIC),
            false if combines(op) => Err(Undecided),
            false => self.sends_from(op.lane).map(|()| MESSAGES),
        }
    }

    /// End the batch if that comes before `op`, whose waits are over at `waits`, is issued.
    #[inline]
    pub fn make_room(
        &mut self,
        op: &Op,
        waits: u64,
        (issue, barrier): (Issue, u64),
        end: &mut End,
    ) -> Result<(), Undecided> {
        let ready = waits.max(self.lanes[MESSAGES].free_at);
        if self.batch.ends_before(op, ready, issue)? {
            self.end_batch(barrier, end);
        }
        Ok(())
    }

    /// When `lane` takes up an operation whose waits are over at `waits` because of `edge`, and what lets it.
    #[inline]
    pub fn ready(&self, lane: usize, (waits, edge): (u64, Cause)) -> (u64, Cause) {
        let Lane { free_at, cause } = self.lanes[lane];
        let own = waits < free_at || waits == free_at && cause != Cause::NONE;
        (waits.max(free_at), if own { cause } else { edge })
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
        self.busy_until(completes, end, || cause);
        self.busy_until(free_at, end, || cause);
    }

    /// A transfer completes at `at` in the sense of the path.
    #[inline]
    pub fn complete(&mut self, transfer: u32, at: u64, issue: Issue, end: &mut End) {
        match issue {
            Issue::Unlimited => self.busy_until(at, end, || Cause::completion(transfer)),
            _ => self.batch.add(transfer, at),
        }
    }

    /// The rank was busy until `at` because of `cause`.
    #[inline]
    pub fn busy_until(&mut self, at: u64, end: &mut End, cause: impl FnOnce() -> Cause) {
        self.finish = at.max(self.finish);
        if at > end.0 {
            *end = (at, cause());
        }
    }
}

/// When a transfer with these times is complete in the sense of the path.
#[inline]
pub(crate) fn completes(completion: Completion, times: &Times) -> u64 {
    match completion {
        Completion::SourceFree => times.source_free.0,
        Completion::Delivered => times.delivered.0,
        Completion::Acknowledged => times.acknowledged.0,
    }
}

/// Transfers of a lane under way.
#[derive(Clone, Copy, Default)]
pub(crate) struct Batch {
    count: u32,
    /// The last of them to complete.
    last: u32,
    completes: u64,
}

impl Batch {
    /// One more transfer, which completes at `at` in the sense of the path.
    #[inline]
    pub fn add(&mut self, transfer: u32, at: u64) {
        self.count += 1;
        if self.count == 1 || at >= self.completes {
            (self.completes, self.last) = (at, transfer);
        }
    }

    /// Whether the batch ends before `op` is issued, which could be at `ready`; then the lane pays for it.
    #[inline]
    pub fn ends_before(&self, op: &Op, ready: u64, issue: Issue) -> Result<bool, Undecided> {
        if self.count == 0 {
            return Ok(false);
        }
        let size = match issue {
            Issue::Unlimited => return Ok(false),
            Issue::Batch(size) => size,
            Issue::Blocking | Issue::Window(_) => 1,
        };
        let full = op.kind == OpKind::Put && self.count >= size;
        if !full && self.completes == ready {
            return Err(Undecided);
        }
        Ok(full || self.completes < ready)
    }

    /// When all transfers are complete, and the last of them; there are none afterwards.
    #[inline]
    pub fn end(&mut self) -> Option<(u64, u32)> {
        let ended = (self.count > 0).then_some((self.completes, self.last));
        self.count = 0;
        ended
    }
}

/// The receiving side of a rank.
#[derive(Clone, Copy)]
pub(crate) struct Receiver {
    /// When it has handled its arrivals so far: none before it is there itself.
    handled: u64,
    /// The latest arrival and when it was sent: ties are handled in the order of sending.
    latest: (u64, u64),
    in_order: bool,
    /// Whether handling any arrival took time.
    busy: bool,
}

impl Receiver {
    /// That of a rank that comes at `at`.
    pub fn arriving(at: u64) -> Self {
        Receiver {
            handled: at,
            latest: (0, 0),
            in_order: true,
            busy: false,
        }
    }

    /// When an arrival that was sent at `sent` and delivered at `at` is handled, which takes `cost`.
    #[inline]
    pub fn handle(&mut self, at: u64, sent: u64, cost: u64) -> Result<u64, Undecided> {
        self.in_order &= self.latest <= (at, sent);
        self.latest = (at, sent);
        self.busy |= cost > 0;
        if self.busy && !self.in_order {
            return Err(Undecided);
        }
        let visible = at.max(self.handled) + cost;
        if self.busy {
            self.handled = visible;
        }
        Ok(visible)
    }
}
