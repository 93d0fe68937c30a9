//! What each resource carried, for results: bytes, time with anybody there, most at once.

use crate::fabric::LinkTable;
use linkwright_core::TimePs;

/// Loads since the last reset.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    table: LinkTable,
    /// Since when each resource has been busy.
    since: Vec<TimePs>,
}

impl Loads {
    pub fn new(names: Vec<String>) -> Self {
        Loads {
            since: vec![TimePs::ZERO; names.len()],
            table: LinkTable::new(names),
        }
    }

    pub fn clear(&mut self) {
        self.table.clear();
        self.since.fill(TimePs::ZERO);
    }

    pub fn table(&self) -> &LinkTable {
        &self.table
    }

    /// A job comes to `resource`, where there were `before`.
    pub fn enter(&mut self, resource: u32, now: TimePs, before: usize, bytes: u64) {
        let r = resource as usize;
        if before == 0 {
            self.since[r] = now;
        }
        self.table.bytes[r] += bytes;
        self.table.peak[r] = self.table.peak[r].max(before as u32 + 1);
    }

    /// A job has left `resource`, where `left` remain.
    pub fn leave(&mut self, resource: u32, now: TimePs, left: usize) {
        if left == 0 {
            let r = resource as usize;
            self.table.busy_ps[r] += now.saturating_sub(self.since[r]).0;
        }
    }
}
