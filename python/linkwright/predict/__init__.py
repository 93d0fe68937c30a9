"""What a program of one's own would take on a described machine.

A program is a TOML file: `[app]` says what kind of description follows, the rest is read by that kind.
The forecast adds up parts, each with its time and the causes of it; messages always go through schedules
that are simulated on the machine's fabric, never through a formula.

A new kind is one module that makes something of `(document, head, machines)`, a view of the same name in
`linkwright.cli` that prints it, and one line in `REGISTRY`. docs/formats.md has a literal example of each kind.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from linkwright import registry
from linkwright.errors import FileError, UsageError, unknown
from linkwright.predict.document import Table, read

if TYPE_CHECKING:
    from linkwright import _native

FORMAT = 1

# Key -> (module, one line).
REGISTRY = {
    "supersteps": ("linkwright.predict.supersteps", "rounds of work, then messages, all endpoints in step"),
    "training": ("linkwright.predict.training", "steps of data-parallel training, machines side by side"),
}

# What time can be spent on; the last four as on the critical path of a simulation.
CAUSES = ("compute", "memory", "latency", "serialisation", "waiting", "overhead")


@dataclass(frozen=True)
class Part:
    """One part of a program: how often it runs, and what one run takes by cause."""

    name: str
    times: int
    causes_ns: dict[str, float]
    choice: str = ""  # what was decided for the program, such as an algorithm

    @property
    def time_ns(self) -> float:
        """Time of all its runs."""
        return self.times * sum(self.causes_ns.values())


@dataclass(frozen=True)
class Room:
    """Memory that the fullest moment of the program needs at one endpoint."""

    needed_bytes: int
    capacity_bytes: int | None
    where: str

    @property
    def fits(self) -> bool | None:
        """None where the machine states no capacity."""
        return None if self.capacity_bytes is None else self.needed_bytes <= self.capacity_bytes


@dataclass(frozen=True)
class Forecast:
    """The whole program on one machine; `parts` is empty where it does not fit."""

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
        """Cause -> its share of the time, largest first, without those of no share."""
        total = self.time_ns
        by_cause = {c: sum(p.times * p.causes_ns.get(c, 0.0) for p in self.parts) for c in CAUSES}
        ordered = sorted(by_cause.items(), key=lambda item: -item[1])
        return {cause: spent / total for cause, spent in ordered if spent > 0}

    def lead(self, second: Forecast) -> float | None:
        """How much longer the program takes on `second`; None where it does not fit on both."""
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
    """Lead of the first of two times, second / first - 1; None where one is not known or nothing takes time."""
    return second_ns / first_ns - 1 if first_ns and second_ns is not None else None


@dataclass(frozen=True)
class Opened:
    """A program that has been read as far as its kind."""

    document: Table
    head: Table
    kind: str


def find(name: str) -> Path:
    """The program file at that path, or the shipped workload of that name."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file() or "/" in name:
        return path
    try:
        return registry.workload_path(name)
    except UsageError as error:
        raise UsageError(f"{error}; or give the path of a program file, such as `./{name}.toml`") from error


def opened(document: Table) -> Opened:
    """A program with its head checked; the rest is for its kind to read."""
    head = document.table("app")
    head.expect("format", FORMAT)
    kind = head.text("kind")
    if kind not in REGISTRY:
        raise unknown("kind of program", kind, REGISTRY, where=head.where)
    return Opened(document, head, kind)


def predict(file: Path, machine: _native.Machine) -> Forecast:
    """The forecast of the program in `file` on `machine`."""
    return forecast(read(file), machine)


def forecast(document: Table, machine: _native.Machine) -> Forecast:
    """The forecast of a program that has been read; of a kind whose answer is one forecast."""
    found = opened(document)
    module = importlib.import_module(REGISTRY[found.kind][0])
    if not hasattr(module, "forecast"):
        raise FileError(f"{found.head.where}: kind {found.kind} gives more than one forecast; use {module.__name__}")
    return module.forecast(found.document, found.head, machine)
