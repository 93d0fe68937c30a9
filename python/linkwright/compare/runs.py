"""Two run folders, experiment by experiment.

Experiments carry the same key in every run, so two runs are joined by (experiment, machine, executor).
The metric compared is the time of the slowest rank; rates follow from it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from linkwright.store.run import Run

from .verdict import Comparison, Verdict, exact, measured

Key = tuple[str, str, str]


@dataclass(frozen=True)
class RunComparison:
    """The verdict of every experiment that both runs hold, and what only one of them holds."""

    pairs: list[tuple[Key, Comparison]]
    only_first: list[Key]
    only_second: list[Key]

    def counts(self) -> Counter[Verdict]:
        """How often each verdict was given."""
        return Counter(comparison.verdict for _, comparison in self.pairs)


def compare_runs(first: Run, second: Run) -> RunComparison:
    """Compare every experiment whose time is known in both runs."""
    times = _times(first), _times(second)
    medians = _launch_medians(first), _launch_medians(second)
    pairs = []
    for key in sorted(times[0].keys() & times[1].keys()):
        experiment = key[0]
        if experiment in medians[0] and experiment in medians[1]:
            found = measured(medians[0][experiment], medians[1][experiment])
        else:
            found = [exact(times[0][key], times[1][key])]
        pairs += [(key, comparison) for comparison in found]
    return RunComparison(pairs, sorted(times[0].keys() - times[1].keys()), sorted(times[1].keys() - times[0].keys()))


def _times(run: Run) -> dict[Key, float]:
    return {
        (row["experiment"], row["machine"] or "", row["executor"] or ""): row["value"]
        for row in run.results().to_pylist()
        if row["metric"] == "time" and row["value"] is not None
    }


def _launch_medians(run: Run) -> dict[str, np.ndarray]:
    frame = run.samples().to_pandas()
    slowest = frame[frame["rank"].isna()]
    if "set_aside" in frame:  # runs of earlier versions do not say which launches were disturbed
        slowest = slowest[slowest["set_aside"].isna()]
    medians = slowest.groupby(["experiment", "launch"])["value_ns"].median()
    return {key: group.to_numpy() for key, group in medians.groupby(level=0)}
