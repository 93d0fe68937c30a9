"""Is the second of two measurements the SAME, FASTER or SLOWER, or can the data not tell: UNKNOWN?

The launch medians of both sides are compared by the interval of their ratio r, second over first. It holds the factors
that a Mann-Whitney rank test at 5 % does not refuse (`base/stats/ratio.py`), so an interval without 1 means p < 0.05.

    FASTER / SLOWER   the interval lies beyond 1 by more than 3 %, or than the precision of the less precise value: a
                      smaller difference may come from the runs themselves, in which a machine is never quite the same
    SAME              the interval lies within 10 % of 1 where both values are tight, within 20 % where one is fair:
                      twice what the grade promises of each
    UNKNOWN           otherwise, with the reason

Of imported logs that have fewer than six values, the largest tolerance of `expect` decides instead (`single`): how far
healthy systems of the kind differ.

A wide value (`base/stats/grade.py`) is never SAME, and FASTER or SLOWER only if the intervals of both medians are
disjoint
too. Where launches fall into modes, modes are compared with modes; a mean over both would call a change of their shares
a change of speed. Modelled values are exact, so any difference is one.

Source: Hoefler and Belli (SC 2015), rules 6 and 8; Lakens (2017), "Equivalence tests", for the margins.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from linkwright.base.stats.grade import FAIR, TARGET, precision
from linkwright.base.stats.interval import MIN_VALUES
from linkwright.base.stats.modes import Mode, modes
from linkwright.base.stats.ratio import p_value, ratio_interval

# Shares by which a ratio differs from 1.
RESOLVED = 0.03
SAME_IF_TIGHT = 2 * TARGET
SAME_IF_FAIR = 2 * FAIR


class Verdict(enum.StrEnum):
    """How the second measurement compares with the first."""

    SAME = "SAME"
    FASTER = "FASTER"
    SLOWER = "SLOWER"
    UNKNOWN = "UNKNOWN"


class Why(enum.StrEnum):
    """Why a verdict is UNKNOWN."""

    MISSING = "missing"
    DISTURBED = "disturbed"
    SINGLE = "single"
    WIDE = "wide"
    UNCLEAR = "unclear"


# What each reason means, and what helps.
MEANINGS = {
    Why.MISSING: "no value in one of the runs",
    Why.DISTURBED: "every launch of one of the runs was disturbed; stop other programs",
    Why.SINGLE: f"fewer than {MIN_VALUES} launches in one of the runs; allow more time with --time-budget, or import "
    f"{MIN_VALUES} logs",
    Why.WIDE: f"±{100 * FAIR:g} % or more in one of the runs; allow more time with --time-budget",
    Why.UNCLEAR: "the difference is neither significant nor small; allow more time with --time-budget",
}


@dataclass(frozen=True)
class Comparison:
    """One verdict and the numbers behind it."""

    verdict: Verdict
    first_ns: float
    second_ns: float
    reason: str
    why: Why | None = None  # of an UNKNOWN
    low: float | None = None  # 95 % interval of the ratio
    high: float | None = None

    @property
    def ratio(self) -> float:
        """Second over first; below 1 is faster."""
        return self.second_ns / self.first_ns if self.first_ns else float("nan")


def exact(first_ns: float, second_ns: float) -> Comparison:
    """Two modelled values."""
    if first_ns == second_ns:
        return Comparison(Verdict.SAME, first_ns, second_ns, "equal")
    verdict = Verdict.FASTER if second_ns < first_ns else Verdict.SLOWER
    return Comparison(verdict, first_ns, second_ns, "deterministic")


def single(first_ns: float, second_ns: float, tolerance: float) -> Comparison:
    """Two values of one measurement each; `tolerance` is the share by which rates of healthy systems differ."""
    reason = f"one value each; rates of healthy systems of this kind differ by up to {tolerance:.0%}"
    ratio = second_ns / first_ns if first_ns else float("nan")
    if ratio < 1 - tolerance:
        return Comparison(Verdict.FASTER, first_ns, second_ns, reason)
    if ratio * (1 - tolerance) > 1:
        return Comparison(Verdict.SLOWER, first_ns, second_ns, reason)
    if 1 / (1 + SAME_IF_FAIR) <= ratio <= 1 + SAME_IF_FAIR:
        return Comparison(Verdict.SAME, first_ns, second_ns, reason)
    return unknown(first_ns, second_ns, Why.SINGLE, reason)


def unknown(first_ns: float | None, second_ns: float | None, why: Why, reason: str) -> Comparison:
    """Two values that cannot be judged; one that is missing is NaN."""
    first, second = (float("nan") if value is None else value for value in (first_ns, second_ns))
    return Comparison(Verdict.UNKNOWN, first, second, reason, why)


def measured(first: np.ndarray, second: np.ndarray) -> list[Comparison]:
    """Launch medians of both sides: one comparison, or one for each pair of modes that holds enough launches."""
    first_modes, second_modes = modes(first), modes(second)
    if len(first_modes) == len(second_modes):
        pairs = list(zip(first_modes, second_modes, strict=True))
    elif len(first_modes) == 1:
        pairs = [(first_modes[0], _nearest(first_modes[0], second_modes))]
    else:
        pairs = [(_nearest(second_modes[0], first_modes), second_modes[0])]
    note = _mode_note(first_modes, second_modes)
    enough = [pair for pair in pairs if min(len(mode.members) for mode in pair) >= MIN_VALUES]
    largest = max(pairs, key=lambda pair: pair[0].share + pair[1].share)
    return [_pair(first[list(a.members)], second[list(b.members)], a, b, note) for a, b in enough or [largest]]


def _nearest(mode: Mode, candidates: tuple[Mode, ...]) -> Mode:
    return min(candidates, key=lambda other: abs(np.log(other.median / mode.median)))


def _mode_note(first: tuple[Mode, ...], second: tuple[Mode, ...]) -> str:
    if len(first) == len(second) == 1:
        return ""
    shares = [" + ".join(f"{mode.share:.0%}" for mode in side) for side in (first, second)]
    return f"; modes {shares[0]} against {shares[1]}"


def _pair(first: np.ndarray, second: np.ndarray, one: Mode, other: Mode, note: str) -> Comparison:
    a, b = one.median, other.median
    found = ratio_interval(first, second)
    if found is None or one.interval is None or other.interval is None:
        few = f"{len(first)} and {len(second)} launches; an interval needs {MIN_VALUES} in each"
        return unknown(a, b, Why.SINGLE, few + note)
    low, high = found
    (low_a, high_a), (low_b, high_b) = one.interval, other.interval
    widest = max(precision(a, low_a, high_a) or 0.0, precision(b, low_b, high_b) or 0.0)
    apart = high_a < low_b or high_b < low_a
    verdict, why = judged(low, high, widest, apart)
    reason = f"ratio {low:.3f} to {high:.3f}, p = {p_value(first, second):.2g}{note}"
    return Comparison(verdict, a, b, reason, why, low, high)


def judged(low: float, high: float, widest: float, apart: bool) -> tuple[Verdict, Why | None]:
    """The verdict on an interval of the ratio; `apart`: the intervals of the medians are disjoint."""
    if widest > FAIR and not apart:
        return Verdict.UNKNOWN, Why.WIDE
    resolved = max(RESOLVED, widest)
    if low > 1 + resolved:
        return Verdict.SLOWER, None
    if high < 1 / (1 + resolved):
        return Verdict.FASTER, None
    if widest > FAIR:
        return Verdict.UNKNOWN, Why.WIDE
    margin = SAME_IF_TIGHT if widest <= TARGET else SAME_IF_FAIR
    if 1 / (1 + margin) <= low and high <= 1 + margin:
        return Verdict.SAME, None
    return Verdict.UNKNOWN, Why.UNCLEAR
