"""How far to trust a measured value: its precision, and the grade that precision earns.

    precision    half the width of the 95 % interval over the value: 0.012 reads ±1.2 %
    tight        within the target
    fair         within 10 %
    wide         beyond
    single       too few launches for an interval

A disturbance (a busy machine, a clock that moved) is a flag of its own: a disturbed value can be tight and wrong.
"""

from __future__ import annotations

# The default target: half of the 10 % by which two machines or versions usually must differ to matter.
TARGET = 0.05
FAIR = 0.10

TIGHT, FAIR_GRADE, WIDE, SINGLE = GRADES = ("tight", "fair", "wide", "single")


def precision(value: float, low: float | None, high: float | None) -> float | None:
    """Half the width of the interval from `low` to `high` over `value`, a share; None without an interval."""
    if low is None or high is None or not value:
        return None
    return (high - low) / 2 / abs(value)


def grade(found: float | None, target: float = TARGET) -> str:
    """The grade of a precision; `target` is a share.

    >>> grade(0.03), grade(0.07), grade(0.3), grade(None)
    ('tight', 'fair', 'wide', 'single')
    """
    if found is None:
        return SINGLE
    return TIGHT if found <= target else FAIR_GRADE if found <= FAIR else WIDE
