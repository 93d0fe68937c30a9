//! The engine: dependencies, lanes, software costs and compute; the fabric carries the messages.
//!
//! An operation is *ready* when everything it waits for has happened. Each lane of a rank issues
//! its operations in id order, one at a time, as its [`crate::Issue`] policy admits:
//!
//! ```text
//!  lane  | start + runs * per_run |                       | barrier | notice_start |
//!                                 v                       ^                        v
//!  fabric                         +---- message ----------+- ack                   +-- signal --+
//!  target                                        |receive + combine|                            v
//!                                                                  `- visible    or, on a path with
//!                                                                                signal, only here
//! ```
//!
//! A target handles its arrivals one after another. Signals follow transfers to ranks that the
//! path announces with a notice; gets, notices and transfers to memories need none. Local
//! operations and computes keep their lane. A rank has one arithmetic unit: what it combines in several
//! lanes, it combines one after another.
//!
//! Time advances from instant to instant: the fabric's completions first, then the engine's own
//! events in the order of their making, then all messages released at that instant are offered
//! together, in operation order. Nothing depends on addresses, hashing or threads.

mod arrivals;
mod deliveries;
mod lanes;

use crate::costs::Costs;
use crate::critical::{Backtrack, Cause, History};
use crate::error::SimError;
use crate::fabric::{Done, Event, Fabric, Msg, Wanted};
use crate::graph::{Graph, Wait, LAST_ISSUE, NONE};
use crate::limits::check_stop;
use crate::messages::Messages;
use crate::noise::Draws;
use crate::outcome::{OperationTimes, Simulation, Totals};
use crate::prepared::Prepared;
use crate::queue::TimeQueue;
use crate::setup::Setup;
use crate::simulated::SimulatedFabric;
use deliveries::Deliveries;
use lanes::{is_counted, Lane};
use linkwright_core::machine::Completion;
use linkwright_core::EndpointId;
use linkwright_core::TimePs;
use linkwright_schedule::ir::{Op, OpKind, Schedule};

/// An event of the engine.
#[derive(Clone, Copy)]
enum Own {
    /// The software part of issuing an operation is over.
    Issued(u32),
    /// Local work or a barrier is finished.
    Finished(u32),
    /// A lane is free again.
    Free(u32, Cause),
    /// The notice that follows a transfer leaves.
    Signal(u32),
    /// A target, by its place in the set of a multicast, has handled an arrival.
    Visible(u32, u32),
    /// A completion that the fabric told in advance.
    Told(u32, Event),
}

struct Engine<'a, F: ?Sized> {
    messages: Messages<'a>,
    fabric: &'a mut F,
    setup: &'a Setup,
    costs: Costs<'a>,
    noise: Option<Draws>,
    graph: Graph,
    queue: TimeQueue<Own>,
    lanes: Vec<Lane>,
    /// When each rank has handled its arrivals so far; none before it is there itself.
    handled: Vec<u64>,
    /// When each rank may start another transfer, where starts wait for each other.
    starter: Vec<u64>,
    /// When the arithmetic unit of each rank is free.
    combiner: Vec<u64>,
    /// Barrier operations that have arrived, by set.
    at_barrier: Vec<Vec<u32>>,
    /// Targets still to come, of multicasts whose completion is their delivery.
    multicasts: Vec<(u32, u32)>,
    /// What leaves at this instant: twice the operation, and one more for its signal.
    released: Vec<u32>,
    offered: Vec<Msg>,
    now: u64,
    /// Targets that operations have still to reach.
    unfinished: usize,
    deliveries: Deliveries,
    /// Times of every operation, where the run asked for them.
    recorded: Option<OperationTimes>,
    finish: Vec<u64>,
    /// What happened last, and why.
    end: (u64, Cause),
    /// The latest end that is of interest.
    stop_at: u64,
    totals: Totals,
    /// Why the run cannot go on.
    failed: Option<SimError>,
}

/// Run `schedule` on `fabric`.
pub fn simulate<F: SimulatedFabric + ?Sized>(
    schedule: &Schedule,
    fabric: &mut F,
    setup: &Setup,
) -> Result<Simulation, SimError> {
    let prepared = Prepared::new(schedule, setup)?;
    check_stop(&prepared, fabric)?;
    let in_order = fabric.character().order_free || setup.alike.is_some();
    if in_order && setup.path.memory.is_none() && setup.noise.is_none() {
        if let Some(found) = fabric.pass(&prepared)? {
            return found.in_range();
        }
    }
    if setup.alike.is_some() {
        let problem = "a batch ends at the instant of an issue; use fewer ranks".to_string();
        return Err(SimError::Unsuited { problem });
    }
    check_routes(&prepared.messages, fabric)?;
    check_work(&prepared.messages, fabric)?;
    fabric.reset(&setup.conditions(&prepared.sets));
    let stop_at = prepared.stop_at();
    let Prepared {
        messages,
        costs,
        start,
        ..
    } = prepared;
    let graph = Graph::new(schedule)?;
    let lane = |(i, &next): (usize, &u32)| Lane {
        next,
        batch: Vec::new(),
        issued: 0,
        in_flight: 0,
        phase: NONE,
        free_at: start[i / graph.slots as usize],
    };
    let mut engine = Engine {
        lanes: graph.lane_heads.iter().enumerate().map(lane).collect(),
        messages,
        fabric,
        setup,
        costs,
        noise: setup.noise.map(|noise| Draws::new(noise, setup.seed)),
        graph,
        queue: TimeQueue::default(),
        handled: start.clone(),
        starter: start.clone(),
        combiner: start.clone(),
        at_barrier: vec![Vec::new(); schedule.sets.len()],
        multicasts: Vec::new(),
        released: Vec::new(),
        offered: Vec::new(),
        now: 0,
        unfinished: schedule.ops().iter().map(|op| targets(schedule, op)).sum(),
        deliveries: Deliveries::new(schedule.ops().len()),
        recorded: (setup.record_operations).then(|| OperationTimes::new(schedule.ops().len())),
        finish: start.clone(),
        end: (0, Cause::NONE),
        stop_at,
        totals: Totals::default(),
        failed: None,
    };
    for lane in 0..engine.lanes.len() {
        let at = engine.lanes[lane].free_at;
        engine.push(at, Own::Free(lane as u32, Cause::NONE));
    }
    engine.advance()?;
    engine.outcome(start)?.in_range()
}

impl<F: Fabric + ?Sized> History for Engine<'_, F> {
    fn issued(&self, id: u32) -> u64 {
        self.graph.nodes[id as usize].issued()
    }

    fn delivered(&self, id: u32) -> u64 {
        let delivered = self.deliveries.of(id, self.issued(id));
        delivered.expect("the critical path leads through what was delivered")
    }

    fn cause(&self, id: u32) -> Cause {
        Cause(self.graph.nodes[id as usize].cause)
    }

    fn paid_phase(&self, id: u32) -> bool {
        self.graph.nodes[id as usize].paid_phase()
    }
}

/// Most packets or lines of one simulation: some minutes of work.
const MOST_PIECES: u64 = 1 << 27;

/// That a fabric which moves packets one by one comes to an end.
fn check_work<F: Fabric + ?Sized>(messages: &Messages<'_>, fabric: &F) -> Result<(), SimError> {
    let Some(most_bytes) = fabric.character().piece_bytes else {
        return Ok(());
    };
    let schedule = messages.schedule;
    let of = |op: &Op| messages.bytes(op).div_ceil(most_bytes) * targets(schedule, op) as u64;
    let carrying = schedule.ops().iter().filter(|op| op.is_message());
    let pieces = carrying.map(of).fold(0, u64::saturating_add);
    match pieces <= MOST_PIECES {
        true => Ok(()),
        false => Err(SimError::TooMuch {
            pieces,
            most: MOST_PIECES,
        }),
    }
}

/// That the fabric leads wherever the schedule sends.
fn check_routes<F: Fabric + ?Sized>(messages: &Messages<'_>, fabric: &F) -> Result<(), SimError> {
    for (id, op) in (0u32..).zip(messages.schedule.ops()) {
        if !op.is_message() {
            continue;
        }
        let network = messages.network(op);
        if op.kind == OpKind::Aggregate {
            check_aggregation(messages, fabric, (id, op), network)?;
            continue;
        }
        let from = messages.endpoint(op.from);
        for &target in messages.schedule.targets(op) {
            let to = messages.endpoint(target);
            if let Some(problem) = fabric.network().no_route(from, to, network) {
                return Err(SimError::NoRoute { op: id, problem });
            }
        }
    }
    Ok(())
}

/// That the fabric combines what the aggregation `op` takes, and has ways for it.
fn check_aggregation<F: Fabric + ?Sized>(
    messages: &Messages<'_>,
    fabric: &F,
    (id, op): (u32, &Op),
    network: u8,
) -> Result<(), SimError> {
    let places = |all: &[u32]| -> Vec<EndpointId> {
        all.iter().map(|&one| messages.endpoint(one)).collect()
    };
    let (sources, targets) = (messages.schedule.sources(op), messages.schedule.targets(op));
    let problem = match sources {
        [one] if targets.first() != Some(one) => {
            "there is nothing to combine in the data of one source; let it multicast them"
        }
        _ => "no switch on the ways between its participants combines data; place them behind one that does",
    };
    match fabric
        .network()
        .aggregates(&places(sources), &places(targets), network)
    {
        true => Ok(()),
        false => Err(SimError::NoRoute {
            op: id,
            problem: problem.into(),
        }),
    }
}

/// Places where `op` takes effect.
fn targets(schedule: &Schedule, op: &Op) -> usize {
    match op.kind {
        OpKind::Multicast | OpKind::Aggregate => schedule.targets(op).len(),
        _ => 1,
    }
}

impl<'a, F: Fabric + ?Sized> Engine<'a, F> {
    #[inline]
    fn push(&mut self, at: u64, event: Own) {
        self.queue.push(TimePs(at), event);
    }

    #[inline]
    fn op(&self, id: u32) -> &'a Op {
        &self.messages.schedule.ops()[id as usize]
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

    /// Go from instant to instant until nothing is left.
    fn advance(&mut self) -> Result<(), SimError> {
        let mut done = Vec::new();
        let mut turns = 0_u32;
        loop {
            turns = turns.wrapping_add(1);
            let own = self.queue.next();
            let reached = self.fabric.advance(own.unwrap_or(TimePs::MAX), &mut done);
            if done.is_empty() && own.is_none() {
                return Ok(());
            }
            self.now = match own {
                Some(own) if done.is_empty() => own.0,
                _ => reached.0,
            };
            for &done in &done {
                self.completion(done);
            }
            done.clear();
            while let Some(event) = self.queue.pop_at(TimePs(self.now)) {
                self.own_event(event);
            }
            if let Some(why) = self.failed.take() {
                return Err(why);
            }
            if self.end.0 > self.stop_at || self.setup.abandoned(turns) {
                return Err(SimError::Stopped {
                    at: TimePs(self.end.0),
                });
            }
            self.release();
        }
    }

    #[inline]
    fn own_event(&mut self, event: Own) {
        let (at, target) = (TimePs(self.now), 0);
        match event {
            Own::Issued(id) => self.issued(id),
            Own::Finished(id) => self.finished(id),
            Own::Free(lane, cause) => self.try_issue(lane as usize, cause),
            Own::Signal(id) => self.released.push(2 * id + 1),
            Own::Visible(id, target) => self.visible(id, target),
            #[rustfmt::skip]
            Own::Told(op, event) => self.completion(Done { op, event, at, target }),
        }
    }

    /// The lane of `id` takes it up, now.
    #[inline]
    fn taken_up(&mut self, id: u32, cause: Cause, pays_phase: bool) {
        if self.now > LAST_ISSUE {
            self.failed = Some(SimError::TooLong {
                at: TimePs(self.now),
            });
        }
        self.graph.nodes[id as usize].issue(self.now, cause, pays_phase);
        if let Some(times) = &mut self.recorded {
            times.issued[id as usize] = self.now;
        }
    }

    /// The fabric has delivered `id`, or its local work is finished, now.
    #[inline]
    fn delivered(&mut self, id: u32) {
        let issued = self.graph.nodes[id as usize].issued();
        self.deliveries.note(id, issued, self.now);
        if let Some(times) = &mut self.recorded {
            times.delivered[id as usize] = self.now;
        }
    }

    fn issued(&mut self, id: u32) {
        let op = self.op(id);
        if let Some(times) = &mut self.recorded {
            times.offered[id as usize] = self.now;
        }
        match op.kind {
            OpKind::Local | OpKind::Compute | OpKind::Fence => return self.finished(id),
            OpKind::Barrier => self.at_barrier(id, op.to),
            _ => self.released.push(2 * id),
        }
        self.try_issue(self.graph.lane(op), Cause::issue(id));
    }

    fn finished(&mut self, id: u32) {
        self.delivered(id);
        self.visible(id, 0);
        self.try_issue(self.graph.lane(self.op(id)), Cause::issue(id));
    }

    fn at_barrier(&mut self, id: u32, set: u32) {
        let arrived = &mut self.at_barrier[set as usize];
        arrived.push(id);
        let ranks = self.messages.schedule.sets[set as usize].len();
        if arrived.len() < ranks {
            return;
        }
        let Some(end) = self.fabric.barrier(TimePs(self.now), set) else {
            self.failed = Some(SimError::NoBarrier { op: id, ranks });
            return;
        };
        for member in std::mem::take(arrived) {
            if member != id {
                // Whatever a member did before, it is the last arrival that lets it go.
                self.taken_up(member, Cause::issue(id), false);
            }
            self.push(end.0, Own::Finished(member));
        }
    }

    /// The completions of transfer `id` about which anything happens here.
    #[inline]
    fn wanted(&self, id: u32) -> Wanted {
        let (node, completion) = (&self.graph.nodes[id as usize], self.setup.path.completion);
        let counted = is_counted(self.op(id));
        Wanted {
            source_free: node.is_awaited(Wait::SourceFree)
                || counted && completion == Completion::SourceFree,
            acknowledged: node.is_awaited(Wait::Acknowledged)
                || counted && completion == Completion::Acknowledged,
        }
    }

    /// When `rank` has done work of `duration` that it begins at `from`: noise makes it later.
    #[inline]
    fn worked(&self, rank: u32, from: u64, duration: u64) -> u64 {
        match &self.noise {
            None => from + duration,
            Some(noise) => noise.worked(rank, from, duration),
        }
    }

    /// How much later than it happened `event` of operation `id` is seen.
    #[inline]
    fn unseen(&self, event: u64, id: u32) -> u64 {
        self.noise.as_ref().map_or(0, |noise| noise.poll(event, id))
    }

    /// Give all messages of this instant to the fabric.
    fn release(&mut self) {
        if self.released.is_empty() {
            return;
        }
        let mut released = std::mem::take(&mut self.released);
        // Successors of one step come round in nearly the same order, which a stable sort exploits.
        released.sort();
        if let Some(noise) = &self.noise {
            noise.shuffle(self.now, &mut released);
        }
        let mut answers = true;
        for &what in &released {
            let id = what / 2;
            let message = match what % 2 {
                0 => Msg {
                    wanted: self.wanted(id),
                    ..self.messages.message(id)
                },
                _ => self.messages.signal(id),
            };
            (self.totals).count(&message, self.fabric, &self.messages);
            if answers {
                if let Some(times) = self.fabric.answer(TimePs(self.now), &message) {
                    self.answered(message.op, times);
                    continue;
                }
                answers = false;
            }
            self.offered.push(message);
        }
        if !answers {
            self.fabric.offer(TimePs(self.now), &self.offered);
            self.offered.clear();
        }
        released.clear();
        self.released = released;
    }

    fn outcome(self, start: Vec<u64>) -> Result<Simulation, SimError> {
        if self.unfinished > 0 || self.fabric.in_flight() > 0 {
            return Err(self.stuck());
        }
        let first = start.iter().copied().min().unwrap_or(0);
        let backtrack = Backtrack {
            messages: &self.messages,
            costs: &self.costs,
            history: &self,
            setup: self.setup,
        };
        let critical = backtrack.path(self.end, first, &*self.fabric);
        Ok(Simulation {
            makespan: TimePs(self.end.0.max(first) - first),
            start,
            finish: self.finish,
            runs: Vec::new(),
            totals: self.totals,
            links: self.fabric.links().clone(),
            critical,
            operations: self.recorded,
        })
    }

    fn stuck(&self) -> SimError {
        let schedule = self.messages.schedule;
        let mut waiting = self.fabric.stuck().waiting;
        for lane in self.lanes.iter().filter(|lane| lane.next != NONE) {
            let op = self.op(lane.next);
            let earlier = schedule.after(lane.next).iter().map(|edge| edge.op());
            let missing = earlier
                .clone()
                .find(|&e| self.deliveries.of(e, 0).is_none());
            let what = match missing.or(earlier.clone().next_back()) {
                Some(earlier) => format!("operation {earlier}"),
                None => "a place in its lane".to_string(),
            };
            let rank = op.initiator();
            waiting.push(format!(
                "rank {rank} (lane {}, step {}): operation {} waits for {what}",
                op.lane, op.step, lane.next
            ));
        }
        waiting.truncate(8);
        SimError::Stuck {
            at: TimePs(self.now),
            unfinished: self.unfinished,
            waiting,
        }
    }
}
