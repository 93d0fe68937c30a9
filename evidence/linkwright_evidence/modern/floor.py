"""The floor under every error: by how much systems of one kind differ among themselves.

Tables of one machine kind, size and collective from several sites (or runs) should agree; a model has one value for
all. No model can be closer to them than the value in their middle, so that the floor of a size is

    median over tables of |median of all / published - 1|
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from linkwright_evidence import scoring
from linkwright_evidence.outcome import Cell

from .cells import parts

NOTE = (
    "Systems of one kind compared among themselves: the error that the middle of all their tables would have as a "
    "prediction, median and 90th percentile, beside that of the model on the same cells. In percent."
)


Pair = tuple[float, float]  # the errors of a cell: of the middle of all tables, and of the model


def rows(cells: Iterable[Cell]) -> list[dict]:
    """One row per group with tables of the same conditions, where both errors are shown."""
    groups: dict[str, list[Pair]] = {}
    tables: dict[str, set[object]] = {}
    for its in _same(cells):
        groups.setdefault(its[0].table, []).extend(_pairs(its))
        tables.setdefault(its[0].table, set()).update(cell.keys["table_id"] for cell in its)
    return [_row(group, pairs, len(tables[group])) for group, pairs in sorted(groups.items())]


def pooled(cells: Iterable[Cell]) -> scoring.Score | None:
    """What one value for all tables of a condition would leave, over all cells that several tables have."""
    return _score([middle for its in _same(cells) for middle, _ in _pairs(its)])


def _same(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells of one condition, where several tables have it."""
    same: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        if not cell.erratum and cell.unit == "us":
            keys = (cell.keys[name] for name in ("machine", "collective", "gpus", "nodes", "size_bytes"))
            same.setdefault((cell.table, *keys), []).append(cell)
    return [its for its in same.values() if len({cell.keys["table_id"] for cell in its}) > 1]


def _pairs(its: list[Cell]) -> list[Pair]:
    middle = statistics.median(float(cell.reference) for cell in its)  # type: ignore[arg-type]
    return [(abs(middle / float(cell.reference) - 1), cell.error or 0.0) for cell in its]  # type: ignore[arg-type]


def _row(group: str, pairs: list[Pair], tables: int) -> dict:
    floor, model = (_score(errors) for errors in zip(*pairs, strict=True))
    assert floor is not None
    assert model is not None
    return {
        **parts(group),
        "tables": tables,
        "cells": len(pairs),
        "floor_percent": round(100 * floor.median, 1),
        "model_percent": round(100 * model.median, 1),
        "floor_p90_percent": round(100 * floor.p90, 1),
        "model_p90_percent": round(100 * model.p90, 1),
    }


def _score(errors: Iterable[float]) -> scoring.Score | None:
    found = tuple(sorted(errors))
    return scoring.Score("floor", found) if found else None
