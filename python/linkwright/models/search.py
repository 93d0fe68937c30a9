"""Least squares on the logarithm of times: from a model with unknown numbers to numbers with intervals.

    minimise  sum over points   rho( log(model / measured) / error )
            + sum over numbers  ( log(number / begin) / log 10 )^2

Weights are the inverse squares of the points' intervals; rho is the soft l1 norm, so one experiment that another
process disturbed moves no number of the machine. A number that hardly matters stays near where it began: a
factor of ten away costs as much as one point that is off by its interval. Numbers are searched by their logarithm, so
none becomes negative. Intervals are those of least squares at the solution (95 %, Student), widened where the
points scatter more than they claim; a number that no point shows has an interval that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .points import Point
from .regimes import CONFIDENCE, Fit

# Least and most of any number, as factors of where the search begins: what is beyond is not told by the run.
REACH = 1e3
MOST_TRIALS = 40
# How far, in natural logarithms, a number goes for the price of one interval.
FREE = np.log(10)


def search(
    begin: Mapping[str, float], points: Sequence[Point], times_ns: Callable[[dict[str, float]], Sequence[float]]
) -> dict[str, Fit]:
    """Numbers by name with intervals; `times_ns` gives the model's time of every point for such numbers."""
    from scipy.optimize import least_squares
    from scipy.stats import t

    names, start = list(begin), np.log(list(begin.values()))
    measured = np.log([point.time_ns for point in points])
    errors = np.array([point.error_ns / point.time_ns for point in points])

    def residuals(logs: np.ndarray) -> np.ndarray:
        values = dict(zip(names, np.exp(logs).tolist(), strict=True))
        misses = (np.log(times_ns(values)) - measured) / errors
        return np.concatenate([_robust(misses), (logs - start) / FREE])

    wide = np.log(REACH)
    found = least_squares(residuals, start, bounds=(start - wide, start + wide), diff_step=0.01, max_nfev=MOST_TRIALS)
    freedom = max(1, len(points) - len(names))
    scatter = max(1.0, float(np.median(np.abs(found.fun[: len(points)])) / 0.6745) ** 2)
    spread = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)) * scatter)
    reach = np.minimum(t.ppf((1 + CONFIDENCE) / 2, freedom) * spread, 2 * wide)
    ends = zip(names, found.x, found.x - reach, found.x + reach, strict=True)
    return {name: Fit(*(float(np.exp(x)) for x in three)) for name, *three in ends}


def cost(points: Sequence[Point], times_ns: Sequence[float]) -> float:
    """How far a model's times are from the measured ones, as `search` counts it."""
    misses = [
        np.log(t / point.time_ns) * point.time_ns / point.error_ns for t, point in zip(times_ns, points, strict=True)
    ]
    return float(np.sum(_robust(np.array(misses)) ** 2))


def _robust(misses: np.ndarray) -> np.ndarray:
    """Residuals whose squares are the soft l1 norm of `misses`: z^2 where small, 2 |z| where large."""
    return np.sign(misses) * np.sqrt(2 * (np.sqrt(1 + misses**2) - 1))
