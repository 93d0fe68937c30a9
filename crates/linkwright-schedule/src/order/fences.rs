//! Fences and barriers: what a rank issued before one is complete before what it issues after it.

use super::{full_completion, Need};
use crate::accesses::NONE;
use crate::ir::{Op, OpKind, Schedule};

/// A barrier instance: its operations are `first..=last`.
struct BarrierSpan {
    first: u32,
    last: u32,
    set: u32,
}

/// A rank's last fence or barrier, and what it issued since.
struct Since {
    fence: u32,
    issued: Vec<u32>,
}

/// Fences of all ranks; empty until the first one.
#[derive(Default)]
pub(super) struct Fences {
    ranks: Vec<Since>,
    barriers: Vec<BarrierSpan>,
}

/// Whether `op` is a fence or an arrival at a barrier.
pub(super) fn is_fence(op: &Op) -> bool {
    matches!(op.kind, OpKind::Fence | OpKind::Barrier)
}

impl Fences {
    /// There will be fences: collect what has been issued before.
    pub fn begin(&mut self, out: &Schedule) {
        if !self.ranks.is_empty() {
            return;
        }
        let none = || Since {
            fence: NONE,
            issued: Vec::new(),
        };
        self.ranks.resize_with(out.ranks as usize, none);
        let ordered = out.edge_start.len() - 1;
        for (id, op) in (0u32..).zip(&out.ops[..ordered]) {
            // A notice is issued for the sake of somebody else.
            if op.kind != OpKind::Notice {
                self.ranks[op.initiator() as usize].issued.push(id);
            }
        }
    }

    /// What `op` has to wait for.
    #[inline]
    pub fn collect(&mut self, op: &Op, out: &Schedule, needs: &mut Vec<(u32, Need)>) {
        let Some(since) = self.ranks.get_mut(op.initiator() as usize) else {
            return;
        };
        if since.fence != NONE {
            needs.push((since.fence, Need::DeliveredAt(op.from)));
        }
        if is_fence(op) {
            needs.extend((since.issued.drain(..)).map(|id| (id, full_completion(out, id))));
        }
    }

    /// Enter operation `id`.
    #[inline]
    pub fn record(&mut self, id: u32, op: &Op, out: &Schedule) {
        let Some(since) = self.ranks.get_mut(op.initiator() as usize) else {
            return;
        };
        match is_fence(op) {
            true => since.fence = id,
            false => since.issued.push(id),
        }
        if op.kind == OpKind::Barrier {
            let size = out.sets[op.to as usize].len() as u32;
            match self.barriers.last_mut() {
                Some(open) if open.set == op.to && id - open.first < size => open.last = id,
                _ => self.barriers.push(BarrierSpan {
                    first: id,
                    last: id,
                    set: op.to,
                }),
            }
        }
    }

    /// Whether `waiter` has passed a barrier that the initiator of `id` entered after `id`.
    pub fn behind(&self, out: &Schedule, id: u32, waiter: u32) -> bool {
        let Some(since) = self.ranks.get(waiter as usize) else {
            return false;
        };
        let initiator = out.ops[id as usize].initiator();
        self.barriers.iter().rev().any(|barrier| {
            since.fence != NONE
                && since.fence >= barrier.first
                && id < barrier.first
                && out.sets[barrier.set as usize].contains(&initiator)
                && out.sets[barrier.set as usize].contains(&waiter)
        })
    }
}
