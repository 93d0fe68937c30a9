"""Rows that failed, did not converge, or were waived, each with its reason.

Rows that differ only in size, placement, algorithm or in the numbers of their reason share one line, so that 4,096
pairs waived for one reason take one line.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pandas as pd

from linkwright.store import schema

from .. import quantity
from ..model import Badge, Cell, Column, Section, Table
from ..runs import Run
from . import values

_MOST_OPEN = 8  # the most lines of a table that is not collapsed
_MOST_NAMES = 4  # the most algorithms that one line names
_KEY = ["machine", "executor", "experiment"]
_STATUSES = (
    (
        "failed",
        "bad",
        "An error occurred, or a value exceeded a physical bound. These numbers are not shown.",
    ),
    (
        "unconverged",
        "warn",
        "The time budget ended before the interval was narrow enough. Trust the interval, not the value.",
    ),
    ("waived", "quiet", "Deliberately not run, for the reason given."),
)


def badges(run: Run) -> list[Badge]:
    """The number of experiments per status; an experiment counts once, by the worst of its rows."""
    counts = experiments(run)["status"].value_counts()
    ok = [Badge(int(counts.get("ok", 0)), "ok", "good")]
    found = ok + [
        Badge(int(counts.get(name, 0)), name, tone if counts.get(name, 0) else "quiet") for name, tone, _ in _STATUSES
    ]
    disturbed = int((experiments(run)["code"] == "disturbed").sum())
    return [*found, Badge(disturbed, "disturbed in every launch", "warn")] if disturbed else found


def section(run: Run) -> Section | None:
    """One table per status that is not ok."""
    rows = experiments(run)
    tables = [_table(rows[rows["status"] == name], name, help) for name, _, help in _STATUSES]
    return Section("What is missing, and why", tables) if len(rows) else None


@lru_cache(maxsize=1)
def experiments(run: Run) -> pd.DataFrame:
    """One row per experiment: the first of its worst rows, which is its main metric."""
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
    kinds = [_kind(code, reason) for code, reason in zip(rows["code"], rows["reason"], strict=True)]
    grouped = rows.assign(kind=kinds).groupby(["machine", "label", "kind"], sort=True, dropna=False)
    body = [[*_line(key, part), *([_half_width(part)] if valued else []), _reason(part)] for key, part in grouped]
    many = len(body) > _MOST_OPEN
    title = f"{status.capitalize()}: {len(rows):,} experiments" if many else status.capitalize()
    return Table(title, columns, body, help, collapsed=many, empty=f"No experiment is {status}.")


def _kind(code: str, reason: str) -> str:
    """What the rows of one line share: a code, or a reason in which only numbers differ."""
    return code if code in schema.CODES else re.sub(r"[0-9.]+", "#", reason)


def _line(key: tuple, part: pd.DataFrame) -> list[Cell | str]:
    machine, label, _ = key
    names = sorted(part["algorithm"].unique())
    algorithm = ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else ""
    )
    sizes = sorted(part["size_bytes"].dropna().unique())
    shown = [quantity.size(size) for size in sizes]
    words = ", ".join(shown) if len(shown) <= 3 else f"{shown[0]} … {shown[-1]} ({len(shown)} sizes)"
    span = Cell(words, float(sizes[0])) if sizes else values.missing("no size")
    example = str(part["experiment"].iloc[0])
    return [machine, Cell(label, detail=example), algorithm, span, Cell(str(len(part)), len(part))]


def _half_width(part: pd.DataFrame) -> Cell:
    width = ((part["ci_high"] - part["ci_low"]) / 2 / part["value"]).max()
    return Cell(f"± {quantity.percent(width)}", float(width)) if width == width else values.missing("no interval")


def _reason(part: pd.DataFrame) -> Cell:
    reasons = part["reason"].drop_duplicates()
    if not reasons.iloc[0]:
        return values.missing("no reason recorded")
    width = (part["ci_high"] - part["ci_low"]) / part["value"]
    worst = part.loc[width.idxmax(), "reason"] if width.notna().any() else reasons.iloc[0]
    return Cell(worst, detail="" if len(reasons) == 1 else f"and {len(reasons) - 1} similar reasons")
