//! What each resource carried, for results: bytes, time with anybody there, most at once.

use crate::fabric::LinkTable;
use linkwright_core::TimePs;
use std::cell::OnceCell;

/// Load of one resource; together, because all of it changes together.
#[derive(Clone, Copy, Default)]
struct Load {
    /// Since when it has been busy.
    since: TimePs,
    busy_ps: u64,
    bytes: u64,
    peak: u32,
}

/// Loads since the last reset.
pub(super) struct Loads {
    names: Vec<String>,
    each: Vec<Load>,
    /// The same as others want it; gone when anything changes.
    table: OnceCell<LinkTable>,
}

impl Loads {
    pub fn new(names: Vec<String>) -> Self {
        Loads {
            each: vec![Load::default(); names.len()],
            names,
            table: OnceCell::new(),
        }
    }

    pub fn clear(&mut self) {
        self.each.fill(Load::default());
        self.change();
    }

    /// Loads are about to change.
    pub fn change(&mut self) {
        self.table.take();
    }

    pub fn table(&self) -> &LinkTable {
        self.table.get_or_init(|| LinkTable {
            names: self.names.clone(),
            busy_ps: self.each.iter().map(|load| load.busy_ps).collect(),
            bytes: self.each.iter().map(|load| load.bytes).collect(),
            peak: self.each.iter().map(|load| load.peak).collect(),
        })
    }

    /// A job comes to `resource`, where there are now `count`.
    #[inline]
    pub fn enter(&mut self, resource: usize, now: TimePs, count: usize, bytes: u64) {
        let load = &mut self.each[resource];
        if count == 1 {
            load.since = now;
        }
        load.bytes += bytes;
        load.peak = load.peak.max(count as u32);
    }

    /// A job has left `resource`, where `left` remain.
    #[inline]
    pub fn leave(&mut self, resource: usize, now: TimePs, left: usize) {
        if left == 0 {
            let load = &mut self.each[resource];
            load.busy_ps += now.saturating_sub(load.since).0;
        }
    }
}
