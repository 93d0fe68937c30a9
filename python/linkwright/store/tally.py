"""How many experiments ended how: the only place that counts them, for the terminal and for pages.

246 experiments: 180 tight, 40 fair, 20 wide, 6 single; 3 waived, 12 out of time
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from linkwright.base.stats.grade import GRADES
from linkwright.base.units import counted

from .schema import STATUS

# In the order in which they are shown; `ok` counts modelled values, which have no grade.
VALUED = ("ok", *GRADES)
VALUELESS = tuple(status for status in STATUS if status != "ok")


def tally(rows: Iterable[Mapping[str, object]]) -> dict[str, int]:
    """Experiments by the grade of their time or, without one, by their status; those that do not occur are left out."""
    counts = Counter(str(row["grade"] or row["status"]) for row in rows if row["metric"] == "time")
    return {word: counts[word] for word in (*VALUED, *VALUELESS) if counts[word]}


def sentence(counts: Mapping[str, int]) -> str:
    """The counts as a line of text: what has a value first, then what has none."""
    sides = [_words(counts, side) for side in (VALUED, VALUELESS)]
    return f"{counted(sum(counts.values()))}: " + ("; ".join(filter(None, sides)) or "none")


def _words(counts: Mapping[str, int], words: Iterable[str]) -> str:
    return ", ".join(f"{counts[word]} {word.replace('-', ' ')}" for word in words if counts.get(word))
