"""Groups of rows for one chart: the rows of one part of the suite, one pattern and one metric.

The chart follows from what varies in a group, not from its name: nearly all ordered pairs at few sizes become a matrix,
several rank counts a curve by load, several sizes a curve by size. A new pattern or part of a suite therefore needs no
code here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from linkwright.base.rows import Rows, among, given, nunique

from ..runs import Run, is_rate, ok
from . import axes, computing, memory, round_trips, values

_METRICS = ("latency", "time", "bandwidth")
# Probes that have their own section.
_ELSEWHERE = (*memory.PROBES, *round_trips.PROBES, *computing.PROBES)
_FULL = 0.5  # share of all ordered pairs that makes a group a matrix
_MATRIX_SIZES = 4  # with more sizes than this, curves show more than matrices


@dataclass(frozen=True)
class Group:
    """Rows that share part, pattern and metric, of all machines."""

    part: str
    pattern: str
    metric: str
    rows: Rows
    summary: str  # the summary of the part in the suite
    alone: bool  # whether the part has no other pattern
    variant: str = ""  # for a probe, the values of its other varying axes: `compare and swap`

    @property
    def rate(self) -> bool:
        """Whether the metric counts bytes per second."""
        return is_rate(self.rows["unit"][0])

    @property
    def is_probe(self) -> bool:
        """Whether a probe found it, not a schedule."""
        return bool(given(self.rows["axes"]).any())

    @property
    def title(self) -> str:
        """The summary of the part, the pattern if the summary is ambiguous, and the metric."""
        known = bool(self.summary)
        words = [self.summary] if known else []
        words += [] if known and self.alone else [values.words(self.pattern)]
        words += [self.variant] if self.variant else []
        return f"{', '.join(words).capitalize()}: {values.words(self.metric)}"

    @property
    def question(self) -> str:
        """The part and the metric, which is not repeated if the part names it."""
        words = [values.words(self.part)] if self.part else []
        words += [] if self.part and self.alone else [values.words(self.pattern)]
        words += [self.variant] if self.variant else []
        about, metric = ", ".join(words), values.words(self.metric)
        return (about if metric in about.split() else f"{about}: {metric}").capitalize()

    @cached_property
    def loaded(self) -> bool:
        """Whether some machine ran it with several rank counts, so that it shows load."""
        return _varies(self.curves, "ranks")

    @property
    def sized(self) -> bool:
        """Whether some machine ran it at several sizes under the same load."""
        return not self.loaded and _varies(self.curves, "size_bytes")

    @cached_property
    def matrices(self) -> dict[str, Rows]:
        """The rows of each machine that form a matrix."""
        by_machine = self.rows.by("machine")
        return {name: rows[given(rows["source"])] for (name,), rows in by_machine if is_matrix(rows)}

    @cached_property
    def curves(self) -> Rows:
        """The rows of the machines without a matrix."""
        return self.rows[~among(self.rows["machine"], self.matrices)]


@lru_cache(maxsize=1)
def groups(run: Run) -> list[Group]:
    """All patterns and probes with a time or a rate, in the order of the suite; latency and bandwidth replace the time
    of the same part.
    """
    rows = ok(run.patterns[among(run.patterns["metric"], _METRICS) & ~among(run.patterns["algorithm"], _ELSEWHERE)])
    patterns = {part: nunique(its["label"]) for (part,), its in rows.by("part")}
    rows = rows.assign(variant=axes.variants(rows))
    found = [
        Group(part, pattern, metric, rows, run.summaries.get(part, ""), patterns[part] == 1, variant)
        for (part, pattern, metric, variant), rows in rows.by("part", "label", "metric", "variant", sort=True)
    ]
    order = [*run.summaries]
    found.sort(key=lambda group: order.index(group.part) if group.part in order else len(order))
    told = {(group.part, group.pattern, group.variant) for group in found if group.metric != "time"}
    return [
        group for group in found if group.metric != "time" or (group.part, group.pattern, group.variant) not in told
    ]


def _varies(rows: Rows, column: str) -> bool:
    return any(nunique(part[column]) > 1 for _, part in rows.by("machine"))


def is_matrix(rows: Rows) -> bool:
    """Whether the rows of one machine hold (nearly) every ordered pair of their endpoints."""
    paired = rows[given(rows["source"])]
    apart = paired[paired["source"] != paired["destination"]].distinct("source", "destination")
    ends = len(set(paired["source"]) | set(paired["destination"]))
    enough = len(apart) >= _FULL * ends * (ends - 1) > 0
    return enough and nunique(paired["size_bytes"]) <= _MATRIX_SIZES
