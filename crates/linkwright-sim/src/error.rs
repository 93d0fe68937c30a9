//! What can be wrong with a simulation.

use linkwright_core::probes::ProbeError;
use linkwright_core::skew::SkewError;
use linkwright_core::{MachineError, TimePs};
use linkwright_schedule::{ScheduleError, VerifyError};
use thiserror::Error;

/// An error about a simulation; every variant names the thing, its state and the cure.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimError {
    /// The machine file is wrong, or lacks what its fabric needs.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A transform of the schedule failed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The schedule is wrong.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Nothing can happen any more, and not everything is done.
    #[error("stuck at {at}: {unfinished} operations are unfinished; {}; order the schedule so that every wait is for a smaller operation, or give the fabric more buffers", .waiting.join("; "))]
    Stuck {
        /// Time of the last event.
        at: TimePs,
        /// Operations neither finished nor delivered.
        unfinished: usize,
        /// Which messages wait for what, the first few.
        waiting: Vec<String>,
    },
    /// More simulated time than the engine counts.
    #[error("the simulation has come to {at}, and 26 days are the most; simulate less data or fewer repetitions")]
    TooLong {
        /// Time reached.
        at: TimePs,
    },
    /// More packets than a simulation gets through in some minutes.
    #[error("this schedule is {pieces} packets, which this fabric moves one by one, and {most} are the most; simulate smaller messages or fewer ranks")]
    TooMuch {
        /// Packets, or lines of a bus.
        pieces: u64,
        /// The most that are simulated.
        most: u64,
    },
    /// A simulation that passed the time after which it was to stop.
    #[error("the simulation has come to {at}, beyond the time at which it was to stop; ask for a later one")]
    Stopped {
        /// Time reached.
        at: TimePs,
    },
    /// A wait that the initiator cannot see happen.
    #[error("operation {op} at rank {rank} waits for operation {earlier}, which it cannot see complete; order the schedule, which adds a notice")]
    Invisible {
        /// The waiting operation.
        op: u32,
        /// Its initiator.
        rank: u32,
        /// The operation waited for.
        earlier: u32,
    },
    /// A message between endpoints that the machine does not connect.
    #[error("operation {op}: {problem}")]
    NoRoute {
        /// The operation.
        op: u32,
        /// Which endpoints, and the cure.
        problem: String,
    },
    /// A transfer that combines, on a path that only copies.
    #[error("operation {op} (step {step}) combines at its target, but path `{path}` only copies; `lowered` makes it a copy and a local combination")]
    NotFused {
        /// The operation.
        op: u32,
        /// Its step.
        step: u32,
        /// The path.
        path: String,
    },
    /// A barrier, on a fabric without a hardware barrier.
    #[error("operation {op} is a barrier over {ranks} ranks, but the fabric has no hardware barrier; `lowered` makes it notices")]
    NoBarrier {
        /// The operation.
        op: u32,
        /// Members of the barrier.
        ranks: usize,
    },
    /// Arithmetic without a rate to time it.
    #[error(
        "operation {op} computes, but the run gives no rate of operations; set `operations_per_s`"
    )]
    NoComputeRate {
        /// The operation.
        op: u32,
    },
    /// The machine has fewer places than the schedule has participants.
    #[error("the schedule has {wanted} {what}, machine `{machine}` has {there}; {cure}")]
    TooFewEndpoints {
        /// `ranks` or `memories`.
        what: &'static str,
        /// Participants of the schedule.
        wanted: usize,
        /// Endpoints of the machine.
        there: usize,
        /// Name of the machine.
        machine: String,
        /// What to do.
        cure: &'static str,
    },
    /// A vector that, with the receive buffer of a path's protocol, is larger than the memory of a rank.
    #[error(
        "a vector of {bytes} B and its receive buffer do not fit `{endpoint}`, which has {room} B, as path `{path}` \
         needs them; use smaller vectors or another path"
    )]
    NoBuffer {
        /// Size of the vector.
        bytes: u64,
        /// Name of the endpoint.
        endpoint: String,
        /// Its memory.
        room: u64,
        /// Name of the path.
        path: String,
    },
    /// A message that is larger than the memory of one of its ends.
    #[error("a message of {bytes} B does not fit `{endpoint}`, which has {room} B; use smaller messages")]
    NoRoom {
        /// Size of the message.
        bytes: u64,
        /// Name of the endpoint.
        endpoint: String,
        /// Its memory.
        room: u64,
    },
    /// A collective whose buffers together are larger than the memory of a participant.
    #[error("the buffers of this schedule need {bytes} B of `{endpoint}`, scratch included, which has {room} B; use smaller vectors or an algorithm with less scratch")]
    NoMemory {
        /// Size of all buffers there.
        bytes: u64,
        /// Name of the endpoint.
        endpoint: String,
        /// Its memory.
        room: u64,
    },
    /// No such path.
    #[error("no path `{name}`{}; known: {known}", .nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// Closest known name.
        nearest: Option<String>,
        /// All known names.
        known: String,
    },
    /// A machine without the devices, or the chips, that were asked for.
    #[error("{0}")]
    NoDevice(String),
    /// A program of which one rank cannot represent all.
    #[error("cannot be folded: {problem}")]
    Unsuited {
        /// Why not, and the cure.
        problem: String,
    },
    /// An option of the run that makes no sense.
    #[error("option `{option}`: {problem}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// What is wrong, and the cure.
        problem: String,
    },
    /// Arrival times that do not suit the ranks.
    #[error(transparent)]
    Skew(#[from] SkewError),
    /// A question about a probe that cannot be asked.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A probe that the machine's parameters do not answer; no failure of the user.
    #[error("probe {probe}: waived: {reason}")]
    Waived {
        /// Key of the probe.
        probe: &'static str,
        /// Why, and what would do.
        reason: String,
    },
    /// A result that physics forbids: the model is wrong, so it yields no number.
    #[error("simulated time {time} is below the {limit} limit of {bound} ({what}): a bug of fabric `{fabric}`, please report it with the machine file")]
    BelowLimit {
        /// What the simulation gave.
        time: TimePs,
        /// Name of the limit.
        limit: &'static str,
        /// What it is about.
        what: String,
        /// Its value.
        bound: TimePs,
        /// The fabric.
        fabric: String,
    },
}

impl SimError {
    /// The error of a path that a machine lacks.
    pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let scored = known.clone().map(|k| (strsim::jaro_winkler(name, k), k));
        let nearest = scored.max_by(|a, b| a.0.total_cmp(&b.0));
        SimError::Unknown {
            name: name.to_string(),
            nearest: nearest.filter(|n| n.0 > 0.8).map(|n| n.1.to_string()),
            known: known.collect::<Vec<_>>().join(", "),
        }
    }
}
