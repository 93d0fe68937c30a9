"""What belongs into one chart: the rows of one part of the suite, one pattern and one metric.

Which chart a group becomes follows from what varies in it, not from its name: nearly all ordered
pairs at few sizes are a matrix, several rank counts a curve by load, several sizes a curve by size.
So a new pattern or part of a suite needs no code here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import pandas as pd

from ..runs import Run, is_rate, ok
from . import axes, computing, memory, round_trips, values

_METRICS = ("latency", "time", "bandwidth")
# Probes with a section of their own.
_ELSEWHERE = (*memory.PROBES, *round_trips.PROBES, *computing.PROBES)
_FULL = 0.5  # share of all ordered pairs from which a group of rows is a matrix
_MATRIX_SIZES = 4  # more sizes than this and curves say more than matrices


@dataclass(frozen=True)
class Group:
    """Rows that share part, pattern and metric, of all machines."""

    part: str
    pattern: str
    metric: str
    rows: pd.DataFrame
    summary: str  # what the suite says about the part
    alone: bool  # whether the part has no other pattern
    variant: str = ""  # of a probe, the values of what else it varied: `compare and swap`

    @property
    def rate(self) -> bool:
        """Whether the metric counts bytes per second."""
        return is_rate(self.rows["unit"].iloc[0])

    @property
    def title(self) -> str:
        """What the suite says about the part, the pattern where that is not enough, and the metric."""
        known = bool(self.summary)
        words = [self.summary] if known else []
        words += [] if known and self.alone else [values.words(self.pattern)]
        words += [self.variant] if self.variant else []
        return f"{', '.join(words).capitalize()}: {values.words(self.metric)}"

    @property
    def question(self) -> str:
        """The part and the metric, which is not said again where the part names it."""
        words = [values.words(self.part)] if self.part else []
        words += [] if self.part and self.alone else [values.words(self.pattern)]
        words += [self.variant] if self.variant else []
        about, metric = ", ".join(words), values.words(self.metric)
        return (about if metric in about.split() else f"{about}: {metric}").capitalize()

    @cached_property
    def loaded(self) -> bool:
        """Whether some machine ran it with several rank counts: then load is what it is about."""
        return bool((self.curves.groupby("machine")["ranks"].nunique() > 1).any())

    @property
    def sized(self) -> bool:
        """Whether some machine ran it at several sizes, the load being the same."""
        return not self.loaded and bool((self.curves.groupby("machine")["size_bytes"].nunique() > 1).any())

    @cached_property
    def matrices(self) -> dict[str, pd.DataFrame]:
        """The rows of each machine that form a matrix."""
        by_machine = self.rows.groupby("machine", sort=False)
        return {name: rows[rows["source"].notna()] for name, rows in by_machine if is_matrix(rows)}

    @cached_property
    def curves(self) -> pd.DataFrame:
        """The rows of the machines without a matrix."""
        return self.rows[~self.rows["machine"].isin(list(self.matrices))]


@lru_cache(maxsize=1)
def groups(run: Run) -> list[Group]:
    """Everything that is no collective and has a time or a rate, in the order of the suite; latency and bandwidth
    say all that the time of the same part does.
    """
    rows = ok(run.patterns[run.patterns["metric"].isin(_METRICS) & ~run.patterns["algorithm"].isin(_ELSEWHERE)])
    patterns = rows.groupby("part")["label"].nunique()
    rows = rows.assign(variant=axes.variants(rows))
    found = [
        Group(part, pattern, metric, rows, run.summaries.get(part, ""), patterns[part] == 1, variant)
        for (part, pattern, metric, variant), rows in rows.groupby(["part", "label", "metric", "variant"], sort=True)
    ]
    order = [*run.summaries]
    found.sort(key=lambda group: order.index(group.part) if group.part in order else len(order))
    told = {(group.part, group.pattern, group.variant) for group in found if group.metric != "time"}
    return [
        group for group in found if group.metric != "time" or (group.part, group.pattern, group.variant) not in told
    ]


def is_matrix(rows: pd.DataFrame) -> bool:
    """Whether the rows of one machine hold (nearly) every ordered pair of their endpoints."""
    paired = rows[rows["source"].notna()]
    apart = paired[paired["source"] != paired["destination"]][["source", "destination"]].drop_duplicates()
    ends = len(set(paired["source"]) | set(paired["destination"]))
    enough = len(apart) >= _FULL * ends * (ends - 1) > 0
    return enough and paired["size_bytes"].nunique() <= _MATRIX_SIZES
