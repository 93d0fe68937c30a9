//! The order-free pass: a simulation without a queue, for fabrics that know all times of a message at once.
//!
//! Operation ids are a topological order, so one pass over the operations by id meets every completion
//! before the operations that wait for it:
//!
//! ```text
//!   ready(i)   = max(lane free, completions of what i waits for)
//!   leaves(i)  = ready(i) + software
//!   arrives(i) = fabric(leaves(i))          visible(i) = max(arrives(i), target free) + receive
//! ```
//!
//! This is the longest path through the schedule; nothing is sorted and no successors are kept. It gives
//! the engine's times exactly, provided that nothing depends on what the pass has not seen yet:
//!
//! - the answer of the fabric depends on earlier messages of the same source only
//!   ([`Character::order_free`](crate::fabric::Character::order_free), or all ranks do the same at the same instants), and
//!   a rank sends from one lane, so messages of a source leave by id;
//! - arrivals at a rank come by id, or handling them costs nothing;
//! - a batch ends before or after an issue, not at the same instant.
//!
//! Where a schedule breaks one of these ([`Pass`] finds out on the way), or has gets, multicasts,
//! barriers, signals or starts of phases, the pass gives up and the engine does it all again. Where several things let an
//! operation go at the same instant, the critical path may name another of them than the engine does.

mod times;

use crate::critical::{Backtrack, Cause, History};
use crate::error::SimError;
use crate::fabric::{Fabric, Msg};
use crate::graph::waits_for;
use crate::outcome::{Simulation, Totals};
use crate::prepared::Prepared;
use crate::rank::{completes, End, Lane, Rank, Undecided, MESSAGES};
use crate::setup::Issue;
use linkwright_core::TimePs;
use linkwright_schedule::ir::{Combine, Edge, Op, OpKind};
use times::{Kept, Moments, NotKept, Times};

/// A duration that depends on a size, worked out again only where the size is another.
#[derive(Clone, Copy, Default)]
struct BySize {
    bytes: u64,
    duration: Option<u64>,
}

impl BySize {
    #[inline]
    fn of(&mut self, bytes: u64, duration: impl FnOnce() -> u64) -> u64 {
        match self.duration {
            Some(known) if self.bytes == bytes => known,
            _ => {
                self.bytes = bytes;
                *self.duration.insert(duration())
            }
        }
    }
}

/// Why the pass ended early.
enum Stop {
    Undecided,
    NotKept(Kept),
    Error(Box<SimError>),
}

impl From<Undecided> for Stop {
    fn from(_: Undecided) -> Self {
        Stop::Undecided
    }
}

impl From<NotKept> for Stop {
    fn from(more: NotKept) -> Self {
        Stop::NotKept(more.0)
    }
}

/// When a lane took up an operation, when it was through, and what let it.
struct Taken {
    ready: u64,
    leaves: u64,
    cause: Cause,
}

struct Pass<'a, F: ?Sized> {
    prepared: &'a Prepared<'a>,
    fabric: &'a mut F,
    ranks: Vec<Rank>,
    times: Times,
    /// Combining and copying, locally and on arrival.
    combining: BySize,
    copying: BySize,
    end: End,
    totals: Totals,
}

/// The simulation, or `None` where the engine has to do it; the fabric then holds half of it.
pub(crate) fn simulate<F: Fabric + ?Sized>(
    prepared: &Prepared<'_>,
    fabric: &mut F,
) -> Result<Option<Simulation>, SimError> {
    let setup = prepared.setup;
    let phases = setup.path.phase_start > TimePs::ZERO;
    if setup.path.signal || phases || matches!(setup.issue, Issue::Window(k) if k > 1) {
        return Ok(None);
    }
    let mut kept = Kept::default();
    loop {
        let operations = prepared.messages.schedule.ops().len();
        fabric.reset(&setup.conditions(&prepared.sets));
        let mut pass = Pass {
            prepared,
            fabric: &mut *fabric,
            ranks: prepared
                .start
                .iter()
                .map(|&at| Rank::arriving(at))
                .collect(),
            times: Times::new(operations, kept, setup.record_operations),
            combining: BySize::default(),
            copying: BySize::default(),
            end: (0, Cause::NONE),
            totals: Totals::default(),
        };
        match pass.run() {
            Ok(()) => return Ok(Some(pass.outcome())),
            Err(Stop::Undecided) => return Ok(None),
            Err(Stop::NotKept(more)) => kept = more,
            Err(Stop::Error(error)) => return Err(*error),
        }
    }
}

impl<F: Fabric + ?Sized> Pass<'_, F> {
    fn run(&mut self) -> Result<(), Stop> {
        let schedule = self.prepared.messages.schedule;
        let stop_at = self.prepared.stop_at();
        for (id, op, edges) in schedule.ops_with_edges() {
            match op.kind {
                OpKind::Put | OpKind::Notice => self.message(id, op, edges)?,
                OpKind::Local | OpKind::Compute | OpKind::Fence => self.local(id, op, edges)?,
                OpKind::Get | OpKind::Multicast | OpKind::Aggregate | OpKind::Barrier => {
                    return Err(Stop::Undecided)
                }
            }
            if self.end.0 > stop_at || self.prepared.setup.abandoned(id) {
                let at = TimePs(self.end.0);
                return Err(Stop::Error(Box::new(SimError::Stopped { at })));
            }
        }
        for rank in &mut self.ranks {
            rank.end_batch(self.prepared.costs.barrier, &mut self.end);
        }
        Ok(())
    }

    /// A put or a notice.
    #[inline]
    fn message(&mut self, id: u32, op: &Op, edges: &[Edge]) -> Result<(), Stop> {
        let Prepared {
            messages, costs, ..
        } = self.prepared;
        self.ranks[op.from as usize].sends_from(op.lane)?;
        let waits = self.waits(id, op, edges)?;
        let taken = self.take_up(id, op, waits, MESSAGES, costs.sending(op, messages))?;
        let at = self.send(id, op, taken.ready, taken.leaves)?;
        self.times.push(taken.cause, at);
        Ok(())
    }

    /// Arithmetic, a copy or a fence.
    #[inline]
    fn local(&mut self, id: u32, op: &Op, edges: &[Edge]) -> Result<(), Stop> {
        let Prepared {
            messages, costs, ..
        } = self.prepared;
        let duration = match (op.kind, op.combine) {
            (OpKind::Compute, _) => costs.compute(op, messages),
            (OpKind::Local, combine) => {
                let bytes = messages.bytes(op);
                let known = match combine {
                    Combine::Reduce => &mut self.combining,
                    Combine::Replace => &mut self.copying,
                };
                known.of(bytes, || costs.local(combine, bytes))
            }
            _ => 0,
        };
        let index = self.ranks[op.from as usize].lane_of(op)?;
        let waits = self.waits(id, op, edges)?;
        let taken = self.take_up(id, op, waits, index, duration)?;
        let (rank, leaves) = (&mut self.ranks[op.from as usize], taken.leaves);
        rank.busy_until(leaves, &mut self.end, || Cause::edge(id));
        let at = Moments {
            issued: taken.ready,
            offered: leaves,
            source_free: leaves,
            delivered: leaves,
            waited: 0,
            visible: leaves,
            acknowledged: leaves,
        };
        self.times.push(taken.cause, at);
        Ok(())
    }

    /// Let a lane of its rank take up `op` as soon as its `waits` are over; it keeps the lane for `duration`.
    #[inline]
    fn take_up(
        &mut self,
        id: u32,
        op: &Op,
        waits: (u64, Cause),
        index: usize,
        duration: u64,
    ) -> Result<Taken, Undecided> {
        let rank = &mut self.ranks[op.from as usize];
        if index == MESSAGES {
            let policy = (self.prepared.setup.issue, self.prepared.costs.barrier);
            rank.make_room(op, waits.0, policy, &mut self.end)?;
        }
        let (ready, cause) = rank.ready(index, waits);
        let leaves = ready + duration;
        rank.lanes[index] = Lane {
            free_at: leaves,
            cause: Cause::issue(id),
        };
        Ok(Taken {
            ready,
            leaves,
            cause,
        })
    }

    /// When the last of what `id` waits for is over, and what that is.
    #[inline]
    fn waits(&self, id: u32, op: &Op, edges: &[Edge]) -> Result<(u64, Cause), Stop> {
        let schedule = self.prepared.messages.schedule;
        let (mut latest, mut cause) = (0, Cause::NONE);
        for &edge in edges {
            let Some(wait) = waits_for(schedule, edge, op.from) else {
                return Err(Stop::Error(Box::new(SimError::Invisible {
                    op: id,
                    rank: op.from,
                    earlier: edge.op(),
                })));
            };
            let at = self.times.completion(edge.op(), wait)?;
            if at >= latest {
                (latest, cause) = (at, Cause::edge(edge.op()));
            }
        }
        Ok((latest, cause))
    }

    #[inline]
    fn send(&mut self, id: u32, op: &Op, issued: u64, leaves: u64) -> Result<Moments, Stop> {
        let messages = &self.prepared.messages;
        let message = Msg {
            bytes: messages.bytes(op),
            ..messages.without_data(id, op)
        };
        let network = self.fabric.network();
        if let Some(problem) = network.no_route(message.from, message.to, message.network) {
            return Err(Stop::Error(Box::new(SimError::NoRoute { op: id, problem })));
        }
        self.totals.count(&message, self.fabric, messages);
        let answer = self.fabric.answer(TimePs(leaves), &message);
        let times = answer.ok_or(Undecided)?;
        let (waited, visible) = self.arrive(id, op, message.bytes, leaves, times.delivered.0)?;
        let at = Moments {
            issued,
            offered: leaves,
            source_free: times.source_free.0,
            delivered: times.delivered.0,
            waited,
            visible,
            acknowledged: times.acknowledged.0,
        };
        if op.kind == OpKind::Put {
            let setup = self.prepared.setup;
            let completes = completes(setup.path.completion, &times);
            self.ranks[op.from as usize].complete(id, completes, setup.issue, &mut self.end);
        }
        Ok(at)
    }

    /// The target handles an arrival when it has handled those before: how long that one waits, and when it is
    /// visible.
    #[inline]
    fn arrive(
        &mut self,
        id: u32,
        op: &Op,
        bytes: u64,
        sent: u64,
        at: u64,
    ) -> Result<(u64, u64), Undecided> {
        let costs = &self.prepared.costs;
        let Some(rank) = self.ranks.get_mut(op.to as usize) else {
            return Ok((0, at)); // a memory
        };
        let combining = match op.combine {
            Combine::Reduce => self.combining.of(bytes, || costs.local(op.combine, bytes)),
            Combine::Replace => 0,
        };
        let handling = costs.receive + combining;
        let visible = rank.receiver.handle(at, sent, handling)?;
        rank.busy_until(visible, &mut self.end, || Cause::edge(id));
        Ok((visible - at - handling, visible))
    }

    fn outcome(self) -> Simulation {
        let start = self.prepared.start.clone();
        let first = start.iter().copied().min().unwrap_or(0);
        let backtrack = Backtrack {
            messages: &self.prepared.messages,
            costs: &self.prepared.costs,
            history: &self,
            setup: self.prepared.setup,
        };
        let critical = backtrack.path(self.end, first, &*self.fabric);
        Simulation {
            makespan: TimePs(self.end.0.max(first) - first),
            start,
            finish: self.ranks.iter().map(|rank| rank.finish).collect(),
            runs: Vec::new(),
            totals: self.totals,
            links: self.fabric.links().clone(),
            critical,
            operations: self.times.recorded(),
        }
    }
}

impl<F: Fabric + ?Sized> History for Pass<'_, F> {
    fn issued(&self, id: u32) -> u64 {
        self.times.issued(id)
    }

    fn delivered(&self, id: u32) -> u64 {
        let Prepared {
            messages, costs, ..
        } = self.prepared;
        let op = &messages.schedule.ops()[id as usize];
        let handling = match op.to < messages.schedule.ranks {
            true => costs.arrival(op, messages),
            false => 0, // a memory
        };
        self.times.delivered(id, handling)
    }

    fn cause(&self, id: u32) -> Cause {
        self.times.cause(id)
    }

    fn paid_phase(&self, _: u32) -> bool {
        false // such paths are left to the engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabrics::loggp::{LogGp, Parameters};
    use crate::setup::Setup;
    use linkwright_core::machine::Path;
    use linkwright_core::BytesPerSec;
    use linkwright_schedule::builder::Shape;
    use linkwright_schedule::collectives::find;

    /// Whether the pass does it alone, on 8 ranks.
    fn suits(algorithm: &str, receive_ns: u64, issue: Issue) -> bool {
        let schedule = (find(algorithm).unwrap().build)(&Shape::new(8, 800)).unwrap();
        let path = Path {
            receive: TimePs::from_ns(receive_ns),
            fused_combine: true,
            ..Path::default()
        };
        let setup = Setup {
            issue,
            ..Setup::new(8, path)
        };
        let prepared = Prepared::new(&schedule, &setup).unwrap();
        let parameters = Parameters {
            latency: TimePs::from_ns(1000),
            gap: TimePs::from_ns(100),
            bandwidth: BytesPerSec(1e9),
        };
        let mut fabric = LogGp::new(parameters, 8);
        let found = simulate(&prepared, &mut fabric).unwrap();
        found.is_some()
    }

    #[test]
    fn steps_in_order_need_no_queue() {
        for issue in [Issue::Blocking, Issue::Unlimited, Issue::Batch(4)] {
            assert!(suits("allreduce/ring", 200, issue), "{issue}");
            assert!(
                suits("allreduce/recursive_doubling_latency", 200, issue),
                "{issue}"
            );
            assert!(suits("alltoall/pairwise", 0, issue), "{issue}");
        }
    }

    #[test]
    fn what_it_cannot_tell_is_left_to_the_engine() {
        assert!(
            !suits("allreduce/ring", 200, Issue::Window(2)),
            "freed one by one"
        );
        assert!(
            !suits("broadcast/multicast", 0, Issue::Blocking),
            "several targets"
        );
    }
}
