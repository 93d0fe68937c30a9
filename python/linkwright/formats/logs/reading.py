"""What the readings of all texts keep, and the log that they end in."""

from __future__ import annotations

from collections.abc import Iterable

from .facts import Gathered
from .kinds import Link, Log, LogTable
from .lines import Complaints


class TextReading:
    """What was found so far; a tool adds how it takes a line."""

    tool: str
    waits = False

    def __init__(self, gathered: Gathered) -> None:
        self.gathered, self.complaints, self.left_out = gathered, Complaints(), Complaints()
        self.links: list[Link] = []
        self.skipped = 0

    def found(self) -> Iterable[LogTable]:
        """Tables of collectives and messages, once all lines are read."""
        return ()

    def log(self) -> Log:
        """What was found."""
        tables = tuple(self.found())
        return Log(
            self.tool, tables, self.gathered.facts, tuple(self.links), self.skipped, tuple(self.complaints.first),
            tuple(self.left_out.first), waits=self.waits,
        )  # fmt: skip
