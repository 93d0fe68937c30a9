//! Rust errors as the exceptions of `linkwright.errors`.

use linkwright_core::error::MachineError;
use linkwright_core::probes::ProbeError;
use linkwright_core::skew::SkewError;
use linkwright_exec::ExecError;
use linkwright_schedule::{ScheduleError, VerifyError};
use linkwright_sim::SimError;
use pyo3::prelude::*;

/// The exception `class` of `linkwright.errors` with this message.
pub fn raise(class: &str, message: impl std::fmt::Display) -> PyErr {
    let message = message.to_string();
    Python::attach(|py| {
        let made = py
            .import("linkwright.errors")
            .and_then(|module| module.getattr(class))
            .and_then(|class| class.call1((message,)));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    })
}

/// A machine file that is wrong.
pub fn machine(error: MachineError) -> PyErr {
    raise("MachineError", error)
}

/// A question about a probe that cannot be asked.
pub fn probe(error: ProbeError) -> PyErr {
    let class = match error {
        ProbeError::Unknown { .. } => "UnknownNameError",
        ProbeError::BadValue { .. } => "UsageError",
    };
    raise(class, error)
}

/// Arrival times that nobody understands, or that do not suit the ranks.
pub fn skew(error: SkewError) -> PyErr {
    let class = match error {
        SkewError::Text(_) => "UsageError",
        SkewError::NoRank { .. } | SkewError::Count { .. } => "OptionError",
    };
    raise(class, error)
}

/// A schedule that cannot be made, one class per kind of mistake.
pub fn schedule(error: ScheduleError) -> PyErr {
    let class = match error {
        ScheduleError::Waived { .. } => "WaivedError",
        ScheduleError::UnknownAlgorithm { .. } | ScheduleError::UnknownPattern { .. } => {
            "UnknownNameError"
        }
        ScheduleError::Shape(_) => "ShapeError",
        ScheduleError::NoParticipant { .. } => "NoParticipantError",
        ScheduleError::NoChunk { .. } => "NoChunkError",
        ScheduleError::DoubleWrite { .. } => "DoubleWriteError",
        ScheduleError::Operation { .. } => "OperationError",
        ScheduleError::TooLarge(_) => "TooLargeError",
    };
    raise(class, error)
}

/// An execution that failed, one class per kind of failure.
pub fn exec(error: ExecError) -> PyErr {
    let class = match error {
        ExecError::Waived { .. } => "WaivedError",
        ExecError::ElementSize { .. } => "ElementSizeError",
        ExecError::UnequalChunks { .. } => "UnequalChunksError",
        ExecError::OutOfBounds { .. } => "OutOfBoundsError",
        ExecError::BlindEdge { .. } => "BlindEdgeError",
        ExecError::NoProcessor { .. } => "NoProcessorError",
        ExecError::TooLarge { .. } => "OutOfMemoryError",
        ExecError::WrongResult { .. } => "WrongResultError",
        ExecError::RankFailed { .. } => "RankFailedError",
        ExecError::Stuck { .. } => "StuckError",
        ExecError::RankCount { .. } => "ShapeError",
        ExecError::NoMpiFunction { .. } | ExecError::Mpi { .. } => "MpiError",
        ExecError::Probe(inner) => return probe(inner),
        ExecError::Skew(inner) => return skew(inner),
        ExecError::Implausible { .. } => "ImplausibleError",
        ExecError::RoundTrip { .. } => "RoundTripError",
        ExecError::Cancelled => "CancelledError",
    };
    raise(class, error)
}

/// A schedule that is wrong, one class per property that it lacks.
pub fn verify(error: VerifyError) -> PyErr {
    let class = match error {
        VerifyError::Shape(_) => "WrongShapeError",
        VerifyError::Bounds { .. } => "BoundsError",
        VerifyError::Order { .. } => "OrderError",
        VerifyError::Semantics { .. } => "SemanticsError",
        VerifyError::Race { .. } => "RaceError",
    };
    raise(class, error)
}

/// A simulation that failed, one class per kind of failure.
pub fn sim(error: SimError) -> PyErr {
    let class = match error {
        SimError::Machine(inner) => return machine(inner),
        SimError::Schedule(inner) => return schedule(inner),
        SimError::Probe(inner) => return probe(inner),
        SimError::Waived { .. } => "WaivedError",
        SimError::Stuck { .. } => "StuckError",
        SimError::TooLong { .. } => "TooLongError",
        SimError::Invisible { .. } => "BlindEdgeError",
        SimError::NoRoute { .. } => "NoRouteError",
        SimError::NotFused { .. } => "NotFusedError",
        SimError::NoBarrier { .. } => "NoBarrierError",
        SimError::NoComputeRate { .. } => "NoComputeRateError",
        SimError::TooFewEndpoints { .. } => "TooFewEndpointsError",
        SimError::NoRoom { .. } => "NoRoomError",
        SimError::Unknown { .. } => "UnknownNameError",
        SimError::NoDevice(_) => "UsageError",
        SimError::Skew(inner) => return skew(inner),
        SimError::Option { .. } => "OptionError",
        SimError::Unsuited { .. } => "UnsuitedError",
        SimError::BelowLimit { .. } => "BelowLimitError",
    };
    raise(class, error)
}
