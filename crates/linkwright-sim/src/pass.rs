//! The order-free pass: a simulation without a queue, for fabrics that know all times of a message at once.
//!
//! Operation ids are a topological order, so one walk over the operations by id meets every completion
//! before whoever waits for it:
//!
//! ```text
//!   ready(i)   = max(lane free, completions of what i waits for)
//!   leaves(i)  = ready(i) + software
//!   arrives(i) = fabric(leaves(i))          visible(i) = max(arrives(i), target free) + receive
//! ```
//!
//! This is the longest path through the schedule; nothing is sorted and no successors are kept. It gives
//! the engine's times exactly where nothing depends on what the walk has not seen:
//!
//! - the answer of the fabric depends on earlier messages of the same source only
//!   ([`Fabric::order_free`]), and a rank sends from one lane, so messages of a source leave by id;
//! - arrivals at a rank come by id, or handling them costs nothing;
//! - a batch ends before or after an issue, not at the same instant.
//!
//! Where a schedule breaks one of these ([`Pass`] finds out on the way), or has gets, multicasts,
//! barriers, signals or starts of phases, the pass gives up and the engine does it all again. Where several things let an
//! operation go at the same instant, the critical path may name another of them than the engine does.

use crate::costs::Costs;
use crate::critical::{Cause, Walk};
use crate::error::SimError;
use crate::fabric::Fabric;
use crate::graph::{waits_for, Wait};
use crate::messages::Messages;
use crate::outcome::{OperationTimes, Simulation, Totals};
use crate::setup::{Issue, Run};
use linkwright_core::machine::Completion;
use linkwright_core::TimePs;
use linkwright_schedule::ir::{Op, OpKind, COMPUTE_LANE};

/// One queue of a rank.
#[derive(Clone, Copy)]
struct Lane {
    free_at: u64,
    /// What freed it.
    cause: Cause,
    /// Transfers of the batch under way, when the last of them completes, and which that is.
    batch: u32,
    completes: u64,
    last: u32,
}

/// The receiving side of a rank.
#[derive(Clone, Copy)]
struct Receiver {
    /// When it has handled its arrivals so far: none before it is there itself.
    handled: u64,
    /// The latest arrival and when it was sent: ties are handled in the order of sending.
    latest: (u64, u64),
    in_order: bool,
    /// Whether handling any arrival took time.
    busy: bool,
}

/// The walk gave up: the engine has to do it.
struct Unsuitable;

enum Stop {
    Unsuitable,
    Error(SimError),
}

impl From<Unsuitable> for Stop {
    fn from(_: Unsuitable) -> Self {
        Stop::Unsuitable
    }
}

struct Pass<'a, F: ?Sized> {
    messages: &'a Messages<'a>,
    costs: &'a Costs<'a>,
    run: &'a Run,
    fabric: &'a mut F,
    /// Two lanes per rank: messages, and arithmetic.
    lanes: Vec<Lane>,
    /// Lane of the schedule from which each rank sends, once known.
    sends_from: Vec<Option<u8>>,
    receivers: Vec<Receiver>,
    times: OperationTimes,
    source_free: Vec<u64>,
    /// Empty where nobody waits for one.
    acknowledged: Vec<u64>,
    causes: Vec<u32>,
    finish: Vec<u64>,
    end: (u64, Cause),
    totals: Totals,
}

/// The simulation, or `None` where the engine has to do it; the fabric then holds half of it.
pub(crate) fn simulate<F: Fabric + ?Sized>(
    messages: &Messages<'_>,
    costs: &Costs<'_>,
    run: &Run,
    start: &[u64],
    fabric: &mut F,
) -> Result<Option<Simulation>, SimError> {
    let phases = run.path.phase_start > TimePs::ZERO;
    if run.path.signal || phases || matches!(run.issue, Issue::Window(k) if k > 1) {
        return Ok(None);
    }
    let operations = messages.schedule.ops().len();
    let ids = 0..operations as u32;
    let mut edges = ids.flat_map(|id| messages.schedule.after(id));
    let acknowledged = match edges.any(|edge| edge.is_acknowledged()) {
        true => operations,
        false => 0,
    };
    let lane = |free_at| Lane {
        free_at,
        cause: Cause::NONE,
        batch: 0,
        completes: 0,
        last: 0,
    };
    let receiver = |handled| Receiver {
        handled,
        latest: (0, 0),
        in_order: true,
        busy: false,
    };
    let mut pass = Pass {
        messages,
        costs,
        run,
        fabric,
        lanes: start.iter().flat_map(|&at| [lane(at), lane(at)]).collect(),
        sends_from: vec![None; start.len()],
        receivers: start.iter().map(|&at| receiver(at)).collect(),
        times: OperationTimes::new(operations, true),
        source_free: vec![0; operations],
        acknowledged: vec![0; acknowledged],
        causes: vec![0; operations],
        finish: start.to_vec(),
        end: (0, Cause::NONE),
        totals: Totals::default(),
    };
    match pass.walk() {
        Ok(()) => Ok(Some(pass.outcome(start))),
        Err(Stop::Unsuitable) => Ok(None),
        Err(Stop::Error(error)) => Err(error),
    }
}

impl<F: Fabric + ?Sized> Pass<'_, F> {
    fn walk(&mut self) -> Result<(), Stop> {
        let schedule = self.messages.schedule;
        for (id, op) in (0u32..).zip(schedule.ops()) {
            let index = self.lane(op)?;
            let (waits, edge) = self.waits(id, op)?;
            self.end_batch(index, op, waits)?;
            let lane = &mut self.lanes[index];
            let own = waits < lane.free_at || waits == lane.free_at && lane.cause != Cause::NONE;
            let cause = if own { lane.cause } else { edge };
            let ready = waits.max(lane.free_at);
            let leaves = ready + self.costs.issue(op, self.messages);
            (lane.free_at, lane.cause) = (leaves, Cause::issue(id));
            self.causes[id as usize] = cause.0;
            self.times.issued[id as usize] = ready;
            match op.kind {
                OpKind::Put | OpKind::Notice => self.send(id, op, index, leaves)?,
                _ => {
                    self.times.delivered[id as usize] = leaves;
                    self.times.visible[id as usize] = leaves;
                    self.busy_until(op.from, leaves, Cause::edge(id));
                }
            }
        }
        for index in 0..self.lanes.len() {
            self.free_batch(index);
        }
        Ok(())
    }

    /// The lane of `op`: what a rank sends must come from one lane.
    #[inline]
    fn lane(&mut self, op: &Op) -> Result<usize, Unsuitable> {
        let rank = op.from as usize;
        let is_arithmetic = match op.kind {
            OpKind::Put | OpKind::Notice => false,
            OpKind::Local | OpKind::Compute => op.lane == COMPUTE_LANE,
            OpKind::Fence => false,
            OpKind::Get | OpKind::Multicast | OpKind::Barrier => return Err(Unsuitable),
        };
        if is_arithmetic {
            return Ok(2 * rank + 1);
        }
        let lane = *self.sends_from[rank].get_or_insert(op.lane);
        match lane == op.lane && lane != COMPUTE_LANE {
            true => Ok(2 * rank),
            false => Err(Unsuitable),
        }
    }

    /// When the last of what `id` waits for is over, and what that is.
    #[inline]
    fn waits(&self, id: u32, op: &Op) -> Result<(u64, Cause), Stop> {
        let schedule = self.messages.schedule;
        let (mut latest, mut cause) = (0, Cause::NONE);
        for &edge in schedule.after(id) {
            let earlier = edge.op() as usize;
            let at = match waits_for(schedule, edge, op.from) {
                Some(Wait::Visible) => self.times.visible[earlier],
                Some(Wait::SourceFree) => self.source_free[earlier],
                Some(Wait::Acknowledged) => self.acknowledged[earlier],
                None => {
                    return Err(Stop::Error(SimError::Invisible {
                        op: id,
                        rank: op.from,
                        earlier: edge.op(),
                    }))
                }
            };
            if at >= latest {
                (latest, cause) = (at, Cause::edge(edge.op()));
            }
        }
        Ok((latest, cause))
    }

    /// Whether the lane's batch ends before `op` is issued; then the lane pays for it.
    #[inline]
    fn end_batch(&mut self, index: usize, op: &Op, waits: u64) -> Result<(), Unsuitable> {
        let lane = self.lanes[index];
        let size = match self.run.issue {
            Issue::Unlimited => return Ok(()),
            Issue::Batch(size) => size,
            Issue::Blocking | Issue::Window(_) => 1,
        };
        if lane.batch == 0 {
            return Ok(());
        }
        let full = op.kind == OpKind::Put && lane.batch >= size;
        let ready = waits.max(lane.free_at);
        if !full && lane.completes == ready {
            // Which comes first is a matter of the queue.
            return Err(Unsuitable);
        }
        if full || lane.completes < ready {
            self.free_batch(index);
        }
        Ok(())
    }

    /// All transfers of the batch are complete: the lane looks after them and is free.
    fn free_batch(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        if lane.batch == 0 {
            return;
        }
        let (completes, cause) = (lane.completes, Cause::completion(lane.last));
        let free_at = completes.max(lane.free_at) + self.costs.barrier;
        (lane.batch, lane.free_at, lane.cause) = (0, free_at, cause);
        self.busy_until((index / 2) as u32, completes, cause);
        self.busy_until((index / 2) as u32, free_at, cause);
    }

    #[inline]
    fn send(&mut self, id: u32, op: &Op, index: usize, leaves: u64) -> Result<(), Unsuitable> {
        let message = self.messages.message(id);
        self.totals.count(&message, self.fabric, self.messages);
        let answer = self.fabric.answer(TimePs(leaves), &message);
        let times = answer.ok_or(Unsuitable)?;
        let delivered = times.delivered.0;
        self.times.delivered[id as usize] = delivered;
        self.source_free[id as usize] = times.source_free.0;
        if let Some(at) = self.acknowledged.get_mut(id as usize) {
            *at = times.acknowledged.0;
        }
        let visible = self.arrive(op, leaves, delivered)?;
        self.times.visible[id as usize] = visible;
        if op.to < self.messages.schedule.ranks {
            self.busy_until(op.to, visible, Cause::edge(id));
        }
        if op.kind == OpKind::Put {
            let completes = match self.run.path.completion {
                Completion::SourceFree => times.source_free.0,
                Completion::Delivered => delivered,
                Completion::Acknowledged => times.acknowledged.0,
            };
            self.complete(id, op, index, completes);
        }
        Ok(())
    }

    /// The target handles an arrival when it has handled those before.
    #[inline]
    fn arrive(&mut self, op: &Op, sent: u64, at: u64) -> Result<u64, Unsuitable> {
        let Some(receiver) = self.receivers.get_mut(op.to as usize) else {
            return Ok(at); // a memory
        };
        let cost = self.costs.arrival(op, self.messages);
        receiver.in_order &= receiver.latest <= (at, sent);
        receiver.latest = (at, sent);
        receiver.busy |= cost > 0;
        if receiver.busy && !receiver.in_order {
            return Err(Unsuitable);
        }
        let visible = at.max(receiver.handled) + cost;
        if receiver.busy {
            receiver.handled = visible;
        }
        Ok(visible)
    }

    /// Transfer `id` completes in the sense of the path.
    fn complete(&mut self, id: u32, op: &Op, index: usize, at: u64) {
        if self.run.issue == Issue::Unlimited {
            return self.busy_until(op.from, at, Cause::completion(id));
        }
        let lane = &mut self.lanes[index];
        lane.batch += 1;
        if lane.batch == 1 || at >= lane.completes {
            (lane.completes, lane.last) = (at, id);
        }
    }

    /// Rank `rank` was busy until `at` because of `cause`.
    #[inline]
    fn busy_until(&mut self, rank: u32, at: u64, cause: Cause) {
        let finish = &mut self.finish[rank as usize];
        *finish = at.max(*finish);
        if at > self.end.0 {
            self.end = (at, cause);
        }
    }

    fn outcome(self, start: &[u64]) -> Simulation {
        let first = start.iter().copied().min().unwrap_or(0);
        let walk = Walk {
            messages: self.messages,
            costs: self.costs,
            cause: &|id| Cause(self.causes[id as usize]),
            paid_phase: &|_| false,
            times: &self.times,
            run: self.run,
        };
        let critical = walk.back(self.end, first, &*self.fabric);
        Simulation {
            makespan: TimePs(self.end.0.max(first) - first),
            start: start.to_vec(),
            finish: self.finish,
            totals: self.totals,
            links: self.fabric.links().clone(),
            critical,
            operations: self.run.record_operations.then_some(self.times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabrics::loggp::{LogGp, Parameters};
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
        let run = Run {
            issue,
            ..Run::new(8, path)
        };
        let messages = Messages::new(&schedule, &run.placement, &run.networks);
        let costs = Costs::new(&run, &messages).unwrap();
        let parameters = Parameters {
            latency: TimePs::from_ns(1000),
            gap: TimePs::from_ns(100),
            bandwidth: BytesPerSec(1e9),
        };
        let mut fabric = LogGp::new(parameters, 8);
        let found = simulate(&messages, &costs, &run, &[0; 8], &mut fabric).unwrap();
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
