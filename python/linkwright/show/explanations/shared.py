"""What all answers have: which numbers of the machine a time depends on; times and shares as cells."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.advise.explain.sensitivity import Effect
from linkwright.base.units import US_PER_S
from linkwright.show.report import quantity
from linkwright.show.report.model import Cell, Column, Section, Table

_EFFECTS = (
    Column("Number of the machine file"),
    Column("Value"),
    Column("Status"),
    Column("Time if twice as good", "s", numeric=True),
    Column("Saves", "%", numeric=True),
)
_READ = "Each number is improved twofold on its own, and the time is simulated again."


def effects(found: Sequence[Effect], title: str) -> list[Section]:
    """What binds; nothing if no single number matters."""
    body = [[Cell(one.key, tone="strong"), one.value, one.status, time(one.time_us), share(one.gain)] for one in found]
    return [Section(title, [Table("What if", _EFFECTS, body, _READ)])] if body else []


def duration(time_us: float) -> str:
    """A time in words."""
    return quantity.text(time_us / US_PER_S, "s")


def time(time_us: float) -> Cell:
    """A time in a table."""
    return Cell(duration(time_us), time_us)


def share(part: float) -> Cell:
    """A part of a whole, with its bar."""
    return Cell(f"{part:.0%}", part, share=min(1.0, max(0.0, part)))
