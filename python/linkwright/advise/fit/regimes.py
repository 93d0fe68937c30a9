"""Time by size as a few straight lines, with an interval for every number.

    T(S) = start + S * per_byte        from one change point to the next

Measured curves bend where the protocol or the cache changes. Every division of the sizes into at most three regimes of
at least three points is tried. In each regime, start and slope are fitted by least squares, weighted by the inverse
square of the points' intervals; both are at least zero. The division with the least

    BIC = n log(chi2 / n) + k log n        k = two for each regime and one for each change point

wins, so a change point must explain enough to be kept. Divisions under which a longer message would be faster are
rejected. Intervals are those of weighted least squares (95 %, Student), widened if the points scatter more than their
own intervals allow.

Source: Hoefler, Lichei and Rehm, "Low-overhead LogGP parameter assessment for modern interconnection
networks" (2007), for the lines and change points; Schwarz, "Estimating the dimension of a model" (1978).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.base.stats.interval import CONFIDENCE

MOST_REGIMES = 3
MIN_POINTS = 3


@dataclass(frozen=True)
class Fit:
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Regime:
    """One straight line, for messages of at least `from_bytes`."""

    from_bytes: int
    start_ns: Fit
    ns_per_byte: Fit
    points: int
    chi2: float

    def at(self, size: float) -> float:
        """Time of a message in ns."""
        return self.start_ns.value + size * self.ns_per_byte.value


def regimes(sizes: np.ndarray, times_ns: np.ndarray, errors_ns: np.ndarray) -> list[Regime]:
    """The regimes of a curve of at least three points with ascending sizes."""
    if len(sizes) < MIN_POINTS:
        raise ValueError(f"{len(sizes)} points are too few to fit a line with intervals; give at least {MIN_POINTS}")
    return min(_candidates(sizes, times_ns, errors_ns), key=lambda found: _bic(found, len(sizes)))


def _candidates(sizes: np.ndarray, times_ns: np.ndarray, errors_ns: np.ndarray) -> Iterator[list[Regime]]:
    n = len(sizes)
    for count in range(1, MOST_REGIMES + 1):
        for cuts in itertools.combinations(range(MIN_POINTS, n - MIN_POINTS + 1), count - 1):
            parts = [slice(a, b) for a, b in itertools.pairwise([0, *cuts, n])]
            if all(p.stop - p.start >= MIN_POINTS for p in parts):
                found = [_line(sizes[p], times_ns[p], errors_ns[p], first=p.start == 0) for p in parts]
                if all(b.at(b.from_bytes) >= a.at(b.from_bytes - 1) for a, b in itertools.pairwise(found)):
                    yield found


def _line(sizes: np.ndarray, times_ns: np.ndarray, errors_ns: np.ndarray, first: bool) -> Regime:
    from scipy.optimize import nnls
    from scipy.stats import t

    design = np.column_stack([np.ones(len(sizes)), sizes]) / errors_ns[:, None]
    (start, slope), norm = nnls(design, times_ns / errors_ns)
    chi2, freedom = norm**2, max(1, len(sizes) - 2)
    covariance = np.linalg.pinv(design.T @ design) * max(1.0, chi2 / freedom)
    reach = t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(np.diag(covariance))
    fits = [Fit(float(v), max(0.0, float(v - r)), float(v + r)) for v, r in zip((start, slope), reach, strict=True)]
    return Regime(0 if first else int(sizes[0]), *fits, points=len(sizes), chi2=float(chi2))


def _bic(found: list[Regime], n: int) -> float:
    chi2 = sum(regime.chi2 for regime in found)
    return n * math.log(max(chi2, 1e-9) / n) + (3 * len(found) - 1) * math.log(n)
