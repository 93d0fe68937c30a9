"""How long your own program would take on a described machine.

A program is a TOML file. `[app]` states its kind, which reads the rest. A forecast adds up parts, each with its time
and the causes of it. Messages are always schedules simulated on the machine's fabric, never a formula.

A new kind is one module with its keys (`PROGRAM`) and a function of `(document, head, machines)`, a view of the same
name in `linkwright.cli` that prints the answer, and one line in `REGISTRY`. docs/formats.md has an example of each.
"""

from __future__ import annotations

import importlib
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linkwright import _native
from linkwright.ask import sources
from linkwright.base import registry, toml
from linkwright.base.errors import FileError, UsageError
from linkwright.base.files import read_text
from linkwright.base.toml import LINE, Choice, Key, Keys, Place, Table, only

FORMAT = 1

# Kind of program -> (module, one line).
REGISTRY = {
    "supersteps": ("linkwright.advise.predict.supersteps", "rounds of work, then messages, with all endpoints in step"),
    "training": ("linkwright.advise.predict.training", "steps of data-parallel training, machines side by side"),
    "trace": ("linkwright.advise.predict.trace", "a recorded execution, its messages simulated on another machine"),
    "transformer": ("linkwright.advise.predict.llm", "a large language model, trained with any layout"),
}

# Suffixes of recorded executions, which need no program file; `.gz` may follow.
TRACES = (".et", ".json")

# What takes time; the last four are those of the critical path of a simulation.
CAUSES = ("compute", "memory", "latency", "serialisation", "waiting", "overhead")


@dataclass(frozen=True)
class Part:
    """One part of a program: how often it runs, and the time of one run by cause."""

    name: str
    times: int
    causes_ns: dict[str, float]
    choice: str = ""  # what was decided for the program, such as an algorithm
    messages: bool = False  # whether it sends, instead of working

    @property
    def time_ns(self) -> float:
        """Time of all its runs."""
        return self.times * sum(self.causes_ns.values())


@dataclass(frozen=True)
class Room:
    """Memory that one endpoint needs at the fullest moment of the program."""

    needed_bytes: int
    capacity_bytes: int | None
    where: str

    @property
    def fits(self) -> bool | None:
        """None where the machine states no capacity."""
        return None if self.capacity_bytes is None else self.needed_bytes <= self.capacity_bytes


@dataclass(frozen=True)
class Forecast:
    """The whole program on one machine; `parts` is empty if it does not fit."""

    app: str
    kind: str
    machine: str
    endpoints: int
    room: Room
    parts: list[Part] = field(default_factory=list)

    @property
    def time_ns(self) -> float:
        """Time of the program."""
        return sum(part.time_ns for part in self.parts)

    def shares(self) -> dict[str, float]:
        """Cause -> its share of the time, largest first; causes without a share are left out."""
        total = self.time_ns
        by_cause = {c: sum(p.times * p.causes_ns.get(c, 0.0) for p in self.parts) for c in CAUSES}
        ordered = sorted(by_cause.items(), key=lambda item: -item[1])
        return {cause: spent / total for cause, spent in ordered if spent > 0}

    @property
    def message_share(self) -> float:
        """Share of the time in messages."""
        return sum(p.time_ns for p in self.parts if p.messages) / self.time_ns if self.time_ns else 0.0

    def lead(self, second: Forecast) -> float | None:
        """How much longer the program takes on `second`; None unless it fits on both."""
        return lead(self.time_ns if self.parts else None, second.time_ns if second.parts else None)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "app": self.app,
            "kind": self.kind,
            "machine": self.machine,
            "endpoints": self.endpoints,
            "fits": self.room.fits,
            "memory_needed_bytes": self.room.needed_bytes,
            "memory_capacity_bytes": self.room.capacity_bytes,
            "memory_where": self.room.where,
            "time_ns": self.time_ns if self.parts else None,
            "shares": self.shares() if self.parts else None,
            "parts": [{**vars(part), "time_ns": part.time_ns} for part in self.parts],
        }


def lead(first_ns: float | None, second_ns: float | None) -> float | None:
    """Lead of the first of two times, second / first - 1; None if one is unknown or the first is zero."""
    return second_ns / first_ns - 1 if first_ns and second_ns is not None else None


@dataclass(frozen=True)
class Program:
    """A program file, read: all of it, and its table `[app]`."""

    document: Table
    head: Table
    kind: str
    folder: Path = Path()  # of the file, in which the files that it names are


def find(name: str) -> Path:
    """The program file at that path, or the shipped workload of that name."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file() or "/" in name:
        return path
    try:
        return registry.workload_path(name)
    except UsageError as error:
        raise UsageError(f"{error}; or give the path of a program file, such as `./{name}.toml`") from error


def is_trace(name: str) -> bool:
    """Whether a file of this name is a recorded execution rather than a program."""
    return Path(name.removesuffix(".gz")).suffix in TRACES


def head_keys(kind: str, **keys: Key) -> Keys:
    """`[app]` of a program of this kind."""
    return {
        "format": Key(only(FORMAT), "version of this format", required=True),
        "kind": Key(only(kind), REGISTRY[kind][1], required=True),
        "name": Key(LINE, "name of the program", required=True),
        "summary": Key(LINE, "one line"),
        **keys,
    }


def keys_of(kind: str) -> Keys:
    """All keys of a program of this kind."""
    return importlib.import_module(REGISTRY[kind][0]).PROGRAM


def read(file: Path) -> Program:
    """The program file at `file`; sources that it names as algorithms are files next to it."""
    try:
        return parse(read_text(file, "a program file"), file.name, file.parent)
    except FileError as error:
        from linkwright.formats.logs import is_log  # only errors need it

        if file.suffix != ".toml" and file.is_file() and is_log(file):
            raise FileError(
                f"{file}: is a log, not a program; `linkwright explain {shlex.quote(str(file))}` judges it"
            ) from error
        raise


def parse(text: str, name: str, folder: Path = Path()) -> Program:
    """The program in `text`; `name` is that of its file in `folder`."""
    place = Place(name, error=FileError)
    values = _within(folder, toml.load(text, place))
    app = values.get("app")
    if not isinstance(app, dict) or "kind" not in app:
        raise place.wrong("there is no `kind` in [app]; add both")
    only(FORMAT).read("format", app.get("format"), place.inside("app"))
    kind = str(Choice(REGISTRY).read("kind", app["kind"], place.inside("app")))
    document = toml.read(values, keys_of(kind), place)
    return Program(document, document["app"], kind, folder)


def _within(folder: Path, value: Any) -> Any:
    """The values with the sources under `algorithm` as they are called from the current folder."""
    if isinstance(value, list):
        return [_within(folder, one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: sources.within(folder, one) if key == "algorithm" and isinstance(one, str) else _within(folder, one)
        for key, one in value.items()
    }


def predict(file: Path, machine: _native.Machine) -> Forecast:
    """The forecast of the program in `file` on `machine`."""
    return forecast(read(file), machine)


def forecast(program: Program, machine: _native.Machine) -> Forecast:
    """The forecast of a program whose kind gives a single one."""
    module = importlib.import_module(REGISTRY[program.kind][0])
    if not hasattr(module, "forecast"):
        raise program.head.error(f"kind {program.kind} gives more than one forecast; use {module.__name__}")
    return module.forecast(program.document, program.head, machine)
