//! Lanes: which operation a rank issues next, and what it does when a transfer is complete.
//!
//! A lane is a small sequential program. It issues its operations in id order; the software part
//! of an issue keeps it busy; its [`Issue`] policy bounds the transfers under way. When the
//! completions that it waits for have come, it pays the path's `barrier` once, then `notice_start`
//! for each transfer that the path signals, in order. A batch ends early when all that was issued
//! is complete: waiting for the rest of a batch that waits for one of its own would be a deadlock.

use super::{Engine, Own};
use crate::critical::Cause;
use crate::fabric::Fabric;
use crate::graph::NONE;
use crate::noise;
use crate::rank::combines;
use crate::setup::Issue;
use linkwright_schedule::ir::{Op, OpKind};

/// One queue of a rank.
pub(super) struct Lane {
    /// Next operation to issue.
    pub next: u32,
    /// Transfers of the current batch that are signalled when it is complete.
    pub batch: Vec<u32>,
    /// Transfers issued in the current batch.
    pub issued: u32,
    /// Transfers whose completion has not been seen.
    pub in_flight: u32,
    pub free_at: u64,
    /// Step of the last transfer issued, which has paid the start of its phase; `NONE` before any.
    pub phase: u32,
}

/// Whether `op` takes a place in the issue window.
#[inline]
pub(super) fn is_counted(op: &Op) -> bool {
    matches!(
        op.kind,
        OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate
    )
}

impl<F: Fabric + ?Sized> Engine<'_, F> {
    /// Whether the path announces `op` to its target by a notice.
    #[inline]
    pub(super) fn is_signalled(&self, op: &Op) -> bool {
        self.setup.path.signal && self.messages.is_announced(op)
    }

    /// Whether the lane of `op` does anything when the transfer is complete.
    #[inline]
    pub(super) fn is_tracked(&self, op: &Op) -> bool {
        is_counted(op) && (self.setup.issue != Issue::Unlimited || self.is_signalled(op))
    }

    /// Issue the lane's next operation if it is ready and the lane may.
    #[inline]
    pub(super) fn try_issue(&mut self, index: usize, cause: Cause) {
        let lane = &self.lanes[index];
        if lane.next != NONE && lane.free_at <= self.now {
            self.issue_next(index, cause);
        }
    }

    fn issue_next(&mut self, index: usize, cause: Cause) {
        let lane = &self.lanes[index];
        let id = lane.next;
        let node = &self.graph.nodes[id as usize];
        if !node.is_ready() {
            return;
        }
        let op = &self.messages.schedule.ops()[id as usize];
        let counted = is_counted(op);
        let room = match self.setup.issue {
            Issue::Blocking => lane.issued < 1,
            Issue::Batch(k) => lane.issued < k,
            Issue::Window(k) => lane.in_flight < k,
            Issue::Unlimited => true,
        };
        if !room && counted {
            return;
        }
        let begin = self.begin(op, counted);
        let mut work = self.costs.issue(op, &self.messages) + self.costs.moving(id);
        let batched = matches!(self.setup.issue, Issue::Blocking | Issue::Batch(_));
        let signalled = batched && self.is_signalled(op);
        let next = node.next_in_lane;
        let pays_phase = counted && lane.phase != op.step;
        if pays_phase {
            work += self.costs.phase;
        }
        if let Some(noise) = self.noise.as_ref().filter(|_| op.is_message()) {
            work += noise.sending(&self.messages.message(id), self.fabric);
        }
        let end = self.worked(op.initiator(), begin, work);
        let lane = &mut self.lanes[index];
        lane.next = next;
        if pays_phase {
            lane.phase = op.step;
        }
        if counted {
            lane.issued += 1;
            lane.in_flight += 1;
        }
        if signalled {
            lane.batch.push(id);
        }
        lane.free_at = end;
        if counted && self.setup.serial_starts {
            let start_up = self.fabric.network().start_up(&self.messages.message(id));
            self.starter[op.initiator() as usize] = end + start_up.0;
        }
        if combines(op) {
            self.combiner[op.initiator() as usize] = end;
        }
        self.taken_up(id, cause, pays_phase);
        self.push(end, Own::Issued(id));
    }

    /// When its rank begins with what a lane takes up now.
    #[inline]
    fn begin(&self, op: &Op, counted: bool) -> u64 {
        let rank = op.initiator() as usize;
        match counted {
            true if self.setup.serial_starts => self.now.max(self.starter[rank]),
            false if combines(op) => self.now.max(self.combiner[rank]),
            _ => self.now,
        }
    }

    /// Transfer `id` is complete in the sense of the path: its lane reacts.
    pub(super) fn completed(&mut self, id: u32, op: &Op) {
        if !is_counted(op) {
            return;
        }
        self.busy_until(op.initiator(), self.now, Cause::completion(id));
        if !self.is_tracked(op) {
            return;
        }
        let index = self.graph.lane(op);
        let signalled = self.is_signalled(op);
        let lane = &mut self.lanes[index];
        lane.in_flight -= 1;
        match self.setup.issue {
            Issue::Blocking | Issue::Batch(_) if lane.in_flight > 0 => return,
            Issue::Window(_) | Issue::Unlimited if signalled => lane.batch.push(id),
            _ => {}
        }
        let mut signals = std::mem::take(&mut lane.batch);
        lane.issued = 0;
        let (rank, free_at) = (op.initiator(), lane.free_at);
        let seen = self.now.max(free_at) + self.unseen(noise::COMPLETION, id);
        let mut at = self.worked(rank, seen, self.costs.barrier);
        for signal in signals.drain(..) {
            at = self.worked(rank, at, self.costs.notice);
            self.push(at, Own::Signal(signal));
        }
        let lane = &mut self.lanes[index];
        (lane.free_at, lane.batch) = (at, signals);
        self.busy_until(op.initiator(), at, Cause::completion(id));
        match at > self.now {
            true => self.push(at, Own::Free(index as u32, Cause::completion(id))),
            false => self.try_issue(index, Cause::completion(id)),
        }
    }
}
