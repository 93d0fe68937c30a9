"""How the experiments ended: counts, and tables of those without a value or with a wide interval.

Rows that differ only in size, placement, algorithm or in the numbers of their reason share one line, so that 4,096
pairs waived for one reason take one line.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from linkwright.base.rows import Rows, largest, unique
from linkwright.base.stats import grade
from linkwright.base.units import counted
from linkwright.store import schema
from linkwright.store.tally import tally

from .. import quantity
from ..model import Badge, Cell, Column, Section, Table, Tone
from ..runs import Run
from . import values

_MOST_OPEN = 8  # the most lines of a table that is not collapsed
_MOST_NAMES = 4  # the most algorithms that one line names
_KEY = ["machine", "executor", "experiment"]
# Status or grade -> what a table of it says, the most serious first.
_TABLES = {
    "failed": "An error occurred, or an answer was wrong. These numbers are not shown.",
    "disturbed": "Every sample was dropped, because something else ran on the machine.",
    "out-of-time": "The time budget ended before the first launch; --time-budget gives more.",
    grade.WIDE: "The 95 % interval is wider than ±10 %. Trust the interval, not the value.",
    "waived": "Left out on purpose, for the reason given.",
}
_TONES: dict[str, Tone] = {
    **dict.fromkeys(("ok", grade.TIGHT, grade.FAIR_GRADE), "good"),
    **dict.fromkeys((grade.WIDE, "out-of-time", "disturbed"), "warn"),
    "failed": "bad",
}


def badges(run: Run) -> list[Badge]:
    """The same counts as on the terminal, and how many values were disturbed."""
    rows = run.rows.only(("metric", "grade", "status"))
    found = [Badge(count, _words(word), _TONES.get(word, "quiet")) for word, count in tally(rows).items()]
    times = run.rows[run.rows["metric"] == "time"]
    flagged = sum("disturbed" in flags.split(",") for flags in times["flags"])
    return [*found, *([Badge(flagged, "with a disturbance", "warn")] if flagged else [])]


def _words(word: str) -> str:
    """A grade or status for readers, as on the terminal."""
    return word.replace("-", " ")


def section(run: Run) -> Section | None:
    """One table for each status without a value, and one for wide intervals."""
    rows = experiments(run)
    wide = rows[(rows["status"] == "ok") & (rows["grade"] == grade.WIDE)]
    parts = {name: wide if name == grade.WIDE else rows[rows["status"] == name] for name in _TABLES}
    tables = [_table(part, name, _TABLES[name]) for name, part in parts.items() if len(part)]
    intro = "" if tables else "Every experiment has a value, and no interval is wide."
    return Section("What is missing, and why", tables, intro) if len(rows) else None


@lru_cache(maxsize=1)
def experiments(run: Run) -> Rows:
    """One row per experiment: the first of its worst rows, which is its main metric."""
    rank = {name: place for place, name in enumerate(_TABLES)}
    ranks = [rank.get(status, len(rank)) for status in run.rows["status"]]
    worst = run.rows.assign(rank=ranks, place=np.arange(len(run.rows)))
    return worst.ordered("rank").distinct(*_KEY).ordered("place")


def _table(rows: Rows, name: str, help: str) -> Table:
    valued = name == grade.WIDE
    columns = [
        Column("Machine"),
        Column("What"),
        Column("Algorithm"),
        Column("Sizes", "B"),
        Column("Experiments", numeric=True),
    ]
    columns += [Column("Widest interval", "%", numeric=True)] if valued else [Column("Reason")]
    kinds = [""] * len(rows) if valued else [_kind(c, r) for c, r in zip(rows["code"], rows["reason"], strict=True)]
    grouped = rows.assign(kind=kinds).by("machine", "label", "kind", sort=True)
    body = [[*_line(key, part), _half_width(part) if valued else _reason(part)] for key, part in grouped]
    many = len(body) > _MOST_OPEN
    title = f"{_words(name).capitalize()}: {counted(len(rows))}" if many else _words(name).capitalize()
    return Table(title, columns, body, help, collapsed=many)


def _kind(code: str, reason: str) -> str:
    """What the rows of one line share: a code, or a reason in which only numbers differ."""
    return code if code in schema.CODES else re.sub(r"[0-9.]+", "#", reason)


def _line(key: tuple, part: Rows) -> list[Cell | str]:
    machine, label, _ = key
    names = sorted(unique(part["algorithm"]))
    algorithm = ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else ""
    )
    sizes = sorted(unique(part["size_bytes"]))
    shown = [quantity.size(size) for size in sizes]
    words = ", ".join(shown) if len(shown) <= 3 else f"{shown[0]} … {shown[-1]} ({len(shown)} sizes)"
    span = Cell(words, float(sizes[0])) if sizes else values.missing("no size")
    example = str(part["experiment"][0])
    return [machine, Cell(label, detail=example), algorithm, span, Cell(str(len(part)), len(part))]


def _half_width(part: Rows) -> Cell:
    width = float(largest(part["precision"]))
    return Cell(f"±{quantity.percent(width)}", width, tone="warn")


def _reason(part: Rows) -> Cell:
    reasons = unique(part["reason"])
    if not reasons[0]:
        return values.missing("no reason recorded")
    return Cell(reasons[0], detail="" if len(reasons) == 1 else f"and {len(reasons) - 1} similar reasons")
