//! Limits: times that nothing on this machine can beat.
//!
//! | limit | value | holds for |
//! |---|---|---|
//! | latency | longest chain of messages, each without data on an idle machine | this schedule |
//! | port | bytes that must leave or enter some rank / rate of its port | any algorithm |
//! | cut | bytes that must cross between two halves of the ranks / rate of the narrowest | any algorithm |
//! | memory | bytes of the busiest memory / rate of its port | this schedule |
//! | compute | combinations per rank x their cost, or the busiest rank's computes | any algorithm |
//!
//! With S the message size, p ranks and m memories, the bytes that must move are
//!
//! | collective | into some rank | out of some rank | across halves, one way |
//! |---|---|---|---|
//! | allreduce | max(S, 2 (p-1) S / (p+m)) | the same | S |
//! | reduce_scatter | S (p-1) / (p+m) | the same | S / 2 |
//! | allgather | S (p-1) / p | S (p-1) / (p+m) | S / 2 |
//! | broadcast, reduce | S | S | S |
//! | gather | S (p-1) / p | S / p | S / 2 |
//! | scatter | S / p | S (p-1) / p | S / 2 |
//! | alltoall | S (p-1) / p | S (p-1) / p | p S / 4 |
//!
//! For an allreduce: every element needs p-1 messages to be summed and p-1 to be spread, and some
//! endpoint receives at least its share of them; what is received was sent, so some endpoint sends
//! its share, unless multicasts send once for many. A traffic pattern has no collective to fulfil; its
//! port limit is what its busiest port really carries.
//!
//! A simulated time below a limit is a bug and yields no number. Times from rates are rounded down
//! once per event, so the check forgives one picosecond per message.
//!
//! Source of the byte counts: Chan, Heimlich, Purkayastha and van de Geijn, "Collective
//! communication: theory, practice, and experience" (2007); Patarasuk and Yuan (JPDC 2009).

use crate::costs::Costs;
use crate::error::SimError;
use crate::fabric::{Bounds, Fabric};
use crate::messages::Messages;
use crate::outcome::Simulation;
use crate::prepared::Prepared;
use crate::setup::Setup;
use crate::simulated::SimulatedFabric;
use linkwright_core::{Bytes, BytesPerSec, TimePs};
use linkwright_schedule::ir::{Combine, OpKind, Schedule};
use linkwright_schedule::Collective;

/// A lower bound on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// `latency`, `port`, `cut`, `memory` or `compute`.
    pub name: &'static str,
    /// No run takes less.
    pub time: TimePs,
}

/// All limits of a schedule on a machine that are known and not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(pub Vec<Limit>);

impl Limits {
    /// The limits of `schedule` on `fabric`. `whole` says that the ranks fill the machine, so that
    /// its halves are halves of the ranks.
    pub fn of<F: SimulatedFabric + ?Sized>(
        schedule: &Schedule,
        fabric: &F,
        setup: &Setup,
        whole: bool,
    ) -> Result<Self, SimError> {
        let prepared = Prepared::new(schedule, setup)?;
        let (messages, costs) = (&prepared.messages, &prepared.costs);
        let bounds = fabric.bounds();
        Ok(Limits::known([
            ("latency", fabric.longest_chain(&prepared)),
            ("port", port(messages, &bounds)),
            ("cut", cut(schedule, &bounds, whole)),
            ("memory", memory(messages, &bounds)),
            ("compute", compute(messages, costs, setup)),
        ]))
    }

    /// The limits of a rank-symmetric program: `frame` is its schedule without operations, `latency` its longest
    /// chain, `units` its arithmetic units per rank.
    pub(crate) fn of_frame<F: Fabric + ?Sized>(
        frame: &Schedule,
        fabric: &F,
        setup: &Setup,
        latency: TimePs,
        units: u64,
        whole: bool,
    ) -> Self {
        let bounds = fabric.bounds();
        Limits::known([
            ("latency", latency),
            ("port", port_of_collective(frame, &bounds)),
            ("cut", cut(frame, &bounds, whole)),
            ("compute", TimePs(combined(frame, setup, units))),
        ])
    }

    /// Those of `all` that are not zero.
    fn known<const N: usize>(all: [(&'static str, TimePs); N]) -> Self {
        let known = all.into_iter().filter(|(_, time)| *time > TimePs::ZERO);
        Limits(known.map(|(name, time)| Limit { name, time }).collect())
    }

    /// The largest, which is *the* limit.
    pub fn largest(&self) -> Option<Limit> {
        self.0.iter().copied().max_by_key(|limit| limit.time)
    }

    /// That a simulation is not faster than possible.
    pub fn check(&self, simulation: &Simulation, fabric: &str) -> Result<(), SimError> {
        let rounding = simulation.totals.transfers + simulation.totals.notices;
        match self.largest() {
            Some(limit) if simulation.makespan.0 + rounding < limit.time.0 => {
                Err(SimError::BelowLimit {
                    time: simulation.makespan,
                    limit: limit.name,
                    bound: limit.time,
                    fabric: fabric.to_string(),
                })
            }
            _ => Ok(()),
        }
    }
}

fn time(bytes: u64, rate: Option<BytesPerSec>) -> TimePs {
    rate.map_or(TimePs::ZERO, |rate| rate.time(Bytes(bytes)))
}

fn port(messages: &Messages<'_>, bounds: &Bounds) -> TimePs {
    let schedule = messages.schedule;
    if schedule.spec.collective == Collective::Pattern {
        let (out, into) = busiest(messages, 0..schedule.ranks);
        return time(out, bounds.rank_out).max(time(into, bounds.rank_in));
    }
    port_of_collective(schedule, bounds)
}

fn port_of_collective(schedule: &Schedule, bounds: &Bounds) -> TimePs {
    let (out, into) = through_some_rank(schedule);
    time(out, bounds.rank_out).max(time(into, bounds.rank_in))
}

fn cut(schedule: &Schedule, bounds: &Bounds, whole: bool) -> TimePs {
    match whole && schedule.ranks % 2 == 0 {
        true => time(across_halves(schedule), bounds.halves),
        false => TimePs::ZERO,
    }
}

/// Bytes that some rank must send, and that some rank must receive, whatever the algorithm.
fn through_some_rank(schedule: &Schedule) -> (u64, u64) {
    let (size, p) = (schedule.size_bytes(), u64::from(schedule.ranks));
    if p < 2 {
        return (0, 0);
    }
    let (block, others) = (size / p, size / p * (p - 1));
    // Every byte received was sent, so some endpoint sends its share; a multicast sends once.
    let once = schedule.has(OpKind::Multicast);
    let share = |received: u64| received / (p + u64::from(schedule.memories));
    let sent = |received: u64| if once { 0 } else { share(received) };
    match schedule.spec.collective {
        Collective::Allreduce => {
            let twice = 2 * (p - 1) * size;
            (size.max(sent(twice)), size.max(share(twice)))
        }
        Collective::ReduceScatter => (sent((p - 1) * size), share((p - 1) * size)),
        Collective::Allgather => (block.max(sent(others * p)), others),
        Collective::Broadcast | Collective::Reduce => (size, size),
        Collective::Gather => (block, others),
        Collective::Scatter => (others, block),
        Collective::Alltoall => (others, others),
        Collective::Barrier | Collective::Pattern => (0, 0),
    }
}

/// Bytes that must cross, one way, between any two halves of the ranks.
fn across_halves(schedule: &Schedule) -> u64 {
    let (size, p) = (schedule.size_bytes(), u64::from(schedule.ranks));
    match schedule.spec.collective {
        Collective::Allreduce | Collective::Broadcast | Collective::Reduce => size,
        Collective::ReduceScatter
        | Collective::Allgather
        | Collective::Gather
        | Collective::Scatter => size / 2,
        Collective::Alltoall => size / p * (p / 2) * (p / 2),
        Collective::Barrier | Collective::Pattern => 0,
    }
}

fn memory(messages: &Messages<'_>, bounds: &Bounds) -> TimePs {
    let schedule = messages.schedule;
    let all = schedule.ranks..schedule.ranks + schedule.memories;
    let (out, into) = busiest(messages, all);
    time(out, bounds.memory_out).max(time(into, bounds.memory_in))
}

/// Most bytes out of and into one of `participants`, between different ones.
fn busiest(messages: &Messages<'_>, participants: std::ops::Range<u32>) -> (u64, u64) {
    if participants.is_empty() {
        return (0, 0);
    }
    let schedule = messages.schedule;
    let count = (schedule.ranks + schedule.memories) as usize;
    let (mut out, mut into) = (vec![0; count], vec![0; count]);
    for op in schedule.ops().iter().filter(|op| op.is_message()) {
        let bytes = messages.bytes(op);
        let others = schedule.targets(op).iter().filter(|&&t| t != op.from);
        let sent = others.map(|&t| into[t as usize] += bytes).count();
        out[op.from as usize] += if sent > 0 { bytes } else { 0 };
    }
    let most = |of: &[u64]| participants.clone().map(|p| of[p as usize]).max();
    (most(&out).unwrap_or(0), most(&into).unwrap_or(0))
}

fn compute(messages: &Messages<'_>, costs: &Costs<'_>, setup: &Setup) -> TimePs {
    let schedule = messages.schedule;
    if !schedule.computes() && !schedule.spec.collective.reduces() {
        return TimePs::ZERO;
    }
    // Arithmetic units of a rank: each lane that combines, and the handling of arrivals.
    let mut lanes = [false; 257];
    let mut work = vec![0u64; schedule.ranks as usize];
    for op in schedule.ops() {
        match (op.kind, op.combine) {
            (OpKind::Compute, _) => {
                work[op.from as usize] += costs.issue(op, messages);
                lanes[op.lane as usize] = true;
            }
            (OpKind::Local, Combine::Reduce) => lanes[op.lane as usize] = true,
            (_, Combine::Reduce) => lanes[256] = true,
            _ => {}
        }
    }
    let units = lanes.iter().filter(|&&used| used).count().max(1) as u64;
    let most = work.into_iter().max().unwrap_or(0) / units;
    TimePs(most.max(combined(schedule, setup, units)))
}

/// The least time that a rank with this many arithmetic units needs to combine its share.
fn combined(schedule: &Schedule, setup: &Setup, units: u64) -> u64 {
    let (size, p) = (schedule.size_bytes(), u64::from(schedule.ranks));
    if !schedule.spec.collective.reduces() || p < 2 || size == 0 {
        return 0;
    }
    let share = Bytes((p - 1) * size / p / units);
    setup.path.combine_time(share, setup.arithmetic).0
}
