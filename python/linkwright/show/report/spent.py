"""What two schedules spend their time on, cause by cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import quantity
from .model import Cell, Column, Table


@dataclass(frozen=True)
class Spent:
    """One schedule: its title in the table, its time in seconds, and the share of its critical path by cause."""

    words: str
    time_s: float
    shares: Mapping[str, float]

    def part(self, cause: str) -> Cell:
        """The time of one cause, with its share."""
        share = self.shares.get(cause, 0.0)
        return Cell(quantity.text(self.time_s * share, "s"), self.time_s * share, f"{share:.0%}", share=share)


def compared(title: str, before: Spent, after: Spent, how_to_read: str = "") -> Table:
    """A table of both side by side, in the order of what the second one spends most on."""
    causes = sorted({*before.shares, *after.shares}, key=lambda cause: (-after.shares.get(cause, 0.0), cause))
    body = [[Cell(cause, tone="strong"), before.part(cause), after.part(cause)] for cause in causes]
    columns = [Column("Critical path"), *(Column(one.words, "s", numeric=True) for one in (before, after))]
    return Table(title, columns, body, how_to_read)
