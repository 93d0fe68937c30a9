"""Two groups among launch medians.

On a shared machine some launches run at one speed and some at another (two cores of a virtual machine
may or may not share a physical one), and a single median then describes neither. With so few launches a
mixture fit would be guesswork, so a simple rule decides. The sorted medians are cut where the
sum of squares within both sides is least (one-dimensional 2-means, on logarithms); the cut stands where

    both sides hold at least two launches,
    the gap at the cut is at least 10 % of the value below it, and
    the gap is at least three times as wide as the launches inside a side are spread (both sides).

One slow launch is an outlier, not a mode. Uniformly or normally distributed medians
pass the third test only by rare accident.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.base.lazy import np

from .interval import median_interval

MIN_MEMBERS = 2
MIN_GAP = 0.10
GAP_OVER_SPREAD = 3.0


@dataclass(frozen=True)
class Mode:
    """One group of launches."""

    median: float
    share: float
    members: tuple[int, ...]  # indices into the launch medians
    interval: tuple[float, float] | None = None  # of its median; None for too few launches


def modes(medians: np.ndarray) -> tuple[Mode, ...]:
    """One mode, or two with the faster first."""
    n = len(medians)
    order = np.argsort(medians, kind="stable")
    whole = (_mode(medians, order, n),) if n else ()
    if n < 2 * MIN_MEMBERS or medians[order[0]] <= 0:
        return whole
    ordered = np.log(medians[order])
    cuts = range(MIN_MEMBERS, n - MIN_MEMBERS + 1)
    cut = min(cuts, key=lambda c: ordered[:c].var() * c + ordered[c:].var() * (n - c))
    low, high = ordered[:cut], ordered[cut:]
    gap = high[0] - low[-1]
    spread = max(low[-1] - low[0], high[-1] - high[0])
    if gap < np.log1p(MIN_GAP) or gap < GAP_OVER_SPREAD * spread:
        return whole
    return _mode(medians, order[:cut], n), _mode(medians, order[cut:], n)


def _mode(medians: np.ndarray, members: np.ndarray, n: int) -> Mode:
    own = medians[members]
    return Mode(float(np.median(own)), len(members) / n, tuple(int(i) for i in members), median_interval(own))
