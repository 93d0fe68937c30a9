//! What each resource carried, for results: bytes, time in use, most jobs at once.

use crate::bins::Bins;
use crate::fabric::LinkTable;
use linkwright_core::TimePs;

/// Load of one resource, in one place because all fields change together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Since when it has been busy.
    since: TimePs,
    busy_ps: u64,
    bytes: u64,
    peak: u32,
}

impl Load {
    /// A job with this many bytes arrives, and there are now `count`.
    #[inline]
    pub fn enter(&mut self, now: TimePs, count: usize, bytes: u64) {
        if count == 1 {
            self.since = now;
        }
        self.bytes += bytes;
        self.peak = self.peak.max(count as u32);
    }

    /// A job has left, and `left` remain; since when it was busy, if it is no longer.
    #[inline]
    pub fn leave(&mut self, now: TimePs, left: usize) -> Option<TimePs> {
        (left == 0).then(|| {
            self.busy_ps += now.saturating_sub(self.since).0;
            self.since
        })
    }
}

/// All loads as a table of links.
pub(super) fn table<'a>(
    names: &[String],
    each: impl Iterator<Item = &'a Load> + Clone,
    bins: &Option<Box<Bins>>,
) -> LinkTable {
    LinkTable {
        names: names.to_vec(),
        busy_ps: each.clone().map(|load| load.busy_ps).collect(),
        bytes: each.clone().map(|load| load.bytes).collect(),
        peak: each.map(|load| load.peak).collect(),
        bins: bins.clone(),
    }
}
