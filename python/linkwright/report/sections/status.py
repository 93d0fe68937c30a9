"""What is not a result: rows that failed, did not converge, or were waived, each with its reason.

Rows that differ only in size or placement share one line, so that 4,096 pairs waived for one reason
are read once.
"""

from __future__ import annotations

from functools import lru_cache

import pandas as pd

from .. import quantity
from ..model import Badge, Cell, Column, Section, Table
from ..runs import Run
from . import values

_KEY = ["machine", "executor", "experiment"]
_STATUSES = (
    (
        "failed",
        "bad",
        "Something went wrong or a value beat a physical bound; none of these numbers is shown.",
    ),
    (
        "unconverged",
        "warn",
        "The time budget ended before the interval was narrow enough: believe the interval.",
    ),
    ("waived", "quiet", "Not run, on purpose, for the reason given."),
)


def badges(run: Run) -> list[Badge]:
    """How many experiments ended how; an experiment counts once, by the worst of its rows."""
    counts = experiments(run)["status"].value_counts()
    ok = [Badge(int(counts.get("ok", 0)), "ok", "good")]
    return ok + [
        Badge(int(counts.get(name, 0)), name, tone if counts.get(name, 0) else "quiet") for name, tone, _ in _STATUSES
    ]


def section(run: Run) -> Section | None:
    """One table per status that is not ok."""
    rows = experiments(run)
    tables = [_table(rows[rows["status"] == name], name, help) for name, _, help in _STATUSES]
    return Section("What is missing, and why", tables) if len(rows) else None


@lru_cache(maxsize=1)
def experiments(run: Run) -> pd.DataFrame:
    """One row per experiment: its worst one, and of these the first, which is its main metric."""
    rank = {name: place for place, (name, _, _) in enumerate(_STATUSES)}
    worst = run.rows.assign(rank=run.rows["status"].map(rank).fillna(len(rank)))
    return worst.sort_values("rank", kind="stable").drop_duplicates(_KEY).sort_index()


def _table(rows: pd.DataFrame, status: str, help: str) -> Table:
    valued = status == "unconverged"
    columns = [
        Column("Machine"),
        Column("What"),
        Column("Algorithm"),
        Column("Sizes", "B"),
        Column("Experiments", numeric=True),
    ]
    columns += [Column("Widest interval", "%", numeric=True)] if valued else []
    columns += [Column("Reason")]
    grouped = rows.groupby(["machine", "label", "algorithm", "reason"], sort=True, dropna=False)
    body = [[*_line(key, part), *([_half_width(part)] if valued else []), _reason(key[-1])] for key, part in grouped]
    return Table(status.capitalize(), columns, body, help, empty=f"No experiment is {status}.")


def _line(key: tuple, part: pd.DataFrame) -> list[Cell | str]:
    machine, label, algorithm, _ = key
    sizes = sorted(part["size_bytes"].dropna().unique())
    shown = [quantity.size(size) for size in sizes]
    words = ", ".join(shown) if len(shown) <= 3 else f"{shown[0]} … {shown[-1]} ({len(shown)} sizes)"
    span = Cell(words, float(sizes[0])) if sizes else values.missing("no size")
    example = str(part["experiment"].iloc[0])
    return [machine, Cell(label, detail=example), algorithm, span, Cell(str(len(part)), len(part))]


def _half_width(part: pd.DataFrame) -> Cell:
    width = ((part["ci_high"] - part["ci_low"]) / 2 / part["value"]).max()
    return Cell(f"± {quantity.percent(width)}", float(width)) if width == width else values.missing("no interval")


def _reason(reason: str) -> Cell:
    return Cell(reason) if reason else values.missing("no reason recorded")
