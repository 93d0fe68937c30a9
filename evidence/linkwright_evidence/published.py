"""Published values: `references/<study>/*.csv`, read after the predictions are made.

A reference file has key columns, which state the quantity and its conditions, a value column (usually `value` with
`unit`) and `split`, which is `open` or `holdout`. A holdout cell is predicted like any other, but its value is
not shipped: the field is empty.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from importlib import resources

from linkwright_evidence.outcome import Cell


def reference_rows(study: str, file: str) -> list[dict[str, str]]:
    """The rows of `references/<study>/<file>`, unchanged."""
    path = resources.files("linkwright_evidence") / "references" / study / file
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def number(text: str) -> object:
    """A cell's text as a number if it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def reference_cell(
    row: Mapping[str, str],
    table: str,
    keys: Mapping[str, object],
    predicted: object,
    *,
    value: Callable[[str], object] = number,
    erratum: str | None = None,
) -> Cell:
    """A row with the columns `value`, `unit` and `split` as a cell of `table`, with its prediction."""
    reference = value(row["value"]) if row["value"] else None
    return Cell(table, dict(keys), predicted, reference, row["unit"], row["split"], erratum)


def facts(
    study: str, rules: Mapping[str, Callable[[], object]], keys: Iterable[str], errata: Mapping[str, str]
) -> list[Cell]:
    """Every number or word stated in `facts.csv`; `rules` gives the predictions by the fact's id."""
    cells = []
    for row in reference_rows(study, "facts.csv"):
        known = {"table": "facts"} | {key: row[key] for key in ("id", *keys)}
        predicted = rules[row["id"]]() if row["id"] in rules else None
        cells.append(reference_cell(row, "facts", known, predicted, erratum=errata.get(row["id"])))
    return cells
