"""The verdict on a log: how its largest sizes compare with the healthy machine, and its small ones.

Large sizes show rates. Nine in ten published tables of healthy nodes are within a quarter of the model there
(`linkwright reproduce modern`), so less than that is no finding.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FINE, BROKEN = 0.80, 0.50  # of the healthy rate
LARGEST = 3  # sizes that the verdict looks at
SLOW = 1.5  # times the healthy time, to be told of small sizes

RULES = {
    "fine": f"above {FINE:.0%}, within the model's error for healthy machines",
    "suspicious": f"between {BROKEN:.0%} and {FINE:.0%}",
    "broken": f"below {BROKEN:.0%}",
    "faster than expected": f"above {1 / FINE:.0%}: check how the tool counts, and which machine is named",
}


@dataclass(frozen=True)
class Point:
    """One size: times in us, rates in 10^9 B/s."""

    size: int
    time: float
    busbw: float
    healthy: float
    healthy_busbw: float


def share(points: Sequence[Point]) -> float:
    """Of the healthy rate, at the largest sizes."""
    return statistics.median(point.healthy / point.time for point in points[-LARGEST:])


def of(healthy_share: float) -> str:
    """The verdict in a word or two."""
    if healthy_share > 1 / FINE:
        return "faster than expected"
    return "fine" if healthy_share >= FINE else "suspicious" if healthy_share >= BROKEN else "broken"
