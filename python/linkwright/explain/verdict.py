"""The verdict on a log: how its largest sizes compare with the healthy machine, and its small ones.

Large sizes show rates. Nine in ten published tables of healthy nodes are within a quarter of the model there
(`linkwright reproduce modern`), so less than that is no finding.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwright import units

if TYPE_CHECKING:
    from .log import Answer, Point

FINE, BROKEN = 0.80, 0.50  # of the healthy rate
LARGEST = 3  # sizes that the verdict looks at
SLOW = 1.5  # times the healthy time, to be told of small sizes

_RULES = {
    "fine": f"above {FINE:.0%}, which is as near as the model is to healthy machines",
    "suspicious": f"between {BROKEN:.0%} and {FINE:.0%}",
    "broken": f"below {BROKEN:.0%}",
    "faster than expected": f"above {1 / FINE:.0%}: look at what the tool counts, and at the machine that is named",
}


def share(points: Sequence[Point]) -> float:
    """Of the healthy rate, at the largest sizes."""
    return statistics.median(point.healthy / point.time for point in points[-LARGEST:])


def of(healthy_share: float) -> str:
    """The verdict in a word or two."""
    if healthy_share > 1 / FINE:
        return "faster than expected"
    return "fine" if healthy_share >= FINE else "suspicious" if healthy_share >= BROKEN else "broken"


def told(answer: Answer) -> list[str]:
    """The verdict in sentences: of the largest sizes, and of the small ones where these are slow."""
    from .log import bus_factor

    last = answer.points[-1]
    first = (
        f"Verdict: {answer.verdict}. At {_size(last.size)} you have {last.busbw:.3g} GB/s, a healthy "
        f"machine has {last.healthy_busbw:.3g} ({answer.choice}). At the largest sizes yours has {answer.share:.0%} "
        f"of its rate: {_RULES[answer.verdict]}. busbw is {bus_factor(answer.system):.4g} x size / time."
    )
    return [first, *_small(answer.points)]


def _small(points: Sequence[Point]) -> list[str]:
    """What the largest sizes do not say."""
    slow = [point for point in points[:-LARGEST] if point.time > SLOW * point.healthy]
    if not slow:
        return []
    most = max(slow, key=lambda point: point.time / point.healthy)
    times = f"{most.time / most.healthy:.2g} times as long as a healthy one"
    return [f"Smaller sizes are slow: at {_size(most.size)} yours takes {times}."]


def _size(size: int) -> str:
    found = units.format_size(size)
    return f"{found} B" if found.isdigit() else found
