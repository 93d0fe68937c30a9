"""The distance of predictions from published values: the error of a cell, and two charts of the errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from linkwright.show.report import quantity
from linkwright.show.report.model import Axis, BoxPlot, Curve, Plot
from linkwright.show.report.sections.spread import box
from linkwright_evidence.scoring import is_number, relative_error

# Of a cell; all others are keys.
NOT_KEYS = ("predicted", "low", "high", "reference", "unit", "split", "erratum", "role")
_ENOUGH = 8  # cells of one base unit that make a chart
_WORDS = {"s": "times", "B": "sizes", "B/s": "rates", "1": "counts and ratios", "%": "shares"}  # of a base unit


def error(cell: Mapping[str, Any]) -> float | None:
    """Signed relative error; 0 or 1 for text; None for a cell that is not scored: blind, given or an erratum."""
    unscored = cell.get("erratum") or cell.get("role", "predicted") != "predicted"
    return None if unscored else relative_error(cell.get("predicted"), cell.get("reference"))


def charts(by_table: Mapping[str, list]) -> list[Plot | BoxPlot]:
    """Predicted over published for each unit with enough cells, and the errors per table."""
    scored = {name: [c for c in cells if _scored(c)] for name, cells in by_table.items()}
    scored = {name: cells for name, cells in scored.items() if cells}
    counts = Counter(quantity.base(cell["unit"])[0] for cells in scored.values() for cell in cells)
    units = sorted(unit for unit, count in counts.items() if count >= _ENOUGH)
    return [*(_agreement(scored, unit) for unit in units), *([_errors(scored)] if scored else [])]


def _scored(cell: Mapping[str, Any]) -> bool:
    return error(cell) is not None and is_number(cell["reference"]) and is_number(cell["predicted"])


def _agreement(scored: Mapping[str, list], unit: str) -> Plot:
    """Predicted over published values of one base unit; the diagonal is the line of perfect agreement."""
    curves, seen = [], []
    for table, cells in scored.items():
        own = [
            (cell["reference"] * factor, cell["predicted"] * factor, key_of(cell))
            for cell in cells
            for base, factor in [quantity.base(cell["unit"])]
            if base == unit and cell["reference"] > 0 < cell["predicted"]
        ]
        if own:
            x, y, notes = zip(*sorted(own, key=lambda point: point[0]), strict=True)
            curves.append(Curve(table, x, y, notes=notes))
            seen += x
    ends = [min(seen), max(seen)] if seen else []
    diagonal = Curve("perfect agreement", ends, ends, kind="limit")
    help = "Each point is one cell: the published value across, the predicted value up. On the line they agree."
    scale: Literal["log2", "log10"] = "log2" if unit == "B" else "log10"
    axes = Axis("published", unit, scale), Axis("predicted", unit, scale)
    return Plot(f"Predicted and published {_WORDS.get(unit, unit)}", *axes, [*curves, diagonal], help, scatter=True)


def _errors(scored: Mapping[str, list]) -> BoxPlot:
    boxes = [box(table, np.array([100 * error(cell) for cell in cells])) for table, cells in scored.items()]
    help = "The box holds half of the cells; its line is the median, dots are outliers. Above zero is too high."
    return BoxPlot("Error by table", Axis("error", "%"), boxes, help, wide=len(boxes) > 3)


def key_of(cell: Mapping[str, Any]) -> str:
    """The key columns of a cell on one line, for hover."""
    return ", ".join(f"{name} {value}" for name, value in cell.items() if name not in (*NOT_KEYS, "table"))
