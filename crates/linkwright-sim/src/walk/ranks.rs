//! The state of one rank.

use super::trail::{Cause, Record};

/// One queue of a rank.
#[derive(Clone, Copy, Default)]
pub(super) struct Lane {
    pub free_at: u64,
    /// What freed it.
    pub cause: Option<Cause>,
    /// Transfers of the batch under way, when the last of them completes, and which that is.
    pub batch: u32,
    pub completes: u64,
    pub last: Record,
}

/// A rank: the lane of its messages and that of its arithmetic, and its receiving side.
#[derive(Clone)]
pub(super) struct Rank {
    pub lanes: [Lane; 2],
    pub finish: u64,
    /// When it has handled its arrivals so far: none before it is there itself.
    handled: u64,
    /// The latest arrival and when it was sent: ties are handled in the order of sending.
    latest: (u64, u64),
    in_order: bool,
    /// Whether handling any arrival took time.
    busy: bool,
}

impl Rank {
    /// A rank that arrives at `at`.
    pub fn new(at: u64) -> Self {
        let lane = Lane {
            free_at: at,
            ..Lane::default()
        };
        Rank {
            lanes: [lane; 2],
            finish: at,
            handled: at,
            latest: (0, 0),
            in_order: true,
            busy: false,
        }
    }

    /// When an arrival at `at`, which takes `cost` to handle, is visible; none where that depends on
    /// what the walk has not seen.
    #[inline]
    pub fn arrive(&mut self, sent: u64, at: u64, cost: u64) -> Option<u64> {
        self.in_order &= self.latest <= (at, sent);
        self.latest = (at, sent);
        self.busy |= cost > 0;
        if self.busy && !self.in_order {
            return None;
        }
        let visible = at.max(self.handled) + cost;
        if self.busy {
            self.handled = visible;
        }
        Some(visible)
    }
}
