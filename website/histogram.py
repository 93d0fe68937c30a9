"""How far predictions are off, as bars: a small drawing that takes its colours from the page."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

# Errors between these bounds share a bar; the first and the last one are open.
BOUNDS = (-0.5, -0.25, -0.10, -0.05, 0.05, 0.10, 0.25, 0.5)
_LABELS = ("< −50 %", "−50…−25", "−25…−10", "−10…−5", "±5 %", "5…10", "10…25", "25…50", "> 50 %")
_WIDE, _HIGH, _BAR, _FOOT = 640, 190, 62, 34


def counts(errors: Sequence[float]) -> list[int]:
    """How many errors each bar stands for."""
    found = Counter(bisect_right(BOUNDS, error) for error in errors)
    return [found[place] for place in range(len(BOUNDS) + 1)]


def histogram(errors: Sequence[float]) -> str:
    """The drawing: the share of scored cells by predicted / published - 1."""
    bars, total = counts(errors), len(errors)
    most = max(bars)
    drawn = "".join(_bar(place, count, total, most) for place, count in enumerate(bars))
    within = 100 * sum(abs(error) <= 0.10 for error in errors) / total
    told = f"Error of {total:,} predictions: {within:.0f} % are within 10 % of the published value"
    return (
        f'<figure class="errors"><svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{told}">{drawn}</svg>'
        f"<figcaption>{told}. Left: too low; right: too high.</figcaption></figure>"
    )


def _bar(place: int, count: int, total: int, most: int) -> str:
    room = _HIGH - _FOOT - 20
    high = room * count / most
    x, foot = 8 + place * (_BAR + 8), _HIGH - _FOOT
    near = " near" if 2 < place < len(BOUNDS) - 2 else ""
    share = f'<text x="{x + _BAR / 2}" y="{foot - high - 5:.1f}">{count / total:.0%}</text>' if count else ""
    return (
        f'<rect class="bar{near}" x="{x}" y="{foot - high:.1f}" width="{_BAR}" height="{high:.1f}"/>{share}'
        f'<text class="axis" x="{x + _BAR / 2}" y="{foot + 16}">{_LABELS[place]}</text>'
    )
