"""Every error that a user can cause.

An error message names the thing, the state and the cure, in one sentence or two. The command line
prints it without a traceback and exits with `exit_status`; a broken invariant is an ordinary Python
exception or a Rust panic and keeps its traceback, because that one is a bug of ours.

The native half raises these classes by name, one per error variant of the Rust crates.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LinkwrightError(Exception):
    """Something named, its state and what to do about it."""

    exit_status = 1
    code: str | None = None


class UsageError(LinkwrightError):
    """The command or call itself is wrong: an unknown name, a size that is none."""

    exit_status = 2


class UnknownNameError(UsageError):
    """A name that no registry knows."""


class StoreError(LinkwrightError):
    """A run folder that cannot be read or written."""


class BackendError(LinkwrightError):
    """Workers or a scheduler that cannot run experiments, or no longer."""


class SuiteError(UsageError):
    """A suite file that says something impossible."""


class AppError(UsageError):
    """A program file that says something impossible; names file, key and cure."""


class MachineError(UsageError):
    """A machine file that says something impossible; names file, key and cure."""


class ScheduleError(LinkwrightError):
    """A schedule that cannot be made or is wrong."""


class WaivedError(ScheduleError):
    """An algorithm that cannot serve this shape; says why and what would do."""


class ShapeError(UsageError):
    """Ranks, root, grid or sizes that no algorithm can serve."""


class NoParticipantError(ScheduleError):
    """An operation names a rank or memory that does not exist."""


class NoChunkError(ScheduleError):
    """An operation names a chunk that its participant does not have."""


class DoubleWriteError(ScheduleError):
    """Two operations of one step overwrite the same chunk."""


class OperationError(ScheduleError):
    """An operation that contradicts itself."""


class TooLargeError(ScheduleError):
    """A schedule that outgrows its tables."""


class ParseError(UsageError):
    """A text that is no schedule; names the line and the cure."""


class VerifyError(ScheduleError):
    """A wrong schedule: it yields no number anywhere."""


class WrongShapeError(VerifyError):
    """Buffers, sets or a spec that cannot be what the collective needs."""


class BoundsError(VerifyError):
    """An operation that names something that does not exist, or whose two sides differ."""


class OrderError(VerifyError):
    """An operation that waits for what cannot come or what its rank cannot see."""


class SemanticsError(VerifyError):
    """A chunk that lacks a contribution, has one twice, or has a wrong one."""


class RaceError(VerifyError):
    """Two accesses to one chunk that nothing orders, of which one writes."""


class ExecError(LinkwrightError):
    """An execution that gave no number."""


class ElementSizeError(ExecError):
    """A schedule made for elements of another size than the data type has."""


class UnequalChunksError(ExecError):
    """Source and destination of an operation differ in length."""


class OutOfBoundsError(ExecError):
    """An operation that reaches beyond its buffers."""


class BlindEdgeError(ExecError):
    """An operation waits for something that its rank cannot see happen."""


class NoProcessorError(ExecError):
    """A rank placed on a processor that this process may not use."""


class OutOfMemoryError(ExecError):
    """Buffers that need more memory than there is."""


class WrongResultError(ExecError):
    """Data that are not what the collective demands; such a run yields no number."""


class RankFailedError(ExecError):
    """A rank that ended before its work was done."""


class StuckError(ExecError):
    """Nothing moves any more, and not everything is done."""


class RoundTripError(ExecError):
    """Two processes that could not talk, or said something wrong; such a probe yields no number."""


class ImplausibleError(ExecError):
    """A value beyond a physical bound; such a probe yields no number."""


class CancelledError(ExecError):
    """Stopped before the first sample was complete."""


class MpiError(ExecError):
    """An MPI library, or a job of it, that cannot do what is asked; `everywhere`: every rank finds the same."""

    def __init__(self, message: str, *, everywhere: bool = False):
        super().__init__(message)
        self.everywhere = everywhere


class CudaError(ExecError):
    """A GPU, its driver or its compiler that is not there, or cannot do what is asked."""


class NoGpuError(UsageError):
    """A GPU is asked for where there is none."""


class SimError(LinkwrightError):
    """A simulation that gave no number."""


class NotFusedError(SimError):
    """A transfer that combines, on a path that only copies."""


class TooLongError(SimError):
    """More simulated time than the engine counts."""


class NoRouteError(SimError):
    """A message between endpoints that the machine does not connect."""


class NoBarrierError(SimError):
    """A barrier, on a fabric that has none."""


class NoComputeRateError(SimError):
    """Arithmetic without a rate to time it."""


class NoRoomError(UsageError):
    """A message is larger than the memory at one of its ends."""


class TooFewEndpointsError(UsageError):
    """More ranks or memories than the machine has places for."""


class OptionError(UsageError):
    """An option of a run that makes no sense."""


class UnsuitedError(UsageError):
    """Something that cannot be folded or streamed, because ranks, endpoints or options make a difference."""


class BelowLimitError(SimError):
    """A simulated time that physics forbids; a bug of the model."""


def unknown(what: str, name: str, known: Iterable[str], *, where: str = "") -> UnknownNameError:
    """The error for `name`, which is no `what`, with the closest known names as the cure."""
    known = sorted(set(known))
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        cure = "did you mean " + " or ".join(f"`{c}`" for c in close) + "?"
    elif len(known) <= 12:
        cure = "known: " + (", ".join(f"`{k}`" for k in known) or "none")
    else:
        cure = f"{len(known)} are known; `linkwright list` names them"
    prefix = f"{where}: " if where else ""
    return UnknownNameError(f"{prefix}unknown {what} `{name}`; {cure}")
