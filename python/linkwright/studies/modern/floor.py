"""The floor under every error: by how much systems of one kind differ among themselves.

Tables of one machine kind, size and collective from several sites (or runs) should agree; a model has one value for
all. No model can be closer to them than the value in their middle, so that the floor of a size is

    median over tables of |published / median of all - 1|
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from linkwright.studies.outcome import Cell

from .cells import parts

NOTE = (
    "Systems of one kind compared among themselves: the median error that the best single value for all their tables "
    "would have, beside that of the model on the same cells. Both in percent."
)


def rows(cells: Iterable[Cell]) -> list[dict]:
    """One row per group with tables of the same conditions, where both errors are shown."""
    same: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        if not cell.erratum and cell.unit == "us":
            keys = (cell.keys[name] for name in ("machine", "collective", "gpus", "nodes", "size_bytes"))
            same.setdefault((cell.table, *keys), []).append(cell)
    groups: dict[str, list[tuple[float, float]]] = {}
    tables: dict[str, set[object]] = {}
    for (group, *_), its in same.items():
        if len({cell.keys["table_id"] for cell in its}) > 1:
            middle = statistics.median(float(cell.reference) for cell in its)  # type: ignore[arg-type]
            pairs = [(abs(cell.reference / middle - 1), cell.error or 0.0) for cell in its]  # type: ignore[operator]
            groups.setdefault(str(group), []).extend(pairs)
            tables.setdefault(str(group), set()).update(cell.keys["table_id"] for cell in its)
    return [_row(group, pairs, len(tables[group])) for group, pairs in sorted(groups.items())]


def _row(group: str, pairs: list[tuple[float, float]], tables: int) -> dict:
    floor, model = (statistics.median(values) for values in zip(*pairs, strict=True))
    return {
        **parts(group),
        "tables": tables,
        "cells": len(pairs),
        "floor_percent": round(100 * floor, 1),
        "model_percent": round(100 * model, 1),
    }
