//! What can go wrong when a schedule is executed. Every error ends the experiment without a number.

use crate::dtype::DType;
use linkwright_core::skew::SkewError;

/// Result of everything that executes.
pub type Result<T, E = ExecError> = std::result::Result<T, E>;

/// An error of execution; names the thing, its state and the cure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each message names its fields")]
pub enum ExecError {
    /// The executor cannot serve this schedule; this is not a failure.
    #[error("{executor}: waived: {reason}")]
    Waived {
        executor: &'static str,
        reason: String,
    },
    /// Arrival times that do not suit the ranks.
    #[error(transparent)]
    Skew(#[from] SkewError),
    /// The schedule was made for elements of another size.
    #[error("the schedule moves elements of {element_bytes} bytes and {dtype} has {}; make it with the element size of the data type", .dtype.size())]
    ElementSize { dtype: DType, element_bytes: u32 },
    /// An allreduce that repeats itself in place, beyond the integers of a float type.
    #[error("{repeats} runs of an allreduce in place over {ranks} ranks count each contribution {ranks}^{} times, and {dtype} has no integers that large; use an integer type or fewer repetitions", .repeats - 1)]
    Uncountable {
        repeats: u32,
        ranks: u32,
        dtype: DType,
    },
    /// Source and destination of an operation differ in length.
    #[error("operation {op}: {source_bytes} bytes go into {destination_bytes}; the chunks of both buffers must be cut alike")]
    UnequalChunks {
        op: u32,
        source_bytes: u64,
        destination_bytes: u64,
    },
    /// An operation that leaves its buffers.
    #[error("operation {op} reaches outside the buffers of participant {participant}; verify the schedule")]
    OutOfBounds { op: u32, participant: u32 },
    /// An edge that the waiting rank cannot see.
    #[error("rank {rank} waits for operation {op}, but is neither its initiator nor its destination; add a notice")]
    BlindEdge { op: u32, rank: u32 },
    /// A processor that this process may not use.
    #[error("rank {rank} is placed on processor {cpu}, which is not among those this process may use ({allowed}); place it on one of them")]
    NoProcessor {
        rank: usize,
        cpu: u32,
        allowed: String,
    },
    /// More memory than there is.
    #[error("the buffers of {ranks} ranks need {needed_bytes} bytes and {available_bytes} are available; use fewer ranks or a smaller size")]
    TooLarge {
        ranks: u32,
        needed_bytes: u128,
        available_bytes: u64,
    },
    /// The data are not what the collective demands.
    #[error("rank {rank}: {buffer}[{chunk}] is wrong in {wrong} of {elements} elements after {executor} ran the schedule; no time is reported; run `linkwright verify` on the schedule")]
    WrongResult {
        executor: &'static str,
        rank: u32,
        buffer: String,
        chunk: u32,
        wrong: usize,
        elements: usize,
    },
    /// A rank ended with a panic; the others were released.
    #[error("rank {rank} failed: {message}; the other ranks were released and the sample is lost")]
    RankFailed { rank: u32, message: String },
    /// Nothing moved for a long time.
    #[error("no rank finished anything for {seconds} s: {waiting}; verify the schedule, or give more time to an overloaded machine")]
    Stuck { seconds: u64, waiting: String },
    /// A schedule for another number of ranks than are there.
    #[error("the schedule has {schedule} ranks and {group} processes are to run it; start as many with `mpirun -np {schedule}`")]
    RankCount { schedule: u32, group: u32 },
    /// The MPI library lacks a function that we call.
    #[error("the MPI library has no MPI_{name}; use Open MPI 4 or newer, or MPICH 3 or newer")]
    NoMpiFunction { name: String },
    /// A call of the MPI library failed.
    #[error("MPI_{function} failed with code {code}; the library's own message says why, and `mpirun` how its processes ended")]
    Mpi { function: &'static str, code: i32 },
    /// A probe, axis or value that does not exist.
    #[error(transparent)]
    Probe(#[from] linkwright_core::probes::ProbeError),
    /// A value beyond a physical bound.
    #[error("probe {probe}: {found_ns:.3} ns is below {bound}, {floor_ns:.3} ns; no value is reported; did the clock change during the measurement?")]
    Implausible {
        probe: &'static str,
        found_ns: f64,
        floor_ns: f64,
        bound: &'static str,
    },
    /// A round trip between two processes that did not work.
    #[error("transport {transport}: {reason}")]
    RoundTrip {
        transport: &'static str,
        reason: String,
    },
    /// The caller asked to stop.
    #[error("cancelled before the first sample was complete")]
    Cancelled,
}
