"""What the readings of all texts keep, and the log that they end in; the log of times of single operations."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from . import ranks
from .facts import Facts, Gathered
from .kinds import Link, Log, LogRow, LogTable
from .lines import Complaints

# Kinds of marks that native code looks for: another tool's, those of rows, of lines around them, and of facts.
OTHER, ROW, HEAD, FACT, CONNECTION = 1, 2, 4, 8, 16
REDUCES = ("allreduce", "reduce_scatter", "reduce")

Key = tuple[str, int | None, int | None, str | None]  # of a table: collective, ranks, nodes, data type


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


def of_samples(
    tool: str,
    samples: Iterable[tuple[Key, int | None, ranks.Sample]],
    facts: Facts,
    complaints: Complaints,
    skipped: int = 0,
) -> Log:
    """A table for each key, with a row for each size: the median of its times."""
    times, operations = ranks.gathered(samples)
    tables = tuple(_medians(tool, key, its) for key, its in times.items())
    faults, waits = tuple(complaints.first), ranks.alone(operations)
    return Log(tool, tables, facts, (), skipped, faults, operations=operations, waits=waits)


def _medians(tool: str, key: Key, times: ranks.Times) -> LogTable:
    name, count, nodes, dtype = key
    rows = tuple(
        LogRow(size, statistics.median(time for _, time in its), its[0][0], count=len(its))
        for size, its in sorted(times.items())
    )
    return LogTable(tool, name, count, nodes, dtype, "sum" if name in REDUCES else None, None, rows)
