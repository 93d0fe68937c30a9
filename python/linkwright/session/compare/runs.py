"""Two run folders, experiment by experiment.

Experiments carry the same key in every run, so two runs are joined by (experiment, machine, executor).
The metric compared is the time of the slowest rank; rates follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwright.base.stats.interval import MIN_VALUES
from linkwright.base.stats.launches import launch_medians
from linkwright.executors import is_modelled
from linkwright.store.run import Run

from .verdict import Comparison, Verdict, Why, exact, measured, single, unknown

Key = tuple[str, str, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class RunComparison:
    """The verdict of every experiment that both runs hold, and what only one of them holds."""

    pairs: list[tuple[Key, Comparison]]
    only_first: list[Key]
    only_second: list[Key]
    edited: list[Key]  # in both, by schedules of the user's that differ

    def counts(self) -> Counter[Verdict]:
        """How often each verdict was given."""
        return Counter(comparison.verdict for _, comparison in self.pairs)

    def unjudged(self) -> dict[Why, list[tuple[Key, Comparison]]]:
        """What is UNKNOWN, by reason, in the order of the reasons."""
        grouped = {why: [pair for pair in self.pairs if pair[1].why == why] for why in Why}
        return {why: pairs for why, pairs in grouped.items() if pairs}


def compare_runs(first: Run, second: Run, tolerance: Callable[[Row], float] | None = None) -> RunComparison:
    """Compare every experiment that has a value in one of the runs and stands in both.

    Args:
        first: a run.
        second: what is compared with it.
        tolerance: of a row, the share by which rates of healthy systems differ, where both runs are imported; it
            judges values that have no interval.
    """
    times = _times(first), _times(second)
    medians = [launch_medians(run.samples()) for run in (first, second)]
    pairs = []
    for key in sorted(times[0].keys() & times[1].keys()):
        rows = times[0][key], times[1][key]
        launches = medians[0].get(key[0]), medians[1].get(key[0])
        if any(row["value"] is not None for row in rows):
            pairs += [(key, comparison) for comparison in _compare(rows, launches, tolerance)]
    return RunComparison(
        pairs,
        sorted(times[0].keys() - times[1].keys()),
        sorted(times[1].keys() - times[0].keys()),
        [key for key, _ in pairs if times[0][key]["schedule"] != times[1][key]["schedule"]],
    )


def _compare(
    rows: tuple[Row, Row],
    launches: tuple[np.ndarray | None, np.ndarray | None],
    tolerance: Callable[[Row], float] | None,
) -> list[Comparison]:
    values = rows[0]["value"], rows[1]["value"]
    if None in values:
        missing = next(row for row in rows if row["value"] is None)
        return [unknown(*values, Why.MISSING, f"{missing['status']}: {missing['reason']}")]
    if is_modelled(rows[0]["executor"]):
        return [exact(*values)]
    if any("disturbed" in str(row["flags"] or "").split(",") for row in rows):
        return [unknown(*values, Why.DISTURBED, "every launch of one run was disturbed")]
    if tolerance and any(its is None or len(its) < MIN_VALUES for its in launches):
        return [single(*values, tolerance(rows[0]))]
    if launches[0] is None or launches[1] is None:
        return [unknown(*values, Why.SINGLE, "no samples of one of the runs")]
    return measured(launches[0], launches[1])


def _times(run: Run) -> dict[Key, Row]:
    return {
        (row["experiment"], row["machine"] or "", row["executor"] or ""): row
        for row in run.results().records()
        if row["metric"] == "time"
    }
