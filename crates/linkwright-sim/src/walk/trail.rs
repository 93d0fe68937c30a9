//! The critical path without a way back: every operation carries what the time before it was spent on.
//!
//! `critical.rs` walks back from the end over all operations. A walk that forgets them adds up as it
//! goes: when an operation is let go, the time since the issue of what let it go is cut into causes, by
//! the same rules, and added to what that one carried.

use crate::critical::{CriticalPath, Segment, Spent};
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
    /// A completion that was waited for.
    pub fn edge(of: Record) -> Self {
        let completion = false;
        Cause { of, completion }
    }

    /// The end of its issue.
    pub fn issue(of: Record) -> Self {
        Cause::edge(of)
    }

    /// A completion that freed the lane.
    pub fn completion(of: Record) -> Self {
        let completion = true;
        Cause { of, completion }
    }

    /// What all the time until `at` was spent on; `acknowledged`: its acknowledgement was waited for.
    pub fn spans_until(&self, at: u64, acknowledged: bool, path: &Path) -> Spans {
        let mut spent = Backwards {
            at,
            spans: self.of.spans,
        };
        self.of
            .cut(acknowledged || self.completion, path, &mut spent);
        spent.fill(self.of.issued, Spent::Waiting);
        spent.spans
    }
}

impl Record {
    /// Cut the time from the issue to `b.at`, latest stretch first.
    fn cut(&self, latency_after: bool, path: &Path, b: &mut Backwards) {
        match self.kind {
            OpKind::Local => b.fill(self.issued, Spent::Compute),
            OpKind::Put | OpKind::Notice => {
                self.cut_after(latency_after, path, b);
                if b.at > self.offered {
                    let whole = b.at >= self.delivered;
                    b.take(self.serialisation, self.offered, Spent::Serialisation);
                    if whole {
                        b.take(self.latency, self.offered, Spent::Latency);
                    }
                    b.fill(self.offered, Spent::Waiting);
                }
                b.fill(self.issued, Spent::Overhead);
            }
            _ => {}
        }
    }

    /// What follows the delivery.
    fn cut_after(&self, latency: bool, path: &Path, b: &mut Backwards) {
        if b.at <= self.delivered {
            return;
        }
        if latency {
            b.take(path.barrier.0, self.delivered, Spent::Overhead);
            b.fill(self.delivered, Spent::Latency);
        } else {
            b.take(self.combine, self.delivered, Spent::Compute);
            b.take(path.receive.0, self.delivered, Spent::Overhead);
            b.fill(self.delivered, Spent::Waiting);
        }
    }
}

/// Spans, added from the end to the beginning.
struct Backwards {
    at: u64,
    spans: Spans,
}

impl Backwards {
    fn take(&mut self, length: u64, limit: u64, spent: Spent) {
        self.fill(limit.max(self.at.saturating_sub(length)), spent);
    }

    fn fill(&mut self, from: u64, spent: Spent) {
        if from < self.at {
            self.spans.0[spent as usize] += self.at - from;
            self.at = from;
        }
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
