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
use crate::setup::Run;
use linkwright_schedule::ir::{Op, OpKind};

/// What a stretch of the critical path was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spent {
    /// Distance: an empty message on an idle fabric, acknowledgements, signals.
    Latency,
    /// Bytes: what they add on an idle fabric.
    Serialisation,
    /// Others: links and ports in use, arrivals handled in turn, ranks that come late.
    Waiting,
    /// Software: start-ups, receptions, checks of completions.
    Overhead,
    /// Arithmetic and local copies.
    Compute,
}

impl Spent {
    /// All of them, in the order of [`CriticalPath::shares`].
    pub const ALL: [Spent; 5] = [
        Spent::Latency,
        Spent::Serialisation,
        Spent::Waiting,
        Spent::Overhead,
        Spent::Compute,
    ];

    /// Name in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Spent::Latency => "latency",
            Spent::Serialisation => "serialisation",
            Spent::Waiting => "waiting",
            Spent::Overhead => "overhead",
            Spent::Compute => "compute",
        }
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

    /// A completion that freed its lane.
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

/// Everything needed to walk back.
pub(crate) struct Walk<'a> {
    pub messages: &'a Messages<'a>,
    pub costs: &'a Costs<'a>,
    pub history: &'a dyn History,
    pub run: &'a Run,
}

impl Walk<'_> {
    /// The path to `end`, beginning at `first`.
    pub fn back<F: Fabric + ?Sized>(
        &self,
        end: (u64, Cause),
        first: u64,
        fabric: &F,
    ) -> CriticalPath {
        let (mut at, mut cause) = end;
        let mut backwards = Backwards {
            segments: Vec::new(),
            at,
        };
        let mut follower = None;
        while cause != Cause::NONE {
            let id = cause.0 & !HOW;
            let issued = self.history.issued(id);
            let acknowledged = follower.is_some_and(|f| self.waits_for_acknowledgement(f, id));
            let latency_after = acknowledged || cause.0 & HOW == COMPLETION;
            self.cut(id, issued, latency_after, fabric, &mut backwards);
            backwards.fill(issued, Some(id), Spent::Waiting);
            follower = Some(id);
            at = issued;
            cause = self.history.cause(id);
        }
        if at > first {
            backwards.fill(first, None, Spent::Waiting);
        }
        backwards.segments.reverse();
        CriticalPath {
            segments: backwards.segments,
        }
    }

    fn waits_for_acknowledgement(&self, follower: u32, id: u32) -> bool {
        let edges = self.messages.schedule.after(follower);
        edges.iter().any(|e| e.op() == id && e.is_acknowledged())
    }

    /// Cut the time of operation `id`, from its issue to `b.at`, latest stretch first.
    fn cut<F: Fabric + ?Sized>(
        &self,
        id: u32,
        issued: u64,
        latency_after: bool,
        fabric: &F,
        b: &mut Backwards,
    ) {
        let op = &self.messages.schedule.ops()[id as usize];
        match op.kind {
            OpKind::Local | OpKind::Compute => b.fill(issued, Some(id), Spent::Compute),
            OpKind::Barrier => b.fill(issued, Some(id), Spent::Latency),
            OpKind::Fence => {}
            _ => {
                let paid = self.history.paid_phase(id);
                let phase = if paid { self.costs.phase } else { 0 };
                let software = issued + self.costs.issue(op, self.messages) + phase;
                let offered = software + self.costs.moving(id);
                let delivered = self.history.delivered(id);
                self.cut_after(id, op, delivered, latency_after, b);
                if b.at > offered {
                    self.cut_carriage(id, offered, b.at >= delivered, fabric, b);
                }
                b.fill(software, Some(id), Spent::Serialisation);
                b.fill(issued, Some(id), Spent::Overhead);
            }
        }
    }

    /// What follows the delivery.
    fn cut_after(&self, id: u32, op: &Op, delivered: u64, latency: bool, b: &mut Backwards) {
        if b.at <= delivered {
            return;
        }
        let signal = self.run.path.signal && matches!(op.kind, OpKind::Put | OpKind::Multicast);
        let receive = self.costs.receive;
        if !latency {
            let arrival = self.costs.arrival(op, self.messages) + self.costs.landing(id);
            let combine = arrival.saturating_sub(receive);
            b.take(combine, delivered, id, Spent::Compute);
            b.take(receive, delivered, id, Spent::Overhead);
        }
        if latency || signal {
            let notice = if signal { self.costs.notice } else { 0 };
            b.take(self.costs.barrier + notice, delivered, id, Spent::Overhead);
            b.fill(delivered, Some(id), Spent::Latency);
        } else {
            b.fill(delivered, Some(id), Spent::Waiting);
        }
    }

    /// What happens in the fabric.
    fn cut_carriage<F: Fabric + ?Sized>(
        &self,
        id: u32,
        offered: u64,
        whole: bool,
        fabric: &F,
        b: &mut Backwards,
    ) {
        let message = self.messages.message(id);
        let empty = fabric.quiet(&Msg {
            bytes: 0,
            ..message
        });
        let full = fabric.quiet(&message);
        b.take(
            full.0.saturating_sub(empty.0),
            offered,
            id,
            Spent::Serialisation,
        );
        if whole {
            b.take(empty.0, offered, id, Spent::Latency);
        }
        b.fill(offered, Some(id), Spent::Waiting);
    }
}

/// Segments, written from the end to the beginning.
struct Backwards {
    segments: Vec<Segment>,
    /// Beginning of the earliest segment so far.
    at: u64,
}

impl Backwards {
    /// A segment of at most `length`, not reaching back beyond `limit`.
    fn take(&mut self, length: u64, limit: u64, op: u32, spent: Spent) {
        self.fill(limit.max(self.at.saturating_sub(length)), Some(op), spent);
    }

    /// A segment from `from` to the earliest segment so far.
    fn fill(&mut self, from: u64, op: Option<u32>, spent: Spent) {
        if from < self.at {
            self.segments.push(Segment {
                op,
                spent,
                from_ps: from,
                to_ps: self.at,
            });
            self.at = from;
        }
    }
}
