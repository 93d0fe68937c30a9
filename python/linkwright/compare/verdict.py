"""Is the second of two measurements the SAME, FASTER or SLOWER, or can the data not tell: UNKNOWN?

The launch medians of both sides are compared by interval and by rank.

    r       median of the second over median of the first; its interval is that of the pairwise ratios that
            the rank test does not refuse (`stats/ratio.py`)
    U       Mann-Whitney rank test, exact for small samples; Cliff's delta = 2U/(n m) - 1 is its
            effect size: -1 when every launch of the second is faster, +1 when every one is slower

    FASTER / SLOWER   the intervals are disjoint, p < 0.05, |delta| >= 0.474 (a "large" effect) and
                      r differs from 1 by more than measuring resolves (1 %)
    SAME              the interval of r lies within 1 +- 5 %
    UNKNOWN           otherwise, with the reason

Where launches fall into modes, modes are compared with modes; a mean over both would call a change of
their shares a change of speed. Modelled values are exact, so any difference is one.

Source: Hoefler and Belli (SC 2015), rules 6 and 8; Romano et al. (2006) for the size of delta.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from linkwright.stats.interval import MIN_VALUES, median_interval
from linkwright.stats.modes import Mode, modes
from linkwright.stats.ratio import ratio_interval

ALPHA = 0.05
LARGE_EFFECT = 0.474
RESOLVED = 0.01
SAME_WITHIN = 0.05


class Verdict(enum.StrEnum):
    """How the second measurement compares with the first."""

    SAME = "SAME"
    FASTER = "FASTER"
    SLOWER = "SLOWER"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Comparison:
    """One verdict and the numbers behind it."""

    verdict: Verdict
    first_ns: float
    second_ns: float
    reason: str

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


def measured(first: np.ndarray, second: np.ndarray) -> list[Comparison]:
    """Launch medians of both sides: one comparison, or one for each pair of modes."""
    first_modes, second_modes = modes(first), modes(second)
    if len(first_modes) == len(second_modes):
        pairs = list(zip(first_modes, second_modes, strict=True))
    elif len(first_modes) == 1:
        pairs = [(first_modes[0], _nearest(first_modes[0], second_modes))]
    else:
        pairs = [(_nearest(second_modes[0], first_modes), second_modes[0])]
    note = _mode_note(first_modes, second_modes)
    return [_pair(first[list(a.members)], second[list(b.members)], note) for a, b in pairs]


def _nearest(mode: Mode, candidates: tuple[Mode, ...]) -> Mode:
    return min(candidates, key=lambda other: abs(np.log(other.median / mode.median)))


def _mode_note(first: tuple[Mode, ...], second: tuple[Mode, ...]) -> str:
    if len(first) == len(second) == 1:
        return ""
    shares = [" + ".join(f"{mode.share:.0%}" for mode in side) for side in (first, second)]
    return f"; modes {shares[0]} against {shares[1]}"


def _pair(first: np.ndarray, second: np.ndarray, note: str) -> Comparison:
    from scipy.stats import mannwhitneyu

    a, b = float(np.median(first)), float(np.median(second))
    interval_a, interval_b = median_interval(first), median_interval(second)
    if interval_a is None or interval_b is None:
        few = f"{len(first)} and {len(second)} launches; an interval needs {MIN_VALUES} in each"
        return Comparison(Verdict.UNKNOWN, a, b, few + note)
    (low_a, high_a), (low_b, high_b) = interval_a, interval_b
    test = mannwhitneyu(second, first, alternative="two-sided")
    delta = 2 * test.statistic / (len(first) * len(second)) - 1
    numbers = f"p = {test.pvalue:.2g}, delta = {delta:+.2f}{note}"
    disjoint = high_a < low_b or high_b < low_a
    if disjoint and test.pvalue < ALPHA and abs(delta) >= LARGE_EFFECT and abs(b / a - 1) > RESOLVED:
        return Comparison(Verdict.FASTER if b < a else Verdict.SLOWER, a, b, numbers)
    low, high = ratio_interval(first, second) or (0.0, np.inf)
    if low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        return Comparison(Verdict.SAME, a, b, numbers)
    wide = f"the ratio lies between {low:.3f} and {high:.3f}, too wide to tell; "
    return Comparison(Verdict.UNKNOWN, a, b, wide + numbers)
