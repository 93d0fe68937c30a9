"""What a fit works from: the measured times of a run, and which of them it may see.

A third of the sizes of every sweep is held out, and of the collectives only a few simple algorithms are seen. The fit
has to predict everything else.

A virtual machine changes during a run: two of its processors may share a core in one launch and be far apart in the
next. The median over all launches then describes neither state. Each launch of an experiment lies between two
ping-pongs (`canary_before_ns`, `canary_after_ns`). Only launches in the state that is most frequent over the whole run
count, and an experiment without such a launch is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from linkwright import _native
from linkwright.ask.question import Collective, Own, Pattern, of_row
from linkwright.base.errors import StoreError, unknown
from linkwright.base.rows import given
from linkwright.base.stats.interval import median_interval
from linkwright.executors import is_modelled
from linkwright.store.run import Run

# Smallest half interval, as a share of the value: launches of one day differ by as much.
LEAST_ERROR = 0.02
# Half the interval, as a share of the value, where launches are too few for one.
UNKNOWN_ERROR = 0.1
# Algorithms with simple steps, from which the costs of arithmetic and copies are fitted.
SEEN = (
    "broadcast/linear",
    "reduce/linear",
    "alltoall/bruck",
    "allgather/linear",
    "reduce_scatter/pairwise",
    "barrier/dissemination",
)
# Experiment -> (median, (ping-pong before, after)) of each launch, in ns.
Launches = Mapping[str, list[tuple[float, tuple[float, float]]]]
# Two states of a machine differ by more than this factor in the ping-pong; within one it differs by less.
STATES_DIFFER = 1.6


@dataclass(frozen=True)
class Point:
    """One measured experiment."""

    question: Collective | Pattern
    time_ns: float
    error_ns: float  # half of the interval, at least `LEAST_ERROR`
    seen: bool

    @property
    def sweep(self) -> tuple:
        """What all sizes of one sweep share."""
        e = self.question
        traffic = (e.messages, e.both_ways) if isinstance(e, Pattern) else ()
        return (e.part, e.algorithm_key, e.ranks, *traffic, e.placement, e.op, e.dtype)


@dataclass(frozen=True)
class State:
    """The state of the machine in most launches, as a range of its ping-pong in ns."""

    low_ns: float
    high_ns: float
    share: float  # of all launches

    def __str__(self) -> str:
        side = f"below {self.high_ns:.0f}" if self.low_ns == 0.0 else f"above {self.low_ns:.0f}"
        return f"launches between ping-pongs {side} ns count, {self.share:.0%} of all"

    def holds(self, before_ns: float, after_ns: float) -> bool:
        """Whether the machine was in this state before and after."""
        return all(self.low_ns <= probe <= self.high_ns for probe in (before_ns, after_ns))


def points(run: Run, machine: str | None = None) -> list[Point]:
    """The measured times of a run in the order of its rows."""
    rows = measured_rows(run, machine)
    launches = _launches(run)
    state = _state(launches)
    inside = [_of(state, launches.get(row["experiment"], ())) for row in rows]
    found = [_point(run, row, values) for row, values in zip(rows, inside, strict=True) if state is None or len(values)]
    sweeps: dict[tuple, list[int]] = {}
    for point in found:
        sweeps.setdefault(point.sweep, []).append(point.question.size_bytes)
    return [_judged(point, sorted(sweeps[point.sweep])) for point in found]


def state(run: Run) -> State | None:
    """The state whose launches count; None if all of them do."""
    return _state(_launches(run))


def _state(launches: Launches) -> State | None:
    return state_of([probes for its in launches.values() for _, probes in its])


def measured_rows(run: Run, machine: str | None = None) -> list[dict]:
    """The rows of measured times of ping-pongs, messages in a row and collectives of one machine."""
    results = run.results().records()
    known = list(dict.fromkeys(row["machine"] for row in results))
    if machine not in (None, *known):
        raise unknown("machine in this run", machine, known)
    rows = [
        row
        for row in results
        if row["metric"] == "time" and row["value"] and row["executor"] and not is_modelled(row["executor"])
        if (row["collective"] or row["algorithm"] in ("ping_pong", "pairs")) and machine in (None, row["machine"])
    ]
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    if not rows:
        raise StoreError(
            f"run {run.id}: holds no measured ping-pong or collective; name another run, or make one with "
            "`linkwright dissect --suite fit`"
        )
    if len(machines) > 1:
        raise StoreError(f"run {run.id}: measured {' and '.join(machines)}; choose one with --machine")
    return rows


def state_of(probes: Iterable[tuple[float, float]]) -> State | None:
    """The most frequent state among launches (probe before, after); None where nothing tells states apart.

    Probes in ascending order fall into states where one is larger than the one before by `STATES_DIFFER`, or
    where their density is least between two clusters that far apart.
    """
    pairs = np.array([pair for pair in probes if None not in pair and min(pair) > 0], dtype=float).reshape(-1, 2)
    if len(pairs) < 2:
        return None
    logs = np.sort(np.log(pairs.ravel()))
    cut = _valley(logs)
    if cut is None:
        return None
    low, high = (-np.inf, cut), (cut, np.inf)
    inside = [((a <= np.log(pairs)) & (np.log(pairs) <= b)).all(axis=1).mean() for a, b in (low, high)]
    (a, b), share = ((low, high)[int(np.argmax(inside))], float(max(inside)))
    return State(float(np.exp(a)), float(np.exp(b)), share)


def _valley(logs: np.ndarray) -> float | None:
    """Where sorted values fall into two groups, by 2-means; None where the groups are not apart or one is tiny."""
    n = len(logs)
    cuts = np.arange(max(1, n // 20), n - max(1, n // 20) + 1)
    if len(cuts) == 0:
        return None
    sums, squares = np.concatenate([[0], np.cumsum(logs)]), np.concatenate([[0], np.cumsum(logs**2)])
    below = squares[cuts] - sums[cuts] ** 2 / cuts
    above = (squares[n] - squares[cuts]) - (sums[n] - sums[cuts]) ** 2 / (n - cuts)
    cut = int(cuts[np.argmin(below + above)])
    low, high = np.median(logs[:cut]), np.median(logs[cut:])
    return None if high - low < np.log(STATES_DIFFER) else float((low + high) / 2)


def _launches(run: Run) -> Launches:
    """The launches that count, if the run keeps them."""
    slowest = run.samples()
    for name in ("canary_before_ns", "canary_after_ns"):
        slowest = slowest[given(slowest[name])]
    slowest = slowest[~given(slowest["rank"]) & ~given(slowest["set_aside"])]
    found: Launches = {}
    for (experiment, _), its in slowest.by("experiment", "launch", sort=True):
        canaries = float(its["canary_before_ns"][0]), float(its["canary_after_ns"][0])
        found.setdefault(experiment, []).append((float(np.median(its["value_ns"])), canaries))
    return found


def _of(state: State | None, launches: Iterable[tuple[float, tuple[float, float]]]) -> np.ndarray:
    """Medians of the launches that saw the machine in `state`."""
    return np.array([value for value, probes in launches if state and state.holds(*probes)])


def _point(run: Run, row: dict, values: np.ndarray) -> Point:
    own = Own(_native.Schedule.parse(run.schedule(row["schedule"]))) if row["schedule"] else None
    question = of_row(row, own)
    if len(values):
        time_ns, ends = float(np.median(values)), median_interval(values)
    else:
        time_ns, ends = row["value"], (row["ci_low"], row["ci_high"])
    if ends is None or None in ends:
        spread = float(np.abs(values - time_ns).max()) if len(values) > 1 else 0.0
        half = max(UNKNOWN_ERROR * time_ns, spread)
    else:
        half = (ends[1] - ends[0]) / 2
    return Point(question, time_ns, max(half, LEAST_ERROR * time_ns), seen=False)


def _judged(point: Point, sizes: list[int]) -> Point:
    """Every third size is held out, from the second on, so the ends of a sweep are seen."""
    question = point.question
    held_out = len(sizes) >= 3 and sizes.index(question.size_bytes) % 3 == 1
    plain = isinstance(question, Pattern) or question.algorithm_key in SEEN
    return replace(point, seen=plain and not held_out)
