"""The verdict on a log: how the sizes that show rates compare with the healthy machine, and the small ones.

A size shows the rate of links if the healthy machine reaches nine tenths of its rate for large sizes there. Nine in ten
published tables of healthy nodes are within a quarter of the model at such sizes (`linkwright reproduce modern`), so
anything closer than that is within the model's error. Small sizes depend on the launch of kernels, which differs
between sites by a factor of two; a log that has only such sizes is judged by its largest, more loosely.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FINE, BROKEN = 0.80, 0.50  # of the healthy rate
# The same where all sizes are small, and start-ups differ between sites.
LOOSE_FINE, LOOSE_BROKEN = 0.50, 0.33
FLAT = 0.90  # of the healthy rate for large sizes, from which on a size shows rates
SCATTERS = 2.0  # times the share of another size that the largest has, from which on they disagree
SLOW = 1.5  # threshold, as a multiple of the healthy time, for reporting small sizes
WORDS = ("fine", "unsure", "suspicious", "broken", "faster than expected")


@dataclass(frozen=True)
class Point:
    """One size: times in us, rates in 10^9 B/s."""

    size: int
    time: float
    busbw: float
    healthy: float
    healthy_busbw: float

    @property
    def share(self) -> float:
        """Share of the healthy rate."""
        return self.healthy / self.time


@dataclass(frozen=True)
class LogVerdict:
    """How a log compares.

    Attributes:
        word: one of `WORDS`; `unsure` where a better rate would rest on an assumed number, or sizes disagree.
        share: of the healthy rate: the median of the sizes that show rates, or that of the largest one if it is lower.
        judged: the sizes that show rates; the largest size if none does.
        small: whether no size shows rates.
        loose: whether the thresholds are those of small sizes.
        reached: the healthy machine's rate at the largest size, as a share of its rate for large sizes.
        scatter: the share of the largest size over the least one that is judged.
    """

    word: str
    share: float
    judged: tuple[Point, ...]
    small: bool
    loose: bool
    reached: float
    scatter: float = 1.0

    @property
    def rule(self) -> str:
        """The rule that gives the word."""
        fine, broken = (LOOSE_FINE, LOOSE_BROKEN) if self.loose else (FINE, BROKEN)
        known = "and no more can be judged" if self.loose else "within the model's error for healthy machines"
        return {
            "fine": f"above {fine:.0%}, {known}",
            "unsure": f"sizes that should have one rate disagree by a factor of {self.scatter:.2g}; run again"
            if self.scatter > SCATTERS
            else f"between {LOOSE_BROKEN:.0%} and {FINE:.0%}, and the healthy rate is assumed",
            "suspicious": f"between {broken:.0%} and {fine:.0%}",
            "broken": f"below {broken:.0%}",
            "faster than expected": f"above {1 / fine:.0%}: check how the tool counts, and which machine is named",
        }[self.word]


def of(points: Sequence[Point], large_busbw: float, *, by_library: bool = True, assumed: bool = False) -> LogVerdict:
    """Return the verdict on the sizes of a log.

    Args:
        points: its sizes, in their order.
        large_busbw: the healthy rate for large sizes, in 10^9 B/s.
        by_library: whether a library starts it, whose start-up differs between sites.
        assumed: whether the healthy rate rests on an assumed number.
    """
    end = max(large_busbw, *(point.healthy_busbw for point in points))
    showing = tuple(point for point in points if point.healthy_busbw >= FLAT * end)
    judged = showing or (points[-1],)
    share = min(statistics.median(point.share for point in judged), judged[-1].share)
    loose = by_library and not showing
    fine, broken = (LOOSE_FINE, LOOSE_BROKEN) if loose else (FINE, BROKEN)
    word = "fine" if share >= fine else "suspicious" if share >= broken else "broken"
    if share > 1 / fine:
        word = "faster than expected"
    if assumed and word != "fine" and LOOSE_BROKEN <= share <= 1 / LOOSE_BROKEN:
        word = "unsure"
    # A limit that lasts holds for the largest size, too.
    scatter = judged[-1].share / min(point.share for point in judged)
    if word in ("suspicious", "broken") and scatter > SCATTERS and judged[-1].share >= BROKEN:
        word = "unsure"
    return LogVerdict(word, share, judged, not showing, loose, points[-1].healthy_busbw / end, scatter)
