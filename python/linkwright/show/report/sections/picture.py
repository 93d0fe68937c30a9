"""An overview of the machine: packages, cores, caches and memory from the kernel, with this run's measurements.

A rule selects the measurement that represents a level: the working set midway (on a logarithmic axis) between the level
before and this one, at least twice the former and at most half of the latter if the run has one; for the memory, the
largest. The working set of a bandwidth is all arrays of a thread, times the threads that share the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.base.rows import Row, Rows, among, largest, smallest
from linkwright.base.stats import grade
from linkwright.store.topology import Cache, Topology

from .. import quantity
from ..model import Cell, Column, Section, Table
from ..runs import Run, ok
from . import axes, memory, values

ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}

INTRO = (
    "The kernel reports packages, cores and caches. This run measured the times and rates, with working sets that fit "
    "into the level. For a rate of all threads, each thread uses its own memory."
)
_COLUMNS = (
    Column("Level"),
    Column("Count", numeric=True),
    Column("Size", "B", numeric=True),
    Column("Latency", "s", numeric=True, help="of a dependent load, random order"),
    Column("Read, one thread", "B/s", numeric=True),
    Column("Read, all threads", "B/s", numeric=True),
    Column("Triad, all threads", "B/s", numeric=True),
)


@dataclass(frozen=True)
class Level:
    """A cache, or the memory behind all of them."""

    cache: Cache | None
    before: Cache | None

    @property
    def name(self) -> str:
        """L2, or memory."""
        return self.cache.name if self.cache else "memory"

    def nearest(self, rows: Rows) -> Row | None:
        """The row that represents this level; column `footprint` is the working set of one of `ranks` threads."""
        out = _filled(rows, self.before)  # share of the cache before: from 1 on it is outgrown
        if self.cache is None:
            found = rows[out >= 2]
            found = found[found["footprint"] == largest(found["footprint"])]
        else:
            held = _filled(rows, self.cache)
            found = rows[(out >= 2) & (held <= 0.5)]
            if not len(found):
                found = rows[(out > 1) & (held <= 1)]
            low = 2 * self.before.size_bytes if self.before else self.cache.size_bytes / 8
            middle = math.sqrt(low * self.cache.size_bytes / 2)
            away = np.abs(np.log(found["footprint"] / middle))
            found = found[away == smallest(away)]
        return None if not len(found) else found.ordered("value", "experiment")[0]


def _filled(rows: Rows, cache: Cache | None) -> Column:
    """The working sets of the threads that share a cache, over its size; infinite without a cache."""
    if cache is None:
        return np.full(len(rows), math.inf)
    return rows["footprint"] * np.minimum(rows["ranks"], cache.shared_by) / cache.size_bytes


def section(run: Run) -> Section | None:
    """One table for the measured machine, if the kernel describes it and the run measured its memory."""
    for machine in run.machines:
        topology = run.topology(machine)
        here = run.rows[run.rows["machine"] == machine]
        if topology.rows and among(ok(here)["algorithm"], memory.PROBES).any():
            rows = [*_packages(topology), *_levels(run, machine, topology)]
            return Section("The machine", [Table(f"{machine}: levels", _COLUMNS, rows)], INTRO)
    return None


def levels(caches: list[Cache]) -> list[Level]:
    """Every cache, and the memory."""
    return [Level(*pair) for pair in zip([*caches, None], [None, *caches], strict=True)]


def latency(run: Run, machine: str, level: Level) -> Row | None:
    """The row with the latency of a level."""
    rows = memory.of(run, memory.LATENCY, "latency")
    rows = axes.where(rows[rows["machine"] == machine], order="random", neighbours="0")
    return level.nearest(rows.assign(footprint=rows["size_bytes"]))


def bandwidth(run: Run, machine: str, level: Level, kernel: str, threads: str) -> Row | None:
    """The row with a bandwidth of a level, for `one` thread or for `all` threads of the run."""
    rows = memory.of(run, memory.BANDWIDTH, "bandwidth")
    rows = axes.where(rows[rows["machine"] == machine], kernel=kernel, width="widest")
    most = largest(rows["ranks"])
    if not len(rows) or (threads == "all" and most == 1):
        return None
    rows = rows[rows["ranks"] == (most if threads == "all" else 1)]
    return level.nearest(rows.assign(footprint=rows["size_bytes"] * ARRAYS[kernel]))


def _packages(topology: Topology) -> Iterator[list[Cell]]:
    processors = len(topology.rows)
    for name, count in (("package", topology.packages), ("core", topology.cores)):
        if count:
            threads = f"{processors / count:g} hardware thread{'s' if processors > count else ''} each"
            about = threads if name == "core" else ""
            yield [Cell(name, tone="strong"), Cell(f"{count}", count, about), *[Cell("")] * 5]


def _levels(run: Run, machine: str, topology: Topology) -> Iterator[list[Cell]]:
    for level in levels(topology.caches):
        if level.cache:
            shared = f"shared by {level.cache.shared_by}" if level.cache.shared_by > 1 else "one thread each"
            head = [Cell(f"{level.cache.count}", level.cache.count, shared), _size(level.cache.size_bytes)]
        else:
            total = run.environment.get("memory_bytes")
            head = [Cell(""), _size(total) if total else Cell("")]
        rates = (("read", "one"), ("read", "all"), ("triad", "all"))
        found = [latency(run, machine, level), *(bandwidth(run, machine, level, *rate) for rate in rates)]
        yield [Cell(level.name, tone="strong"), *head, *map(_measured, found)]


def _measured(row: Row | None) -> Cell:
    if row is None:
        return values.missing("not measured")
    shown = quantity.text(row["value"], row["unit"])
    at = f"{values.words(_about(row))} {quantity.size(row['size_bytes'])}"
    tone = "warn" if row["grade"] == grade.WIDE else ""
    sure = f", ±{quantity.percent(row['precision'])}" if row["precision"] == row["precision"] else ""
    return Cell(shown, float(row["value"]), f"{at}{sure}", tone)


def _about(row: Row) -> str:
    return "working set" if row["algorithm"] == memory.LATENCY else "block"


def _size(size_bytes: float) -> Cell:
    return Cell(quantity.text(float(f"{size_bytes:.4g}") if size_bytes > 2**30 else size_bytes, "B"), float(size_bytes))
