"""Levels of a memory from its latency curve: plateaus and steps on logarithmic axes.

        log latency
            |                          ______  memory
            |                    _____/
            |              _____/              a step where the next level begins to answer
            |  ___________/
            +--------------------------------  log working set
                         ^     ^

The logarithms of the latencies are cut into constant pieces; dynamic programming tries all cuts, and the least value
of

    sum over pieces of (distance from the piece's mean / scatter)^2  +  penalty * number of pieces        (BIC)

wins. The scatter is what a plateau may wander (5 %, or the points' own interval where that is wider), the penalty two
parameters for each piece. Pieces that are wide and flat, and the last one, are plateaus; the rest is the
step itself. A level ends where the curve has risen half above its plateau (or, if that is lower, half the way
to the next one): once a cache is outgrown some loads miss, and those cost several times as much.

A step between two sampled sizes is known only to within their ratio. The method does not know why a latency rises:
the reach of the address translation (TLB) also makes a step.

Source: Jackson et al., "An algorithm for optimal partitioning of data on an interval" (2005); Schwarz (1978).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linkwright.base.lazy import np

SCATTER = 0.05
LEAST_STEP = 1.3  # plateaus closer than this are one level
LEAST_WIDTH = 2.0  # largest over smallest working set of a plateau, at least
MOST_SLOPE = 1.2  # last over first latency of a plateau, at most; steeper, it is part of a step
RISEN = 1.5  # a level has ended where latency is this much above its plateau
LEAST_POINTS = 4


@dataclass(frozen=True)
class Level:
    """One plateau, and where the curve leaves it."""

    latency: float
    first_bytes: float  # smallest and largest working set that it answers
    last_bytes: float
    end_bytes: float | None  # where it ends; None: the last level
    beyond_bytes: float | None  # first working set behind its end


def levels(sizes: np.ndarray, latencies: np.ndarray, errors: np.ndarray | None = None) -> list[Level]:
    """The levels of a curve, nearest first; sizes ascending. Fewer than four points show no level."""
    if len(sizes) < LEAST_POINTS:
        return []
    heights = np.log(latencies)
    scatter = np.full(len(sizes), SCATTER)
    if errors is not None:
        scatter = np.maximum(scatter, np.nan_to_num(errors / latencies))
    pieces = _merged(_plateaus(_cut(heights, scatter), sizes, latencies), heights)
    means = [float(np.median(heights[a:b])) for a, b in pieces]
    found = []
    for k, (a, b) in enumerate(pieces):
        last, end, beyond = float(sizes[b - 1]), None, None
        if k < len(pieces) - 1:
            risen = min(means[k] + math.log(RISEN), (means[k] + means[k + 1]) / 2)
            before, end = _crossing(np.log(sizes), heights, b - 1, pieces[k + 1][0], risen)
            last, beyond = float(sizes[before]), float(sizes[before + 1])
        found.append(Level(math.exp(means[k]), float(sizes[a]), last, end, beyond))
    return found


def _cut(heights: np.ndarray, scatter: np.ndarray) -> list[tuple[int, int]]:
    """The best partition into constant pieces, as half-open ranges."""
    n = len(heights)
    weights = 1 / scatter**2
    sums = [np.concatenate([[0.0], np.cumsum(weights * heights**k)]) for k in range(3)]
    penalty = 2 * math.log(n)

    def cost(a: int, b: int) -> float:
        w, wy, wyy = (s[b] - s[a] for s in sums)
        return float(wyy - wy * wy / w)

    best, start = [0.0], [0]
    for b in range(1, n + 1):
        total, a = min((best[a] + cost(a, b) + penalty, a) for a in range(b))
        best.append(total)
        start.append(a)
    pieces, b = [], n
    while b:
        pieces.append((start[b], b))
        b = start[b]
    return pieces[::-1]


def _plateaus(pieces: list[tuple[int, int]], sizes: np.ndarray, latencies: np.ndarray) -> list[tuple[int, int]]:
    """The pieces that are wide and flat enough; the last one ends with the curve and is taken as it is."""

    def flat(a: int, b: int) -> bool:
        wide = sizes[b - 1] >= LEAST_WIDTH * sizes[a] * (1 - 1e-9)
        return bool(wide and latencies[b - 1] <= MOST_SLOPE * latencies[a])

    return [(a, b) for a, b in pieces if b == len(sizes) or flat(a, b)]


def _merged(pieces: list[tuple[int, int]], heights: np.ndarray) -> list[tuple[int, int]]:
    """A plateau that rises by less than a step, or falls, belongs to the previous one."""
    found = pieces[:1]
    for a, b in pieces[1:]:
        before = float(np.median(heights[slice(*found[-1])]))
        if float(np.median(heights[a:b])) < before + math.log(LEAST_STEP):
            found[-1] = (found[-1][0], b)
        else:
            found.append((a, b))
    return found


def _crossing(places: np.ndarray, heights: np.ndarray, first: int, last: int, middle: float) -> tuple[int, float]:
    """The point after which the curve passes `middle`, and where it does, interpolated on both logarithms."""
    i = next(i for i in range(first, last) if heights[i + 1] >= middle or i == last - 1)
    part = (middle - heights[i]) / (heights[i + 1] - heights[i])
    return i, float(math.exp(places[i] + min(1.0, max(0.0, part)) * (places[i + 1] - places[i])))
