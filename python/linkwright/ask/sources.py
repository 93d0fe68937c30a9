"""User-supplied schedules, accepted wherever an algorithm is named.

    own.lw, plan.xml, -             a schedule or a plan of another tool, in a file or on standard input
    own.py:bucket, package:bucket   a Python function, called for each question
    allreduce/bucket                an installed package's, by its entry point in the group `linkwright.algorithms`

A source builds the schedule of each question in the process where it was named. Whatever runs it,
perhaps in another process or on another machine, gets that schedule and never the source.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from linkwright import _native
from linkwright.ask.question import Collective, Own, Program, Question, changed, collectives, dtype_of
from linkwright.base.errors import (
    FileError,
    LinkwrightError,
    ScheduleError,
    UsageError,
    VerifyError,
    WaivedError,
    reported,
    unknown,
)
from linkwright.base.files import decoded, shown_name, unpacked
from linkwright.base.units import format_size

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "linkwright.algorithms"
STDIN = "-"
# Parameters that a function may have.
PARAMETERS = ("ranks", "size", "dtype", "root", "grid")
_FIELDS = {"size": "size_bytes"}  # parameter -> field of a question, where they differ
OWN_FORMAT = ".lw"
# Maximum length of a text: room for some million operations.
MAX_CHARACTERS = 1 << 28


class Source(Protocol):
    """Where schedules come from."""

    label: str  # what rows and tables call the algorithm
    ranks: int | None  # None: it serves any number
    size_bytes: int | None  # None: it has no size of its own

    def ready(self) -> None:
        """Load whatever builds schedules; raise errors that do not depend on the question."""

    def at(self, asked: Collective | Program) -> _native.Schedule:
        """Return the schedule for the ranks, size, data type, root and grid of `asked`."""


def is_source(name: str) -> bool:
    """Whether `name` is written like a source: with a colon, as a path, or with the suffix of a file of schedules."""
    return name == STDIN or ":" in name or name.startswith((".", "/")) or Path(name).suffix in _suffixes()


def is_named_so(name: str) -> bool:
    """Whether a file has the suffix of schedules, plans or Python."""
    return Path(name).suffix in _suffixes()


def within(folder: Path, name: str) -> str:
    """Return the source `name` of a file in `folder`, relative to the current folder."""
    path, colon, function = name.rpartition(":") if ":" in name else (name, "", "")
    is_path = path != STDIN and is_source(name) and (path.endswith(".py") or not colon)
    return f"{folder / path}{colon}{function}" if is_path else name


@functools.cache
def _suffixes() -> frozenset[str]:
    return frozenset([".py", *(str(row["suffix"]) for row in _native.plan_formats())])


@functools.cache
def find(name: str) -> Source:
    """Return the source called `name`; files and modules are read once, and code runs only when needed."""
    path, colon, function = name.rpartition(":")
    if colon:
        return Function(shown_name(Path(path).name) + colon + function, functools.partial(_function, path, function))
    return File.read(name)


def package(key: str) -> Source | None:
    """Return the algorithm `COLLECTIVE/NAME` of an installed package, if there is one."""
    for point in _entry_points():
        if _key(point) == key:
            return Function(key.rpartition("/")[2], functools.partial(_loaded, point))
    return None


def packaged() -> list[dict[str, object]]:
    """Return the algorithms of installed packages as `list` and `describe` print them, without running their code."""
    return [
        {"key": _key(point), "collective": _key(point).partition("/")[0], "name": _key(point).partition("/")[2],
         "summary": f"of the package {_origin(point)}: {point.value}", "origin": _origin(point), "folds": False}
        for point in _entry_points()
    ]  # fmt: skip


def of(source: Source, asked: Collective | Program) -> Question:
    """Return `asked` by a source; a program becomes what its schedule is. An error takes the place of the schedule."""
    source.ready()
    try:
        schedule = source.at(asked)
    except LinkwrightError as error:
        return dataclasses.replace(asked, algorithm=source.label, own=Own(error=error))
    traffic = schedule.collective == "pattern"
    return changed(
        asked,
        algorithm=source.label,
        collective=None if traffic else schedule.collective,
        size_bytes=moved_bytes(schedule) if traffic else schedule.size_bytes,
        dtype=asked.dtype if asked.element_bytes == schedule.element_bytes else dtype_of(schedule.element_bytes),
        op=(asked.op or "sum") if schedule.collective in ("allreduce", "reduce", "reduce_scatter") else None,
        root=schedule.root,
        asked_bytes=None if traffic else getattr(asked, "asked_bytes", None),
        own=Own(schedule),
    )


def moved_bytes(schedule: _native.Schedule) -> int:
    """Return the bytes of all messages of a schedule."""
    table = schedule.operations()
    return int(table["bytes"][table["from"] != table["to"]].sum())


@dataclass(frozen=True)
class File:
    """A schedule in a file, for a fixed number of ranks; its chunks are fractions of a vector, so any size works."""

    label: str
    schedule: _native.Schedule
    size_bytes: int | None

    @property
    def ranks(self) -> int:
        """The ranks that the schedule is written for."""
        return self.schedule.ranks

    @classmethod
    def read(cls, name: str) -> File:
        """Read the file or standard input, in any known format."""
        label = "stdin" if name == STDIN else shown_name(Path(name).name)
        if label.endswith(".py"):
            raise UsageError(f"{name}: name a function in it as well, such as `{name}:allreduce`")
        schedule = _native.read_schedule(_text(name), label)
        sized = label.endswith(OWN_FORMAT) or schedule.collective == "pattern" or name == STDIN
        return cls(label, schedule, schedule.size_bytes if sized else None)

    def ready(self) -> None:
        """Do nothing: the file has been read."""

    def at(self, asked: Collective | Program) -> _native.Schedule:
        """Return the schedule at the requested size, or at its own."""
        if asked.ranks != self.ranks:
            raise WaivedError(f"{self.label}: is a schedule for {self.ranks} ranks, not for {asked.ranks}")
        if asked.root not in (0, self.schedule.root):
            raise WaivedError(f"{self.label}: starts or ends at rank {self.schedule.root}, not at {asked.root}")
        if asked.size_bytes is None:
            return self.schedule
        if self.schedule.collective == "pattern":
            raise WaivedError(f"{self.label}: is traffic, whose messages have their own sizes; omit the size")
        _check_collective(self.label, self.schedule, asked)
        made = self.schedule.resized(asked.elements, asked.element_bytes)
        self._check_cut(made, asked)
        return made

    def _check_cut(self, made: _native.Schedule, asked: Collective | Program) -> None:
        """Check that chunks of different buffers that meet are equally long, which is so at some sizes only."""
        elements = max(1, self.schedule.size_bytes // self.schedule.element_bytes)
        if asked.elements % elements == 0:
            return
        try:
            made.verify()
        except VerifyError as error:
            step = elements * asked.element_bytes
            near = max(step, asked.size_bytes // step * step)
            raise WaivedError(
                f"{self.label}: its chunks do not divide {asked.size_bytes} B; ask for a multiple of {step} B, "
                f"such as {near} B"
            ) from error


@dataclass(frozen=True)
class Function:
    """A Python function that returns a schedule; it is loaded when the first one is needed."""

    label: str
    load: Callable[[], Callable]
    ranks: int | None = None
    size_bytes: int | None = None

    def ready(self) -> None:
        """Load the function."""
        self.load()

    def at(self, asked: Collective | Program) -> _native.Schedule:
        """Call the function with those of `PARAMETERS` that it has, and check what it returns."""
        function = self.load()
        given = {name: getattr(asked, _FIELDS.get(name, name)) for name in PARAMETERS}
        with _blaming(self.label, function):
            made = function(**_accepted(self.label, function, given))
        shape = f"{asked.ranks} ranks and {format_size(int(asked.size_bytes or 0))}"
        if not isinstance(made, _native.Schedule):
            raise ScheduleError(
                f"{self.label}: returned {_shown(made)} for {shape}; return a schedule, such as `builder.finish()`"
            )
        _check_collective(self.label, made, asked)
        wanted = {"ranks": asked.ranks, "element_bytes": asked.element_bytes, "root": asked.root}
        for what, value in wanted.items():
            if getattr(made, what) != value:
                raise ScheduleError(
                    f"{self.label}: was asked for {what.replace('_', ' ')} {value} and returned a schedule with "
                    f"{getattr(made, what)}; pass its parameters on to lw.Builder or lw.schedule"
                )
        if isinstance(asked, Collective) and made.size_bytes != asked.size_bytes:
            raise ScheduleError(
                f"{self.label}: was asked for {asked.size_bytes} B and returned a schedule of {made.size_bytes} B"
            )
        return made


def _check_collective(label: str, schedule: _native.Schedule, asked: Collective | Program) -> None:
    if isinstance(asked, Collective) and schedule.collective != asked.collective:
        raise UsageError(f"{label}: implements {schedule.collective}, not {asked.collective}; name it as that")


def _text(name: str) -> str:
    """Read a file or standard input; reject one that is larger than any schedule, such as /dev/zero."""
    try:
        read = unpacked(Path(name), MAX_CHARACTERS)
        if len(read) > MAX_CHARACTERS:
            most = f"{MAX_CHARACTERS >> 20} Mi characters"
            raise FileError(f"{name}: has more than {most}; schedules are shorter than that")
        return decoded(read)
    except UnicodeDecodeError as error:
        raise FileError(f"{name}: is not text in UTF-8; give the path of a schedule or a plan") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"{name}: cannot be read: {reason}; give the path of a schedule or a plan") from error


@functools.cache
def _function(path: str, name: str) -> Callable:
    """Return the function called `name` in a module, or in the file at `path`."""
    module = _of_file(Path(path)) if path.endswith(".py") else _of_name(path)
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        raise unknown("function", name, known, where=path)
    return function


def _of_name(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name}: is not the name of a module; write `module:function` or `path/to/file.py:function`")
    try:
        with _blaming(name, None):
            return importlib.import_module(name)
    except FileError as error:
        if isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name == name:
            raise UsageError(f"no module `{name}` is installed; of a file, write `./{name}.py:function`") from error
        raise


def _of_file(path: Path) -> ModuleType:
    """Load the module at `path`; it can import modules next to it, after those that are installed."""
    import importlib.util

    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"{path}: {problem}; name a Python file and a function in it, such as `own.py:allreduce`")
    spec = importlib.util.spec_from_file_location(f"linkwright_source_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.append(str(path.resolve().parent))
    with _blaming(path.name, None):
        spec.loader.exec_module(module)
    return module


def _loaded(point: EntryPoint) -> Callable:
    with _blaming(f"{_key(point)} of the package {_origin(point)}", None):
        return point.load()


@contextlib.contextmanager
def _blaming(label: str, function: Callable | None) -> Iterator[None]:
    """Turn any exception of the user's code into an error that names its line; its output goes to stderr."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except LinkwrightError as error:
        raise reported(f"{label}{_line(error)}: {error}", error.code) from error
    except Exception as error:
        kind = ScheduleError if function else FileError
        raise kind(f"{label}{_line(error)}: {type(error).__name__}: {error}") from error


def _line(error: Exception) -> str:
    """Return the innermost line of the user's code: ` (line 12, in bucket)`."""
    if isinstance(error, SyntaxError):
        return f" (line {error.lineno})"
    import traceback

    here = str(Path(__file__).parents[1])
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((here, "<frozen"))
    ]  # fmt: skip
    return f" (line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""


def _accepted(label: str, function: Callable, given: dict[str, object]) -> dict[str, object]:
    """Return those of the `given` arguments that the function takes."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return given
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    for name in needed:
        if name not in given:
            raise UsageError(
                f"{label}: has a parameter `{name}`, which nothing passes; it may have {', '.join(PARAMETERS)}, "
                "and others with a default"
            )
    if any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters):
        raise UsageError(f"{label}: has parameters without names; remove the `/` from its signature")
    return {p.name: given[p.name] for p in parameters if p.name in given}


def _shown(value: object) -> str:
    return "nothing" if value is None else f"an object of type {type(value).__name__}"


@functools.cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """Return entry points named `COLLECTIVE.NAME` for existing collectives; registered algorithms take precedence."""
    import importlib.metadata

    known = {row["key"] for row in _native.algorithms()}
    found = importlib.metadata.entry_points(group=GROUP)
    named = [point for point in found if point.name.partition(".")[0] in collectives() and _key(point) not in known]
    return tuple(sorted(named, key=lambda point: point.name))


def _key(point: EntryPoint) -> str:
    collective, _, name = point.name.partition(".")
    return f"{collective}/{name}"


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "of unknown origin"
