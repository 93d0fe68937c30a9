"""The verdict on a log: how the sizes that show rates compare with the healthy machine, and the small ones.

A size shows the rate of links if the healthy machine reaches nine tenths of its rate for large sizes there. Those are
judged; a log without any is judged by its largest size. The thresholds are the floors of `expect`
(`libraries/tolerance.py`): nineteen in twenty published systems of the same kind are above them. Where none was
published, or those that were are below half of the model, rates between `BROKEN` and `FINE` cannot be told apart, and
the verdict is `unsure`. Start-ups of kernels differ between sites by a factor of two, so small sizes of such kinds are
judged more loosely.

A log that is fine may still be slow at sizes below those. Published floors of small sizes are low, and one launch in a
hundred is late, so only neighbours far below their floors count, or a size that the curve itself shows (`findings.py`).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from linkwright.base.units import counted, format_size
from linkwright.libraries.tolerance import Basis, Tolerance, admits

UNKNOWN = Tolerance(0.5, Basis.ANY, 0, 0)
# Of the healthy rate; FINE where no system of the kind was published.
FINE, BROKEN = 0.80, 0.50
# The same where all sizes are small: `unsure` from LOOSE on.
LOOSE, LOOSE_BROKEN = 0.50, 0.33
FLAT = 0.90  # of the healthy rate for large sizes, from which on a size shows rates
SCATTERS = 2.0  # times the share of another size that the largest has, from which on they disagree
SLOW = 1.5  # threshold, as a multiple of the healthy time, for reporting small sizes
# Of the rate: nine in ten published large sizes (256M and more) differ by less in place and out of place, which send
# the same bytes (2.8 %, references/modern). So near a floor, another run may be on its other side.
AGAIN = 0.03
# Of the floor of a size, below which it is slow whatever the others are; where start-ups bind, and where no floor is
# known, it is a third. Assumed: no published log states from where on its author called a size slow.
FAR_BELOW, FAR_BELOW_START = 0.5, 0.33
IN_PARTS = "slow at some sizes"
WORDS = ("fine", "unsure", IN_PARTS, "suspicious", "broken", "faster than expected")


@dataclass(frozen=True)
class Point:
    """One size: times in us, rates in 10^9 B/s."""

    size: int
    time: float
    busbw: float
    healthy: float
    healthy_busbw: float
    tolerance: Tolerance = UNKNOWN
    # Factors of the healthy time between which eight in ten published systems of this size are, on any machine.
    spread: tuple[float, float] = (1.0, 1.0)

    @property
    def least(self) -> float:
        """The share of the healthy rate below which the size is slow: the floor of such systems, if one is known."""
        return self.tolerance.least if self.tolerance.known else 1 / SLOW

    @property
    def share(self) -> float:
        """Share of the healthy rate."""
        return self.healthy / self.time

    @property
    def is_slow(self) -> bool:
        """Whether it is below the floor."""
        return not admits(self.share, 1 - self.least)

    @property
    def floor_busbw(self) -> float:
        """The rate below which it is slow."""
        return self.least * self.healthy_busbw

    @property
    def range(self) -> tuple[float, float]:
        """The bus rates between which eight in ten published systems of this size are."""
        low, high = self.spread
        return self.healthy_busbw / high, self.healthy_busbw / low


@dataclass(frozen=True)
class LogVerdict:
    """How a log compares.

    Attributes:
        word: one of `WORDS`; `unsure` where the healthy rate is assumed or unpublished, or sizes disagree.
        share: of the healthy rate: the median of the sizes that show rates, or that of the largest one if it is
            farther below its floor.
        judged: the sizes that show rates; the largest size if none does.
        small: whether no size shows rates.
        rule: what gives the word.
        reached: the healthy machine's rate at the largest size, as a share of its rate for large sizes.
        scatter: the share of the largest size over the least one that is judged.
        slow: neighbouring sizes below these that are slow for another reason than start-ups; empty if there are none.
    """

    word: str
    share: float
    judged: tuple[Point, ...]
    small: bool
    rule: str
    reached: float
    scatter: float = 1.0
    slow: tuple[Point, ...] = ()

    @property
    def why(self) -> str:
        """The rule, and the sizes that are slow although larger ones are not."""
        if not self.slow:
            return self.rule
        factors = sorted(point.time / point.healthy for point in self.slow)
        between = " to ".join(dict.fromkeys(f"{one:.2g}" for one in (factors[0], factors[-1])))
        ends = " to ".join(dict.fromkeys(format_size(point.size) for point in (self.slow[0], self.slow[-1])))
        takes = "takes" if len(self.slow) == 1 else "take"
        return f"{self.rule}; but {ends} {takes} {between} times as long as on a healthy machine"

    @property
    def passes(self) -> bool:
        """Whether no size is known to be slow, and those that should have one rate do."""
        return self.word not in (IN_PARTS, "suspicious", "broken") and not self.disagrees

    @property
    def disagrees(self) -> bool:
        """Whether it is unsure because sizes that should have one rate do not."""
        return self.word == "unsure" and self.scatter > SCATTERS


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
    # The median of the sizes and the last one, each by its own floor.
    middle, last = sorted(judged, key=lambda point: point.share)[(len(judged) - 1) // 2], judged[-1]
    half = statistics.median(point.share for point in judged)
    share, decides = min((half, middle), (last.share, last), key=lambda one: one[0] / one[1].least)
    # A limit that lasts holds for the largest size, too.
    scatter = judged[-1].share / min(point.share for point in judged)
    loose = by_library and not showing
    word, rule = _judged(share, decides.tolerance, loose=loose, assumed=assumed)
    if word in ("suspicious", "broken") and scatter > SCATTERS and judged[-1].share >= BROKEN:
        word, rule = "unsure", f"sizes that should have one rate disagree by a factor of {scatter:.2g}; run again"
    return LogVerdict(word, share, judged, not showing, rule, points[-1].healthy_busbw / end, scatter)


def in_parts(judged: LogVerdict, points: Sequence[Point], odd: Sequence[int], *, one_process: bool) -> LogVerdict:
    """Return the verdict with the sizes that are slow although larger ones are not; the same if there are none.

    Args:
        judged: the verdict on large sizes.
        points: all sizes, in their order.
        odd: sizes at which the curve itself is irregular.
        one_process: whether one process launches the GPUs of a node in turn, which makes all small sizes late.
    """
    if not judged.passes:
        return judged
    below = [point for point in points if point.size < judged.judged[0].size]
    runs = [list(its) for slow, its in groupby(below, key=lambda point: _is_far_below(point, FAR_BELOW)) if slow]
    slow = [its for its in runs if _counts(its, points[0], odd, one_process=one_process)]
    if not slow:
        return judged
    worst = max(slow, key=lambda its: max(point.time / point.healthy for point in its))
    return replace(judged, word=IN_PARTS, slow=tuple(worst))


def _counts(its: Sequence[Point], first: Point, odd: Sequence[int], *, one_process: bool) -> bool:
    """Whether neighbours are slow for another reason than start-ups and chance."""
    irregular = any(its[0].size <= size <= its[-1].size for size in odd)
    known = all(point.tolerance.known for point in its)
    if its[0] is first:  # all small sizes are slow, as late starts make them
        if one_process:
            return False
        its = [point for point in its if _is_far_below(point, FAR_BELOW_START)]
    return (irregular and bool(its)) or (known and len(its) > 1)


def _is_far_below(point: Point, share: float) -> bool:
    return point.share < (share * point.least if point.tolerance.known else FAR_BELOW_START)


def _judged(share: float, tolerance: Tolerance, *, loose: bool, assumed: bool) -> tuple[str, str]:
    """The word, and the rule that gives it."""
    least, broken = (LOOSE, LOOSE_BROKEN) if loose else (BROKEN, BROKEN)
    fine, most = FINE, 1 / least if loose else 1 / FINE
    if tolerance.known:
        fine, least = max(tolerance.least, BROKEN), tolerance.least
    floor = f", the floor of {counted(tolerance.tables, 'published table')} of such systems" if tolerance.known else ""
    if assumed and (LOOSE_BROKEN <= share < fine or most < share <= 1 / LOOSE_BROKEN):
        low, high = (LOOSE_BROKEN, fine) if share < fine else (most, 1 / LOOSE_BROKEN)
        return "unsure", f"between {low:.0%} and {high:.0%}, and the healthy rate is assumed"
    if share > most:
        return "faster than expected", f"above {most:.0%}: check how the tool counts, and which machine is named"
    if share >= fine or (tolerance.known and fine > BROKEN and admits(share, tolerance.share)):
        more = ", and no more can be judged" if loose else ""
        return "fine", f"above {fine:.0%}{floor or ', as nine in ten published tables of other systems are'}{more}"
    if tolerance.known and fine > BROKEN and share >= fine * (1 - AGAIN):
        return "unsure", f"at most {AGAIN:.0%}, as equal measurements may differ, below {fine:.1%}{floor}; run again"
    if share >= least:
        return "unsure", f"between {least:.0%} and {fine:.0%}, and no published system tells how much is healthy"
    if share < broken:
        return "broken", f"below {broken:.0%}"
    return "suspicious", f"between {broken:.0%} and {least:.0%}{floor}"
