"""The six tables as heat maps: modelled, published, and their difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwright.show.report.model import HeatMap, Section
from linkwright_evidence.outcome import Cell
from linkwright_evidence.report import plain

from .grid import BYTES_PER_VALUE, VALUES

_READ = "Down the output, across the input, in bytes."


def sections(cells: Sequence[Cell]) -> list[dict]:
    """One section with a part per table, in the plain form that a run folder keeps."""
    parts = []
    for table in dict.fromkeys(cell.table for cell in cells):
        own = [cell for cell in cells if cell.table == table]
        parts.append(Section(table.capitalize(), _maps(own)))
    intro = "Round trips on the model beside the published ones. Cells that are held out are predicted all the same."
    return [plain.dump(Section("The tables", parts=parts, intro=intro))]


def _maps(cells: Sequence[Cell]) -> list[HeatMap]:
    predicted = _matrix(cells, lambda cell: cell.predicted * 1e-6)
    page = _matrix(cells, lambda cell: None if cell.reference is None else cell.reference * 1e-6)
    error = 100 * (predicted / page - 1)
    low, high = (_matrix(cells, lambda cell, end=end: cell.interval[end] * 1e-6) for end in (0, 1))
    held = "held out, not published here"
    sides = [str(values * BYTES_PER_VALUE) for values in VALUES]
    common = {"rows": sides, "columns": sides, "rows_title": "output", "columns_title": "input", "how_to_read": _READ}
    return [
        HeatMap("Modelled", "s", values=predicted, low=low, high=high, scale="log10", **common),
        HeatMap("Published", "s", values=page, scale="log10", missing=held, **common),
        HeatMap("Modelled less published", "%", values=error, missing=held, **common),
    ]


def _matrix(cells: Sequence[Cell], value: Callable[[Cell], float | None]) -> np.ndarray:
    matrix = np.full((len(VALUES), len(VALUES)), np.nan)
    for cell in cells:
        found = value(cell)
        if found is not None:
            matrix[VALUES.index(cell.keys["out_values"]), VALUES.index(cell.keys["in_values"])] = found
    return matrix
