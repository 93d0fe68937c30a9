"""Published values: `references/<study>/*.csv`, and how far a prediction is from them.

A reference file has key columns that say what was published under which conditions, one value column
and `split`, which is `open` or `holdout`. A holdout cell is predicted like any other, but its value is
not shipped: it stands there as an empty field and no code may guess at it.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from linkwright.errors import unknown

SPLITS = ("open", "holdout")


@dataclass(frozen=True)
class Cell:
    """One published value and, once predicted, what the model says."""

    table: str
    keys: dict[str, str]
    reference: float | None
    unit: str
    split: str
    predicted: float | None = None

    @property
    def relative_error(self) -> float | None:
        """|predicted / reference - 1|; None where either is unknown or the reference is 0."""
        if self.predicted is None or not self.reference:
            return None
        return abs(self.predicted / self.reference - 1)


@dataclass(frozen=True)
class Errors:
    """How good a table of predictions is."""

    cells: int
    compared: int
    median: float | None
    p90: float | None
    largest: float | None
    within_10_percent: float | None


def studies() -> list[str]:
    """The names of the folders in `references/`."""
    return sorted(path.name for path in _root().iterdir() if path.is_dir() and any(path.glob("*.csv")))


def table_path(study: str, table: str) -> Path:
    """The CSV file of one table."""
    if study not in studies():
        raise unknown("study", study, studies())
    path = _root() / study / f"{table}.csv"
    if not path.is_file():
        raise unknown("table", table, [p.stem for p in (_root() / study).glob("*.csv")], where=study)
    return path


def read(study: str, table: str, *, value: str, unit: str | None = None) -> list[Cell]:
    """The cells of one table; `value` names the value column, `unit` its unit or the column `unit`."""
    cells = []
    with table_path(study, table).open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            text = line.pop(value).strip()
            split = line.pop("split")
            if split not in SPLITS:
                raise ValueError(f"{study}/{table}.csv: split `{split}` is none of {SPLITS}")
            number = _number(text) if split == "open" else None
            cells.append(Cell(table, line, number, unit or line["unit"], split))
    return cells


def errors(cells: Sequence[Cell]) -> Errors:
    """The error statistics of all cells that have both values."""
    known = np.array([e for e in (cell.relative_error for cell in cells) if e is not None])
    if len(known) == 0:
        return Errors(len(cells), 0, None, None, None, None)
    return Errors(
        cells=len(cells),
        compared=len(known),
        median=float(np.median(known)),
        p90=float(np.percentile(known, 90)),
        largest=float(known.max()),
        within_10_percent=float((known <= 0.10).mean()),
    )


def _number(text: str) -> float | None:
    """The value where it is a number; a table of facts also holds expressions."""
    try:
        return float(text)
    except ValueError:
        return None


def _root() -> Path:
    with resources.as_file(resources.files("linkwright") / "references") as path:
        return path
