//! The two rules of a rank that does without a queue, for the order-free pass and for the walk.
//!
//! Operations are met by id, not in the order of time. A *batch* of transfers frees its lane when the last of
//! them completes, and so the operation behind it has to say whether that comes first. A *receiver* handles
//! arrivals one after another, and so they have to come in the order in which they are met, unless handling
//! them takes no time. Where neither can be told, the engine has to simulate.

use crate::setup::Issue;
use linkwright_schedule::ir::{Op, OpKind};

/// It depends on what has not been met yet.
pub(crate) struct Undecided;

/// Transfers of a lane under way; `T` says which one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Batch<T> {
    count: u32,
    /// The last of them to complete.
    last: T,
    completes: u64,
}

impl<T: Copy> Batch<T> {
    /// One more transfer, which completes at `at` in the sense of the path.
    #[inline]
    pub fn add(&mut self, transfer: T, at: u64) {
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
    pub fn end(&mut self) -> Option<(u64, T)> {
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
