"""Least squares on the logarithm of times: from a model with unknown numbers to numbers with intervals.

    minimise  sum over points   rho( log(model / measured) / error )
            + sum over numbers  ( log(number / begin) / log 10 )^2

Weights are the inverse squares of the points' intervals; rho is the soft l1 norm, so a single disturbed experiment has
little influence. A number that hardly matters stays near its initial value: changing it by a factor of ten costs as
much as one point that is off by its interval. The search works on logarithms, so no number becomes negative. Intervals
are those of least squares at the solution (95 %, Student), widened if the points scatter more than their own intervals
allow; a number that no point determines gets a wide interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwright.base.errors import StoreError

from .machine_file import MachineFile
from .points import Point
from .protocol import Protocol
from .regimes import CONFIDENCE, Fit

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# Bounds of any number, as factors of where the search begins: the run says nothing beyond them.
REACH = 1e3
# Points below which numbers are not fitted together.
LEAST_POINTS = 12
MOST_TRIALS = 40
# How far, in natural logarithms, a number goes for the price of one interval.
FREE = np.log(10)


def search(
    begin: Mapping[str, float], points: Sequence[Point], times_ns: Callable[[dict[str, float]], Sequence[float]]
) -> dict[str, Fit]:
    """Numbers by name with intervals; `times_ns` gives the model's time of every point for such numbers."""
    from scipy.optimize import least_squares

    names, start = list(begin), np.log(list(begin.values()))
    measured = np.log([point.time_ns for point in points])
    errors = np.array([point.error_ns / point.time_ns for point in points])

    def residuals(logs: np.ndarray) -> np.ndarray:
        values = dict(zip(names, np.exp(logs).tolist(), strict=True))
        misses = (np.log(times_ns(values)) - measured) / errors
        return np.concatenate([_robust(misses), (logs - start) / FREE])

    wide = np.log(REACH)
    found = least_squares(residuals, start, bounds=(start - wide, start + wide), diff_step=0.01, max_nfev=MOST_TRIALS)
    return with_intervals(names, found, len(points))


def with_intervals(names: Sequence[str], found: OptimizeResult, points: int) -> dict[str, Fit]:
    """The solution of a least-squares fit in logarithms, whose first residuals are those of so many points."""
    from scipy.stats import t

    freedom = max(1, points - len(names))
    scatter = max(1.0, float(np.median(np.abs(found.fun[:points])) / 0.6745) ** 2)
    spread = np.sqrt(np.diag(np.linalg.pinv(found.jac.T @ found.jac)) * scatter)
    reach = np.minimum(t.ppf((1 + CONFIDENCE) / 2, freedom) * spread, 2 * np.log(REACH))
    ends = zip(names, found.x, found.x - reach, found.x + reach, strict=True)
    return {name: Fit(*(float(np.exp(x)) for x in three)) for name, *three in ends}


def constants(values: Mapping[str, float]) -> dict[str, Fit]:
    """Numbers without intervals: those of a trial."""
    return {key: Fit(value, value, value) for key, value in values.items()}


def check_enough(seen: Sequence[Point], run: str) -> None:
    """Refuse a run that shows too little for numbers that are fitted together."""
    if len(seen) < LEAST_POINTS:
        raise StoreError(
            f"run {run}: {len(seen)} ping-pongs, messages in a row and plain algorithms are seen; {LEAST_POINTS} are "
            "needed: run the suite `fit` with a longer --time-budget"
        )


def sweeps(seen: Sequence[Point], run: str, ends: str) -> tuple[list[Point], list[Point]]:
    """The ping-pongs and the messages in a row between two ranks; `ends` is what the ranks are, in messages."""
    found = []
    for pattern, name in (("ping_pong", "ping-pongs"), ("pairs", "messages in a row")):
        questions = ((point, point.question) for point in seen)
        found.append([p for p, e in questions if e.algorithm_key == pattern and e.ranks == 2 and e.size_bytes])
        if not found[-1]:
            raise StoreError(
                f"run {run}: no {name} between two {ends} are seen; run the suite `fit` with a longer --time-budget"
            )
    return found[0], found[1]


def protocol_times_ns(trial: MachineFile, points: Sequence[Point], protocol: Protocol) -> list[float]:
    """The times of the points on a trial model, taken as the executor takes them."""
    machine = trial.machine()
    return [protocol.time_ns(p.question, machine, trial.release_ns, trial.kind) for p in points]


def cost(points: Sequence[Point], times_ns: Sequence[float]) -> float:
    """How far a model's times are from the measured ones, as `search` counts it."""
    misses = [
        np.log(t / point.time_ns) * point.time_ns / point.error_ns for t, point in zip(times_ns, points, strict=True)
    ]
    return float(np.sum(_robust(np.array(misses)) ** 2))


def _robust(misses: np.ndarray) -> np.ndarray:
    """Residuals whose squares are the soft l1 norm of `misses`: z^2 where small, 2 |z| where large."""
    return np.sign(misses) * np.sqrt(2 * (np.sqrt(1 + misses**2) - 1))
