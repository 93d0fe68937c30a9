"""What a fit looks at: the measured times of a run, and which of them it may see.

A third of the sizes of every sweep is held out, and of the collectives only a few simple algorithms are
seen; all else is there to be predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.errors import StoreError, unknown
from linkwright.store.run import Run
from linkwright.suite.experiment import Experiment

# No interval is believed beyond this share of its value: what differs between launches of one day.
LEAST_ERROR = 0.02
# Algorithms whose steps are plain: what the machine's arithmetic and copies cost is read off them.
SEEN = ("reduce/linear", "alltoall/bruck", "broadcast/linear")


@dataclass(frozen=True)
class Point:
    """One measured experiment."""

    experiment: Experiment
    time_ns: float
    error_ns: float  # half of the interval, at least `LEAST_ERROR`
    seen: bool

    @property
    def sweep(self) -> tuple:
        """What all sizes of one sweep share."""
        e = self.experiment
        return (e.part, e.algorithm_key, e.ranks, e.messages, e.both_ways, e.placement, e.op, e.dtype)


def points(run: Run, machine: str | None = None) -> list[Point]:
    """The measured times of a run in the order of its rows."""
    results = run.results().to_pylist()
    known = list(dict.fromkeys(row["machine"] for row in results))
    if machine not in (None, *known):
        raise unknown("machine in this run", machine, known)
    rows = [
        row
        for row in results
        if row["metric"] == "time" and row["value"] and row["executor"] not in ("sim", None)
        if (row["collective"] or row["algorithm"] in ("ping_pong", "pairs")) and machine in (None, row["machine"])
    ]
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    if not rows:
        raise StoreError(f"run {run.id}: holds no measured ping-pong or collective; `linkwright dissect` makes one")
    if len(machines) > 1:
        raise StoreError(f"run {run.id}: measured {' and '.join(machines)}; choose one with --machine")
    found = [_point(row) for row in rows]
    sweeps: dict[tuple, list[int]] = {}
    for point in found:
        sweeps.setdefault(point.sweep, []).append(point.experiment.size_bytes)
    return [_judged(point, sorted(sweeps[point.sweep])) for point in found]


def _point(row: dict) -> Point:
    half = (row["ci_high"] - row["ci_low"]) / 2 if row["ci_low"] is not None else 0.1 * row["value"]
    experiment = Experiment.parse(row["experiment"])
    return Point(experiment, row["value"], max(half, LEAST_ERROR * row["value"]), seen=False)


def _judged(point: Point, sizes: list[int]) -> Point:
    """Every third size is held out, from the second on, so the ends of a sweep are seen."""
    experiment = point.experiment
    held_out = len(sizes) >= 3 and sizes.index(experiment.size_bytes) % 3 == 1
    plain = experiment.collective is None or experiment.algorithm_key in SEEN
    return Point(experiment, point.time_ns, point.error_ns, seen=plain and not held_out)
