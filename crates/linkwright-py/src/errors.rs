//! Rust errors as the exceptions of `linkwright.base.errors`: one row per variant.

use linkwright_core::error::{MachineError, UnknownName, VariantError};
use linkwright_core::issue::IssueError;
use linkwright_core::probes::ProbeError;
use linkwright_core::skew::SkewError;
use linkwright_exec::ExecError;
use linkwright_plans::PlanError;
use linkwright_schedule::text::ParseError;
use linkwright_schedule::{ScheduleError, VerifyError};
use linkwright_sim::SimError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::hints::{self, row, Typed};

/// What Python knows of one kind of error.
struct Kind {
    code: &'static str,
    class: &'static str,
    meaning: &'static str,
}

/// The exception `class` of `linkwright.base.errors` with this message and the code of its class.
pub fn raise(class: &str, message: impl std::fmt::Display) -> PyErr {
    exception(class, None, &message.to_string())
}

fn exception(class: &str, code: Option<&str>, message: &str) -> PyErr {
    Python::attach(|py| {
        let keywords = PyDict::new(py);
        let made = keywords
            .set_item("code", code)
            .and_then(|()| py.import("linkwright.base.errors"))
            .and_then(|module| module.getattr(class))
            .and_then(|class| class.call((message,), Some(&keywords)));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    })
}

/// From one enum, the function that makes its exceptions and the list of its kinds.
macro_rules! kinds {
    ($function:ident, $list:ident: $error:ident {
        $($variant:ident => $class:literal, $code:literal, $meaning:literal;)*
        $(..$wrapped:ident => $inner:ident;)*
    }) => {
        const $list: &[Kind] =
            &[$(Kind { code: $code, class: $class, meaning: $meaning }),*];

        /// The exception of this error.
        pub fn $function(error: $error) -> PyErr {
            let (class, code) = match &error {
                $($error::$variant { .. } => ($class, $code),)*
                $($error::$wrapped(inner) => return $inner(inner.clone()),)*
            };
            exception(class, Some(code), &error.to_string())
        }
    };
}

kinds!(machine, MACHINE: MachineError {
    Syntax => "FileError", "machine.syntax", "A machine file that is not TOML.";
    UnknownKey => "FileError", "machine.unknown-key", "A key that nothing reads.";
    MissingKey => "FileError", "machine.missing-key", "A required key that is missing.";
    WrongType => "FileError", "machine.wrong-type", "A value of the wrong type, such as text for a number.";
    UnknownUnit => "FileError", "machine.unknown-unit", "A unit that is not in the list of units.";
    WrongDimension => "FileError", "machine.wrong-dimension", "A unit of the wrong quantity, such as a time for a rate.";
    BadValue => "FileError", "machine.bad-value", "A value outside its range.";
    UnknownChoice => "FileError", "machine.unknown-choice", "A word outside a closed list, such as a status.";
    NoClock => "FileError", "machine.no-clock", "A number in cycles on a machine that states no clock.";
    Inconsistent => "FileError", "machine.inconsistent", "Two statements that exclude each other.";
    WrongSize => "FileError", "machine.wrong-size", "A size that the machine cannot have.";
    ..Variant => variant;
});

/// The exception of a variant that there is not; Python knows which names are near a wrong one.
fn variant(error: VariantError) -> PyErr {
    let VariantError::Unknown(unknown) = error else {
        return raise("UsageError", error);
    };
    let UnknownName {
        at,
        what,
        name,
        known,
        otherwise,
    } = *unknown;
    let made = Python::attach(|py| -> PyResult<PyErr> {
        let module = py.import("linkwright.base.errors")?;
        if let Some(message) = otherwise {
            let near: Vec<String> = module.call_method1("nearest", (&name, &known))?.extract()?;
            if near.is_empty() {
                return Ok(raise("UsageError", message));
            }
        }
        let keywords = PyDict::new(py);
        keywords.set_item("where", at)?;
        let made = module.call_method("unknown", (what, name, known), Some(&keywords))?;
        Ok(PyErr::from_value(made))
    });
    made.unwrap_or_else(|error| error)
}

kinds!(probe, PROBE: ProbeError {
    Unknown => "UnknownNameError", "probe.unknown", "A probe or axis that does not exist.";
    BadValue => "UsageError", "probe.bad-value", "A value that the axis of a probe cannot take.";
});

kinds!(issue, ISSUE: IssueError {
    Text => "UsageError", "issue.syntax", "An issue policy in a form that does not exist.";
});

kinds!(skew, SKEW: SkewError {
    Text => "UsageError", "skew.syntax", "Arrival times in a form that does not exist.";
    NoRank => "UsageError", "skew.no-rank", "A late rank that does not exist.";
    Count => "UsageError", "skew.count", "A list of arrival times that is shorter or longer than the ranks.";
});

kinds!(schedule, SCHEDULE: ScheduleError {
    Waived => "WaivedError", "schedule.waived", "An algorithm that cannot serve this shape.";
    UnknownAlgorithm => "UnknownNameError", "schedule.unknown-algorithm", "An algorithm that does not exist.";
    UnknownPattern => "UnknownNameError", "schedule.unknown-pattern", "A traffic pattern that does not exist.";
    Shape => "ShapeError", "schedule.shape", "Ranks, root, grid or sizes that make no sense together.";
    NoParticipant => "ScheduleError", "schedule.no-participant", "An operation that names a rank or memory that does not exist.";
    NoChunk => "ScheduleError", "schedule.no-chunk", "An operation that names a chunk its participant does not have.";
    DoubleWrite => "ScheduleError", "schedule.double-write", "Two operations of one step that overwrite the same chunk.";
    Operation => "ScheduleError", "schedule.operation", "An operation that contradicts itself.";
    TooLarge => "ScheduleError", "schedule.too-large", "A schedule that outgrows its tables.";
    Unwanted => "ScheduleError", "schedule.unwanted", "A schedule that was abandoned in the making.";
});

const FILES: &[Kind] = &[SYNTAX, INEXPRESSIBLE];
const SYNTAX: Kind = Kind {
    code: "schedule.syntax",
    class: "FileError",
    meaning:
        "Text that is not a schedule, or a wrong plan; the message names the line or the element.",
};
const INEXPRESSIBLE: Kind = Kind {
    code: "schedule.inexpressible",
    class: "WaivedError",
    meaning: "A schedule that a format of another tool cannot express.",
};

/// The exception of text in `file` that is not a schedule.
pub fn parse(file: &str, error: &ParseError) -> PyErr {
    exception(SYNTAX.class, Some(SYNTAX.code), &format!("{file}: {error}"))
}

/// The exception of a plan in `file` that is wrong.
pub fn plan(file: &str, error: &PlanError) -> PyErr {
    exception(SYNTAX.class, Some(SYNTAX.code), &format!("{file}: {error}"))
}

/// The exception of a schedule that `format` cannot express.
pub fn inexpressible(format: &str, error: &PlanError) -> PyErr {
    exception(
        INEXPRESSIBLE.class,
        Some(INEXPRESSIBLE.code),
        &format!("{format}: {error}"),
    )
}

kinds!(verify, VERIFY: VerifyError {
    Shape => "VerifyError", "verify.shape", "Buffers, sets or a spec that do not fit the collective.";
    Bounds => "VerifyError", "verify.bounds", "An operation that names something that does not exist, or whose two sides differ.";
    Order => "VerifyError", "verify.order", "An operation that waits for what cannot come or what its rank cannot see.";
    Semantics => "VerifyError", "verify.semantics", "A chunk that lacks a contribution, has one twice, or has a wrong one.";
    Race => "VerifyError", "verify.race", "Two unordered accesses to one chunk, at least one of them a write.";
});

kinds!(exec, EXEC: ExecError {
    Waived => "WaivedError", "exec.waived", "An executor or probe that cannot serve this experiment.";
    ElementSize => "ExecError", "exec.element-size", "A schedule built for elements of another size than the data type has.";
    Uncountable => "ExecError", "exec.uncountable", "Repetitions of an allreduce in place that count beyond the integers of a float type.";
    UnequalChunks => "ExecError", "exec.unequal-chunks", "An operation whose source and destination differ in length.";
    OutOfBounds => "ExecError", "exec.out-of-bounds", "An operation that reaches beyond its buffers.";
    BlindEdge => "ExecError", "exec.blind-edge", "An operation that waits for something its rank cannot see.";
    NoProcessor => "ExecError", "exec.no-processor", "A rank placed on a processor that this process may not use.";
    TooLarge => "ExecError", "exec.out-of-memory", "Buffers that need more memory than is available.";
    WrongResult => "WrongResultError", "exec.wrong-result", "Buffers that do not hold what the collective demands.";
    RankFailed => "ExecError", "exec.rank-failed", "A rank that ended before its work was done.";
    Stuck => "ExecError", "exec.stuck", "A run in which no rank makes progress.";
    RankCount => "ShapeError", "exec.rank-count", "A schedule for another number of ranks than there are processes.";
    NoMpiFunction => "MpiError", "mpi.no-function", "An MPI library that lacks a function.";
    Mpi => "MpiError", "mpi.call-failed", "A call of the MPI library that failed.";
    Implausible => "WrongResultError", "exec.implausible", "A value beyond a physical bound.";
    RoundTrip => "ExecError", "exec.round-trip", "Two processes that could not exchange messages correctly.";
    Cancelled => "ExecError", "exec.cancelled", "A run stopped before its first sample was complete.";
    ..Skew => skew;
    ..Probe => probe;
});

// A simulation that is stuck or waits blindly found a fault of the schedule, as an execution does.
kinds!(sim, SIM: SimError {
    Waived => "WaivedError", "sim.waived", "A probe that the machine file has no model for.";
    Stuck => "ExecError", "sim.stuck", "A simulation in which nothing more can happen, with operations unfinished.";
    Invisible => "ExecError", "sim.blind-edge", "A simulated operation that waits for something its rank cannot see.";
    TooLong => "SimError", "sim.too-long", "More simulated time than the engine counts.";
    TooMuch => "UnsuitedError", "sim.too-much", "More packets than a simulation gets through in some minutes.";
    Stopped => "SimError", "sim.stopped", "A simulation that passed the time at which it was to stop.";
    NoRoute => "SimError", "sim.no-route", "A message between endpoints that the machine does not connect.";
    NotFused => "SimError", "sim.not-fused", "A transfer that combines, on a path that only copies.";
    NoBarrier => "SimError", "sim.no-barrier", "A barrier on a fabric that has none.";
    NoComputeRate => "SimError", "sim.no-compute-rate", "Arithmetic without a rate to time it.";
    TooFewEndpoints => "UnsuitedError", "sim.too-few-endpoints", "More ranks or memories than the machine has.";
    NoBuffer => "UnsuitedError", "sim.no-buffer", "A vector that with its receive buffer is larger than the memory of a rank.";
    NoMemory => "UnsuitedError", "sim.no-memory", "A collective whose buffers together are larger than the memory of a rank.";
    NoRoom => "UnsuitedError", "sim.no-room", "A message larger than the memory at one of its ends.";
    Unsuited => "UnsuitedError", "sim.unsuited", "A program of which one rank cannot represent all.";
    Unknown => "UnknownNameError", "sim.unknown-path", "A path that the machine does not have.";
    NoDevice => "UsageError", "sim.no-device", "Chips or devices that the machine does not have.";
    Option => "UsageError", "sim.option", "An option of a simulation that makes no sense.";
    BelowLimit => "SimError", "sim.below-limit", "A simulated time that physics forbids: a bug in the model.";
    ..Machine => machine;
    ..Schedule => schedule;
    ..Verify => verify;
    ..Skew => skew;
    ..Probe => probe;
});

/// Every kind of error that the native module raises: `key` (its code), `class` and `summary`.
#[pyfunction]
#[pyo3(name = "errors")]
pub fn kinds(py: Python<'_>) -> PyResult<Vec<Typed<'_, hints::ErrorRow>>> {
    let all = [
        MACHINE, PROBE, ISSUE, SKEW, SCHEDULE, FILES, VERIFY, EXEC, SIM,
    ];
    let row = |kind: &Kind| {
        Ok(row!(
            py,
            key = kind.code,
            class = kind.class,
            summary = kind.meaning
        ))
    };
    all.into_iter().flatten().map(row).collect()
}
