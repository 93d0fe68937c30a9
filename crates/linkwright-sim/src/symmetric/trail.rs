//! The critical path of operations that are forgotten: each carries what the time before it was spent on.
//!
//! `critical.rs` traces the path back from the end over all operations. Here they are gone by then, so the path is
//! added up on the way: when an operation is released, the time since its releaser was issued is cut into causes by
//! the same rules and added to what the releaser carried.

use crate::critical::{Backwards, CriticalPath, Moments, Segment, Spent};
use crate::rank::Because;
use linkwright_core::machine::Path;
use linkwright_schedule::ir::OpKind;

/// Picoseconds per cause, in the order of [`Spent::ALL`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spans([u64; 5]);

/// What is remembered of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Operation and rank.
    pub instance: (u32, u32),
    pub kind: OpKind,
    pub issued: u64,
    pub offered: u64,
    pub delivered: u64,
    pub visible: u64,
    pub source_free: u64,
    pub acknowledged: u64,
    /// Combination on arrival.
    pub combine: u64,
    /// On an idle fabric: without data, and what the data add.
    pub latency: u64,
    pub serialisation: u64,
    /// Issue and delivery at the earliest, if messages had no data and ranks were never busy.
    pub earliest: (u64, u64),
    /// What the time before the issue was spent on.
    pub spans: Spans,
}

impl Default for Record {
    fn default() -> Self {
        Record {
            instance: (u32::MAX, u32::MAX),
            kind: OpKind::Fence,
            issued: 0,
            offered: 0,
            delivered: 0,
            visible: 0,
            source_free: 0,
            acknowledged: 0,
            combine: 0,
            latency: 0,
            serialisation: 0,
            earliest: (0, 0),
            spans: Spans::default(),
        }
    }
}

/// What let an operation go.
#[derive(Clone, Copy)]
pub(super) struct Cause {
    pub of: Record,
    /// Whether its completion freed the lane.
    completion: bool,
}

impl Cause {
    /// A completion that was waited for, or the end of its issue.
    pub fn edge(of: Record) -> Self {
        let completion = false;
        Cause { of, completion }
    }

    /// What all the time until `at` was spent on; `acknowledged`: its acknowledgement was waited for.
    pub fn spans_until(&self, at: u64, acknowledged: bool, path: &Path) -> Spans {
        let spans = self.of.spans;
        let mut sums = Sums { at, spans };
        let latency_after = acknowledged || self.completion;
        self.of.moments(path).cut(latency_after, &mut sums);
        sums.spans
    }
}

impl Because for Option<Cause> {
    type Transfer = Record;
    const NONE: Self = None;

    fn completion(of: Record) -> Self {
        let completion = true;
        Some(Cause { of, completion })
    }

    #[inline]
    fn is_known(&self) -> bool {
        self.is_some()
    }
}

impl Record {
    /// What the time since the issue is cut by; a program has neither signals nor ranks that move data themselves.
    fn moments(&self, path: &Path) -> Moments {
        Moments {
            kind: self.kind,
            issued: self.issued,
            software: self.offered,
            offered: self.offered,
            delivered: self.delivered,
            combine: self.combine,
            receive: path.receive.0,
            answer: path.barrier.0,
            signalled: false,
            latency: self.latency,
            serialisation: self.serialisation,
        }
    }
}

/// Spans, added from the end to the beginning.
struct Sums {
    at: u64,
    spans: Spans,
}

impl Backwards for Sums {
    fn at(&self) -> u64 {
        self.at
    }

    fn spend(&mut self, from: u64, spent: Spent) {
        self.spans.0[spent as usize] += self.at - from;
        self.at = from;
    }
}

impl Spans {
    /// Nothing but waiting.
    pub fn waiting(length: u64) -> Self {
        let mut spans = Spans::default();
        spans.0[Spent::Waiting as usize] = length;
        spans
    }

    /// One stretch for each cause, for the operations have been forgotten.
    pub fn as_path(self, first: u64) -> CriticalPath {
        let mut at = first;
        let mut segments = Vec::new();
        for (spent, length) in Spent::ALL.into_iter().zip(self.0) {
            if length > 0 {
                let (from_ps, to_ps) = (at, at + length);
                segments.push(Segment {
                    op: None,
                    spent,
                    from_ps,
                    to_ps,
                });
                at = to_ps;
            }
        }
        CriticalPath { segments }
    }
}
