//! The critical path: what the time was spent on.
//!
//! Every operation remembers what let it go last: a completion of another operation, the end of its
//! lane's previous issue, or a completion that freed its lane. Walking back from whatever finished
//! last gives an unbroken chain of operations, and the time of each is cut into causes:
//!
//! ```text
//!   issue       |  overhead    start + runs * per_run
//!   carriage    |  waiting     for links and ports: what exceeds an idle fabric
//!               |  latency     an empty message on an idle fabric
//!               |  serialisation   what the bytes add to it
//!   afterwards  |  overhead    receive, barrier, notices;  compute: combining on arrival
//!               |  latency     acknowledgements and signals;  waiting: for earlier arrivals
//!   local       |  compute     combinations, copies, computes
//! ```
//!
//! The segments cover the time from the first arrival to the last finish without gap or overlap,
//! so the shares sum to one. A chain through a late arrival begins with waiting for that rank.

use crate::costs::Costs;
use crate::fabric::{Fabric, Msg};
use crate::messages::Messages;
use crate::setup::Setup;
use linkwright_schedule::ir::OpKind;

linkwright_core::words! {
    /// What a stretch of the critical path was spent on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Spent {
        /// Distance: an empty message on an idle fabric, acknowledgements, signals.
        Latency = "latency",
        /// Bytes: what they add on an idle fabric.
        Serialisation = "serialisation",
        /// Others: links and ports in use, arrivals handled in turn, ranks that come late.
        Waiting = "waiting",
        /// Software: start-ups, receptions, checks of completions.
        Overhead = "overhead",
        /// Arithmetic and local copies.
        Compute = "compute",
    }
}

/// A stretch of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The operation under way; `None` while waiting for a rank to arrive.
    pub op: Option<u32>,
    /// What it was spent on.
    pub spent: Spent,
    /// Beginning, in picoseconds.
    pub from_ps: u64,
    /// End, in picoseconds.
    pub to_ps: u64,
}

/// The chain of operations that decided the makespan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CriticalPath {
    /// In the order of time, without gaps.
    pub segments: Vec<Segment>,
}

impl CriticalPath {
    /// Picoseconds per cause, in the order of [`Spent::ALL`].
    pub fn totals(&self) -> [u64; 5] {
        let mut totals = [0; 5];
        for s in &self.segments {
            totals[s.spent as usize] += s.to_ps - s.from_ps;
        }
        totals
    }

    /// Share per cause, in the order of [`Spent::ALL`]; they sum to one unless the path is empty.
    pub fn shares(&self) -> [f64; 5] {
        let totals = self.totals();
        let sum: u64 = totals.iter().sum();
        totals.map(|t| t as f64 / sum.max(1) as f64)
    }
}

/// What let an operation go: an operation, and in the two highest bits how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause(pub u32);

const HOW: u32 = 3 << 30;
const ISSUE: u32 = 1 << 30;
const COMPLETION: u32 = 2 << 30;

impl Cause {
    /// Nothing but the arrival of the rank.
    pub const NONE: Cause = Cause(u32::MAX);

    /// A completion that it waited for.
    pub fn edge(op: u32) -> Self {
        Cause(op)
    }

    /// The end of the issue of the operation before it in its lane.
    pub fn issue(op: u32) -> Self {
        Cause(op | ISSUE)
    }

    /// The completion of a transfer, the last of its batch.
    pub fn completion(op: u32) -> Self {
        Cause(op | COMPLETION)
    }
}

/// What a simulation remembers of its operations.
pub(crate) trait History {
    /// When the lane of the operation took it up.
    fn issued(&self, id: u32) -> u64;
    /// When the fabric had delivered it.
    fn delivered(&self, id: u32) -> u64;
    /// What let it go.
    fn cause(&self, id: u32) -> Cause;
    /// Whether it paid the start of its phase.
    fn paid_phase(&self, id: u32) -> bool;
}

/// Everything needed to trace the path back.
pub(crate) struct Backtrack<'a> {
    pub messages: &'a Messages<'a>,
    pub costs: &'a Costs<'a>,
    pub history: &'a dyn History,
    pub setup: &'a Setup,
}

impl Backtrack<'_> {
    /// The path to `end`, beginning at `first`.
    pub fn path<F: Fabric + ?Sized>(
        &self,
        end: (u64, Cause),
        first: u64,
        fabric: &F,
    ) -> CriticalPath {
        let (at, mut cause) = end;
        let mut path = Segments {
            segments: Vec::new(),
            sums: self.setup.alike.map(|_| [0; 5]),
            at,
            op: None,
        };
        while cause != Cause::NONE {
            let id = cause.0 & !HOW;
            let acknowledged = (path.op).is_some_and(|f| self.waits_for_acknowledgement(f, id));
            let latency_after = acknowledged || cause.0 & HOW == COMPLETION;
            path.op = Some(id);
            self.moments(id, path.at, fabric)
                .cut(latency_after, &mut path);
            cause = self.history.cause(id);
        }
        path.op = None;
        path.fill(first, Spent::Waiting);
        path.path(first)
    }

    fn waits_for_acknowledgement(&self, follower: u32, id: u32) -> bool {
        let edges = self.messages.schedule.after(follower);
        edges.iter().any(|e| e.op() == id && e.is_acknowledged())
    }

    /// The moments of operation `id`, whose time is cut up to `end`.
    fn moments<F: Fabric + ?Sized>(&self, id: u32, end: u64, fabric: &F) -> Moments {
        let op = &self.messages.schedule.ops()[id as usize];
        let issued = self.history.issued(id);
        if !op.is_message() {
            return Moments {
                kind: op.kind,
                issued,
                ..Moments::default()
            };
        }
        let phase = match self.history.paid_phase(id) {
            true => self.costs.phase,
            false => 0,
        };
        let software = issued + self.costs.issue(op, self.messages) + phase;
        let arrival = self.costs.arrival(op, self.messages) + self.costs.landing(id);
        let signalled =
            self.setup.path.signal && matches!(op.kind, OpKind::Put | OpKind::Multicast);
        let offered = software + self.costs.moving(id);
        let delivered = self.history.delivered(id);
        // Some fabrics simulate a message to say how long it takes alone.
        let (latency, serialisation) = match end.min(delivered) > offered {
            true => self.carriage(id, fabric),
            false => (0, 0),
        };
        Moments {
            kind: op.kind,
            issued,
            software,
            offered,
            delivered,
            combine: arrival.saturating_sub(self.costs.receive),
            receive: self.costs.receive,
            answer: self.costs.barrier + if signalled { self.costs.notice } else { 0 },
            signalled,
            latency,
            serialisation,
        }
    }

    /// What the message of `id` takes on an idle fabric: without data, and what the data add.
    fn carriage<F: Fabric + ?Sized>(&self, id: u32, fabric: &F) -> (u64, u64) {
        let message = self.messages.message(id);
        let empty = Msg {
            bytes: 0,
            ..message
        };
        let latency = fabric.quiet(&empty).0;
        (latency, fabric.quiet(&message).0.saturating_sub(latency))
    }
}

/// What the time of one operation is cut by.
#[derive(Clone, Copy, Debug)]
struct Moments {
    kind: OpKind,
    /// When its lane took it up.
    issued: u64,
    /// When the software of the issue was done, but for moving the data.
    software: u64,
    /// When the fabric got it.
    offered: u64,
    /// When the fabric had delivered it.
    delivered: u64,
    /// Combination on arrival.
    combine: u64,
    /// Handling the message before that.
    receive: u64,
    /// What its lane does when it is complete.
    answer: u64,
    /// Whether a signal follows it, without which it is not visible.
    signalled: bool,
    /// Time of the message on an idle fabric, without its data.
    latency: u64,
    /// What its data add to that.
    serialisation: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments {
            kind: OpKind::Fence,
            issued: 0,
            software: 0,
            offered: 0,
            delivered: 0,
            combine: 0,
            receive: 0,
            answer: 0,
            signalled: false,
            latency: 0,
            serialisation: 0,
        }
    }
}

impl Moments {
    /// Cut the time from the issue to `b.at`, latest stretch first. `latency_after`: what came then was the
    /// operation's completion or acknowledgement, not its delivery.
    #[inline]
    fn cut(&self, latency_after: bool, b: &mut Segments) {
        match self.kind {
            OpKind::Local | OpKind::Compute => b.fill(self.issued, Spent::Compute),
            OpKind::Barrier => b.fill(self.issued, Spent::Latency),
            OpKind::Fence => {}
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate | OpKind::Notice => {
                self.cut_after(latency_after, b);
                if b.at > self.offered {
                    let whole = b.at >= self.delivered;
                    b.take(self.serialisation, self.offered, Spent::Serialisation);
                    if whole {
                        b.take(self.latency, self.offered, Spent::Latency);
                    }
                    b.fill(self.offered, Spent::Waiting);
                }
                b.fill(self.software, Spent::Serialisation);
                b.fill(self.issued, Spent::Overhead);
            }
        }
        b.fill(self.issued, Spent::Waiting);
    }

    /// What follows the delivery.
    fn cut_after(&self, latency: bool, b: &mut Segments) {
        if b.at <= self.delivered {
            return;
        }
        if !latency {
            b.take(self.combine, self.delivered, Spent::Compute);
            b.take(self.receive, self.delivered, Spent::Overhead);
        }
        if latency || self.signalled {
            b.take(self.answer, self.delivered, Spent::Overhead);
            b.fill(self.delivered, Spent::Latency);
        } else {
            b.fill(self.delivered, Spent::Waiting);
        }
    }
}

/// Segments, the last one first.
struct Segments {
    segments: Vec<Segment>,
    /// Of many ranks that are alike only what each cause takes, in the order of [`Spent::ALL`].
    sums: Option<[u64; 5]>,
    /// Beginning of the earliest stretch so far.
    at: u64,
    /// Whose time is being cut.
    op: Option<u32>,
}

impl Segments {
    /// A stretch from `from` to the earliest so far was spent so.
    #[inline]
    fn fill(&mut self, from: u64, spent: Spent) {
        if from >= self.at {
            return;
        }
        match &mut self.sums {
            Some(sums) => sums[spent as usize] += self.at - from,
            None => self.segments.push(Segment {
                op: self.op,
                spent,
                from_ps: from,
                to_ps: self.at,
            }),
        }
        self.at = from;
    }

    /// A stretch of at most `length`, not reaching back beyond `limit`.
    #[inline]
    fn take(&mut self, length: u64, limit: u64, spent: Spent) {
        self.fill(limit.max(self.at.saturating_sub(length)), spent);
    }

    /// The path from `first` on; sums become one stretch for each cause.
    fn path(mut self, first: u64) -> CriticalPath {
        self.segments.reverse();
        let mut at = first;
        for (spent, length) in Spent::ALL.into_iter().zip(self.sums.unwrap_or_default()) {
            if length > 0 {
                let (from_ps, to_ps) = (at, at + length);
                self.segments.push(Segment {
                    op: None,
                    spent,
                    from_ps,
                    to_ps,
                });
                at = to_ps;
            }
        }
        CriticalPath {
            segments: self.segments,
        }
    }
}
