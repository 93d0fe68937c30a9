//! Arrivals: what follows from the completions of a message.
//!
//! *Source free* and *acknowledged* concern the initiator: any of its operations that waits for
//! them goes on, and the one that the path calls the completion concerns its lane. *Delivered*
//! concerns the target, which handles its arrivals one after another; then the operation is
//! *visible* there, and the operations that wait for that go on. On a path with signals a transfer becomes
//! visible only by the delivery of its signal.

use super::lanes::is_counted;
use super::{targets, Engine, Own};
use crate::critical::Cause;
use crate::fabric::{Done, Event, Fabric, Times};
use crate::graph::{Wait, NONE};
use crate::messages::SIGNAL;
use crate::noise;
use crate::rank::completes;
use linkwright_core::machine::Completion;
use linkwright_schedule::ir::{Op, OpKind};

impl<F: Fabric + ?Sized> Engine<'_, F> {
    /// Note those completions of an answer that matter to anyone.
    pub(super) fn answered(&mut self, handle: u32, times: Times) {
        self.push(times.delivered.0, Own::Told(handle, Event::Delivered));
        if handle & SIGNAL != 0 {
            return;
        }
        let (op, node) = (self.op(handle), self.graph.nodes[handle as usize]);
        let completion = self.setup.path.completion;
        let tracked = self.is_tracked(op);
        if node.is_awaited(Wait::SourceFree) || tracked && completion == Completion::SourceFree {
            self.push(times.source_free.0, Own::Told(handle, Event::SourceFree));
        }
        if node.is_awaited(Wait::Acknowledged) || tracked && completion == Completion::Acknowledged
        {
            self.push(times.acknowledged.0, Own::Told(handle, Event::Acknowledged));
        }
        if is_counted(op) && !tracked {
            let at = completes(completion, &times);
            self.busy_until(op.initiator(), at, Cause::completion(handle));
        }
    }

    /// One of the three completions of a message.
    pub(super) fn completion(&mut self, done: Done) {
        let (id, is_signal) = (done.op & !SIGNAL, done.op & SIGNAL != 0);
        let op = self.op(id);
        let completion = self.setup.path.completion;
        match done.event {
            Event::Delivered => {
                if !is_signal {
                    self.delivered(id);
                    if completion == Completion::Delivered && self.is_last_target(id, op) {
                        self.completed(id, op);
                    }
                }
                if is_signal || !self.is_signalled(op) {
                    self.arrived(id, op, done.target);
                }
            }
            _ if is_signal => {}
            Event::SourceFree => {
                self.satisfy(id, Wait::SourceFree, NONE);
                if completion == Completion::SourceFree {
                    self.completed(id, op);
                }
            }
            Event::Acknowledged => {
                self.satisfy(id, Wait::Acknowledged, NONE);
                if completion == Completion::Acknowledged {
                    self.completed(id, op);
                }
            }
        }
    }

    /// Whether a delivery of `op` was the last of its targets.
    fn is_last_target(&mut self, id: u32, op: &Op) -> bool {
        let targets = targets(self.messages.schedule, op) as u32;
        if targets == 1 {
            return true;
        }
        let known = self.multicasts.iter().position(|m| m.0 == id);
        let at = known.unwrap_or(self.multicasts.len());
        if known.is_none() {
            self.multicasts.push((id, targets));
        }
        self.multicasts[at].1 -= 1;
        let last = self.multicasts[at].1 == 0;
        if last {
            self.multicasts.swap_remove(at);
        }
        last
    }

    /// Participant that is target number `target` of `op`.
    fn target(&self, op: &Op, target: u32) -> u32 {
        match op.kind {
            OpKind::Multicast | OpKind::Aggregate => {
                self.messages.schedule.targets(op)[target as usize]
            }
            OpKind::Put | OpKind::Get | OpKind::Notice => op.to,
            _ => op.from,
        }
    }

    /// The target handles an arrival when it has handled those before.
    fn arrived(&mut self, id: u32, op: &Op, target: u32) {
        let participant = self.target(op, target) as usize;
        let mut at = self.now;
        if let Some(&handled) = self.handled.get(participant) {
            let cost = self.costs.arrival(op, &self.messages) + self.costs.landing(id);
            let seen = at.max(handled) + self.unseen(noise::ARRIVAL, id);
            at = self.worked(participant as u32, seen, cost);
            self.handled[participant] = at;
        }
        match at > self.now {
            true => self.push(at, Own::Visible(id, target)),
            false => self.visible(id, target),
        }
    }

    pub(super) fn visible(&mut self, id: u32, target: u32) {
        let op = self.op(id);
        let participant = self.target(op, target);
        self.unfinished -= 1;
        if let Some(times) = &mut self.recorded {
            times.visible[id as usize] = self.now;
        }
        if participant < self.messages.schedule.ranks {
            self.busy_until(participant, self.now, Cause::edge(id));
        }
        let only = match op.kind {
            OpKind::Multicast | OpKind::Aggregate => participant,
            _ => NONE,
        };
        self.satisfy(id, Wait::Visible, only);
    }

    /// Let go who waited for this completion of `id`, or only those at rank `only`.
    pub(super) fn satisfy(&mut self, id: u32, wait: Wait, only: u32) {
        if wait != Wait::Visible && !self.graph.nodes[id as usize].is_awaited(wait) {
            return;
        }
        for position in self.graph.successors(id) {
            let Some(successor) = self.graph.successor(position, wait) else {
                continue;
            };
            let op = self.op(successor);
            if only != NONE && op.initiator() != only {
                continue;
            }
            let node = &mut self.graph.nodes[successor as usize];
            node.pending -= 1;
            if node.is_ready() {
                let lane = self.graph.lane(op);
                if self.lanes[lane].next == successor {
                    self.try_issue(lane, Cause::edge(id));
                }
            }
        }
    }
}
