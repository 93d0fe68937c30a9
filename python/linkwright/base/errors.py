"""Every error that a user can cause.

An error message names the thing, its state and the cure, in one or two sentences. The command line
prints it without a traceback and exits with `exit_status`. A broken invariant stays an ordinary Python
exception or a Rust panic and keeps its traceback, because it is a bug in linkwright.

Catch a class; tell its cases apart by `code`, a stable word such as `machine.unknown-key`.
`linkwright list errors` shows every code, class and meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

# Most names that an error message shows in full.
FEW = 12
# Names of at least this likeness, as difflib counts it, are near each other.
NEAR = 0.6


class LinkwrightError(Exception):
    """Any of the errors; `code` says which."""

    exit_status: int = 1
    code: str = "linkwright.failed"

    def __init__(self, message: str, *, code: str | None = None):
        super().__init__(message)
        if code is not None:
            self.code = code


class UsageError(LinkwrightError):
    """A command or call that is wrong in itself, such as a size that is not a number."""

    exit_status = 2
    code = "usage.wrong"


class UnknownNameError(UsageError):
    """A name that no registry has."""

    code = "usage.unknown-name"


class FileError(UsageError):
    """A machine, suite, program or schedule file with wrong content; the message names file, key and cure."""

    code = "file.wrong"


class PluginError(UsageError):
    """An installed package whose executor cannot be used."""

    code = "plugin.wrong"


class ShapeError(UsageError):
    """Ranks, root, grid or sizes that no algorithm can serve."""

    code = "shape.wrong"


class UnsuitedError(UsageError):
    """An experiment that the machine is too small for, or that cannot be folded or streamed."""

    code = "experiment.unsuited"


class NoLayoutError(LinkwrightError):
    """A search for layouts of a model of which none divides, or none fits into the memory of a GPU."""

    code = "llm.no-layout"


class NoPeakError(UsageError):
    """A GPU whose peak in the precision asked for no file and no table states."""

    code = "llm.no-peak"


class NoGpuError(UsageError):
    """A GPU was requested on a host that has none."""

    code = "cuda.no-gpu"


class NoMetaliumError(UsageError):
    """No environment, compiler, simulator or board that the executor `metalium` could use."""

    code = "metalium.no-device"


class StoreError(LinkwrightError):
    """A run folder that cannot be read or written."""

    code = "store.failed"


class BackendError(LinkwrightError):
    """Workers or a scheduler that cannot run experiments, or have stopped doing so."""

    code = "backend.failed"


class ScheduleError(LinkwrightError):
    """A schedule that cannot be built or is wrong."""

    code = "schedule.failed"


class WaivedError(ScheduleError):
    """An experiment that an algorithm, executor or model cannot serve; the message says why and what would do."""

    code = "experiment.waived"


class TooLargeError(WaivedError):
    """A schedule that does not fit into memory; the message says what would."""

    code = "experiment.too-large"


class OutOfTimeError(ScheduleError):
    """An experiment whose share of the time budget is too short; `need_s` seconds in a launch would do."""

    code = "experiment.out-of-time"

    def __init__(self, message: str, *, need_s: float, code: str | None = None):
        super().__init__(message, code=code)
        self.need_s = need_s


class VerifyError(ScheduleError):
    """A wrong schedule, which nothing simulates or runs."""

    code = "verify.failed"


class ExecError(LinkwrightError):
    """An execution that gave no number."""

    code = "exec.failed"


class WrongResultError(ExecError):
    """Wrong data or an impossible value; nothing is reported."""

    code = "exec.wrong-data"


class MpiError(ExecError):
    """An MPI library or job that cannot do what was asked; with `everywhere`, every rank finds the same."""

    code = "mpi.failed"

    def __init__(self, message: str, *, code: str | None = None, everywhere: bool = False):
        super().__init__(message, code=code)
        self.everywhere = everywhere


class CudaError(ExecError):
    """A GPU, driver or CUDA compiler that is missing or cannot do what was asked."""

    code = "cuda.failed"


class SimError(LinkwrightError):
    """A simulation that gave no number."""

    code = "sim.failed"


def entries() -> Iterator[Mapping[str, object]]:
    """Every code once: `key`, the `class` that carries it, and what it means (`summary`)."""
    from linkwright import _native

    defined = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, LinkwrightError)]
    for kind in defined:
        yield {"key": kind.code, "class": kind.__name__, "summary": kind.__doc__}
    yield from _native.errors()


def reported(message: str, code: str | None) -> LinkwrightError:
    """The exception of an error that another process, or a row, reports by its code."""
    classes = {str(entry["key"]): str(entry["class"]) for entry in entries()}
    made: LinkwrightError = globals()[classes.get(code or "", "LinkwrightError")](message, code=code)
    return made


def unknown(
    what: str, name: str, known: Iterable[str], *, where: str = "", lists: str | Sequence[str] = ()
) -> UnknownNameError:
    """The error for a `name` that is not a known `what`.

    It suggests the nearest known names, or shows all if they are few, and names the command that `lists` them. Without
    such a command it shows all.
    """
    known = sorted(set(known))
    commands = [lists] if isinstance(lists, str) else list(lists)
    shown = len(known) <= FEW or not commands
    if close := nearest(name, known):
        cure = f"did you mean {_quoted(close, ' or ')}?"
    else:
        cure = f"known: {_quoted(known) or 'none'}" if shown else f"{len(known)} are known"
    if commands and shown and not close:
        cure += f" ({_quoted(commands)})"
    elif commands:
        cure += f"{' ' if close else '; '}{_quoted(commands, ' and ')} {'shows' if len(commands) == 1 else 'show'} all"
    prefix = f"{where}: " if where else ""
    return UnknownNameError(f"{prefix}unknown {what} `{name}`; {cure}")


def check_known(
    what: str, name: str, known: Collection[str], *, where: str = "", lists: str | Sequence[str] = ()
) -> None:
    """Refuse a `name` that is not a known `what`; the arguments are those of `unknown`."""
    if name not in known:
        raise unknown(what, name, known, where=where, lists=lists)


def _quoted(names: Iterable[str], between: str = ", ") -> str:
    return between.join(f"`{name}`" for name in names)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """At most three of the `known` names that somebody who wrote `name` may have meant; none if none is near."""
    from difflib import SequenceMatcher  # only errors need it, and commands start faster without

    known = sorted(set(known))
    meant = name.casefold()  # `NVLink` means `nvlink`
    parts = {key: (key.casefold(), *key.casefold().split("-")) for key in known}  # `h100` begins a part of `hgx-h100`
    begun = [key for key in known if len(name) > 1 and any(part.startswith(meant) for part in parts[key])]
    if begun:  # `hgx-h100` before `h100-a3-high`, which says more than was written
        return sorted(begun, key=lambda key: (parts[key][-1] != meant, meant not in parts[key]))[:3]
    if len(name) > 2 * max(map(len, known), default=0):
        return []  # the comparison of a name of 100,000 characters would take seconds
    likeness = {key: SequenceMatcher(None, key, name).ratio() for key in known}
    enough = max(NEAR, max(likeness.values(), default=0.0) - 0.1)  # about as near as the nearest
    return [key for key in sorted(known, key=lambda key: -likeness[key]) if likeness[key] >= enough][:3]
