//! Fences and barriers: what a rank issued before one is complete before what it issues after it.
//!
//! A fence is an operation of its own, or stands unseen before a *fenced* one, which then waits itself for
//! everything before. What comes later in the same lane is behind it, for a lane issues in order; other lanes
//! wait for the same.

use super::need::{full_completion, Need};
use crate::accesses::NONE;
use crate::ir::{Op, OpKind, Schedule};

/// A barrier instance: its operations are `first..=last`.
struct BarrierSpan {
    first: u32,
    last: u32,
    set: u32,
}

/// A rank's last fence or barrier, and what it issued since.
struct LastFence {
    fence: u32,
    issued: Vec<u32>,
    /// What the last fenced operation waited for, and its lane.
    held: Vec<u32>,
    lane: u8,
}

/// Fences of all ranks; empty until the first one.
#[derive(Default)]
pub(super) struct Fences {
    ranks: Vec<LastFence>,
    barriers: Vec<BarrierSpan>,
}

/// Whether there is a fence before `op`, or it is one.
pub(super) fn is_fenced(op: &Op) -> bool {
    op.fenced || is_fence(op)
}

/// Whether `op` is a fence or an arrival at a barrier.
fn is_fence(op: &Op) -> bool {
    matches!(op.kind, OpKind::Fence | OpKind::Barrier)
}

impl Fences {
    /// There will be fences: collect what has been issued before.
    pub fn begin(&mut self, out: &Schedule) {
        if !self.ranks.is_empty() {
            return;
        }
        let none = || LastFence {
            fence: NONE,
            issued: Vec::new(),
            held: Vec::new(),
            lane: 0,
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
        let complete = |&id: &u32| (id, full_completion(out, id));
        if is_fence(op) {
            needs.extend(since.issued.drain(..).map(|id| complete(&id)));
            since.held.clear();
        } else if op.fenced {
            since.held.clear();
            std::mem::swap(&mut since.held, &mut since.issued);
            since.lane = op.lane;
            needs.extend(since.held.iter().map(complete));
        } else if op.lane != since.lane {
            needs.extend(since.held.iter().map(complete));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;
    use crate::collectives::find;
    use crate::text;
    use crate::transforms::{pipeline, stripe};

    /// Whether every message of a rank waits, itself or before it in its lane, for all of the step before.
    fn is_step_by_step(schedule: &Schedule) -> bool {
        let messages = |id: &u32| schedule.ops()[*id as usize].is_message();
        let ids: Vec<u32> = (0..schedule.ops().len() as u32).filter(messages).collect();
        ids.iter().all(|&later| {
            let op = &schedule.ops()[later as usize];
            let mut before = ids.iter().filter(|&&id| {
                let earlier = &schedule.ops()[id as usize];
                (earlier.from, earlier.step + 1) == (op.from, op.step)
            });
            before.all(|&earlier| {
                (earlier + 1..=later).any(|waiter| {
                    let at = &schedule.ops()[waiter as usize];
                    let waits = schedule.after(waiter).iter();
                    let mut known = waits.filter(|e| e.op() == earlier && e.is_acknowledged());
                    (at.from, at.lane) == (op.from, op.lane) && known.next().is_some()
                })
            })
        })
    }

    /// Two messages to different ranks, the second of another lane and with these options, read from a text without
    /// edges.
    fn in_two_steps(options: &str) -> Schedule {
        let text = format!(
            "linkwright-schedule 1\nranks 3\nelements 3\nspec pattern\nbuffer output 3\nedges infer\n\
             step 0\nput 0:output[0] -> 1:output[0] replace\n\
             step 1\nput 0:output[0] -> 2:output[0] replace lane=1{options}\nend\n"
        );
        text::parse(&text).unwrap()
    }

    #[test]
    fn a_fenced_message_comes_after_all_of_the_step_before_in_every_lane() {
        let make = |key: &str| (find(key).unwrap().build)(&Shape::new(5, 40)).unwrap();
        let pairwise = make("alltoall/pairwise");
        assert!(is_step_by_step(&pairwise));
        assert!(is_step_by_step(&stripe(&pairwise, 2).unwrap()));
        assert!(is_step_by_step(&pipeline(&pairwise, 2).unwrap()));
        let read = text::parse(&text::print(&pairwise)).unwrap();
        assert!(is_step_by_step(&stripe(&read, 3).unwrap()));
        assert!(is_step_by_step(&in_two_steps(" fenced")));
        assert!(!is_step_by_step(&in_two_steps("")), "it does not wait");
        assert!(
            !is_step_by_step(&make("allgather/ring")),
            "it does not wait"
        );
    }
}
