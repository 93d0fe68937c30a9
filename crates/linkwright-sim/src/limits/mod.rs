//! Lower bounds on time: of the problem, and of one schedule.
//!
//! ```text
//!   problem    collective, size, ranks, root  + machine, places, path  -> what no schedule beats
//!   schedule   the messages of one schedule   + the same               -> what this schedule cannot beat
//! ```
//!
//! The first is *the* limit: it is the same for all algorithms, and a share of it says how good one is. The second says
//! what holds one schedule up, and is never less than what its own traffic needs. [`problem`] and [`schedule`] explain
//! how each is found.
//!
//! A simulated time below either is a bug and yields no number. Times from rates are rounded down
//! once per event, so the check forgives one picosecond per message.

mod arrival;
mod borders;
mod demand;
mod distance;
mod fan_in;
mod growth;
mod links;
mod news;
mod prices;
pub mod problem;
pub mod schedule;
mod spread;

pub use demand::{Demand, Whole};

use crate::error::SimError;
use crate::outcome::Simulation;
use crate::prepared::Prepared;
use crate::setup::Setup;
use crate::simulated::SimulatedFabric;
use linkwright_core::{Bytes, BytesPerSec, Machine, TimePs};
use linkwright_schedule::ir::Schedule;

/// A lower bound on time, and what it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// `latency`, `port`, `cut`, `arrival`, `links`, `memory` or `compute`.
    pub name: &'static str,
    /// No run takes less.
    pub time: TimePs,
    /// What it is about, such as `into rank 3`.
    pub what: String,
    /// Bytes that must pass there, 0 where none do.
    pub bytes: u64,
    /// The most that passes there, where bytes do.
    pub rate: Option<BytesPerSec>,
}

impl Limit {
    /// The time that `bytes` take at `rate`.
    fn of_rate(name: &'static str, what: String, bytes: u64, rate: BytesPerSec) -> Self {
        Limit {
            name,
            time: rate.time(Bytes(bytes)),
            what,
            bytes,
            rate: Some(rate),
        }
    }

    /// A time that depends on no bytes.
    fn of_time(name: &'static str, what: String, time: TimePs) -> Self {
        Limit {
            name,
            time,
            what,
            bytes: 0,
            rate: None,
        }
    }
}

/// All limits that are known and not zero, at most one of each name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits(pub Vec<Limit>);

impl Limits {
    /// The largest of each name, in the order of `all`.
    fn known(all: impl IntoIterator<Item = Limit>) -> Self {
        let mut known: Vec<Limit> = Vec::new();
        for limit in all.into_iter().filter(|limit| limit.time > TimePs::ZERO) {
            match known.iter_mut().find(|other| other.name == limit.name) {
                Some(other) if other.time >= limit.time => {}
                Some(other) => *other = limit,
                None => known.push(limit),
            }
        }
        Limits(known)
    }

    /// The largest, which is *the* limit.
    pub fn largest(&self) -> Option<&Limit> {
        // The first of equals.
        self.0.iter().rev().max_by_key(|limit| limit.time)
    }

    /// That a simulation is not faster than possible.
    pub fn check(&self, simulation: &Simulation, fabric: &str) -> Result<(), SimError> {
        let rounding = simulation.totals.transfers + simulation.totals.notices;
        match self.largest() {
            Some(limit) if simulation.makespan.0 + rounding < limit.time.0 => {
                Err(SimError::BelowLimit {
                    time: simulation.makespan,
                    limit: limit.name,
                    what: limit.what.clone(),
                    bound: limit.time,
                    fabric: fabric.to_string(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// The error of a simulation that cannot end before it is to stop, as its ports show before it begins.
pub(crate) fn check_stop<F: SimulatedFabric + ?Sized>(
    prepared: &Prepared<'_>,
    fabric: &F,
) -> Result<(), SimError> {
    let stop_at = prepared.setup.stop_at;
    if stop_at == TimePs::MAX {
        return Ok(());
    }
    let at = schedule::busiest_port(prepared, fabric);
    // Each message may be rounded down by a picosecond.
    let rounding = prepared.messages.schedule.ops().len() as u64;
    match at.0 > stop_at.0.saturating_add(rounding) {
        true => Err(SimError::Stopped { at }),
        false => Ok(()),
    }
}

/// The limits of the problem that `schedule` solves on `machine`, and those of `schedule` itself. The fabric is idle
/// afterwards.
pub fn of<F: SimulatedFabric + ?Sized>(
    schedule: &Schedule,
    fabric: &mut F,
    (setup, repeats): (&Setup, u64),
    machine: &Machine,
) -> Result<(Limits, Limits), SimError> {
    let prepared = Prepared::new(schedule, setup)?;
    let demand = Demand::of(&prepared);
    // A multicast of a chain needs the sets of the schedule, which the problem may replace.
    let chain = fabric.longest_chain(&prepared);
    let found = problem::find(&demand, fabric, setup, machine);
    let own = schedule::limits(&prepared, fabric, (chain, repeats), found.cut.as_ref());
    let problem = match demand {
        // A pattern is its messages.
        Demand::Pattern(_) => Limits::known([found.limits.0, own.0.clone()].concat()),
        Demand::Collective(_) | Demand::Exchange { .. } => found.limits,
    };
    Ok((problem, own))
}
