"""Endpoint to endpoint: one heat map per machine, pattern, metric and size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .. import quantity
from ..model import HeatMap, Section
from ..runs import Run, natural
from . import near, values
from .groups import Group, groups

INTRO = (
    "All pairs of endpoints, one message at a time on an idle machine. The row sends, the column receives, and the "
    "diagonal is an endpoint with itself; darker is less. Blocks of one colour are levels of the machine. A latency is "
    "half a round trip. On one-way rings a round trip is a whole number of turns, so only that number is visible. "
    "Hover or use the arrow keys to read a cell, scroll to move, and use Ctrl + wheel or the buttons to zoom."
)


def section(run: Run) -> Section | None:
    """All matrices of the run, then their groups."""
    matrices = [
        (machine, group, rows)
        for group in groups(run)
        for machine, paired in group.matrices.items()
        for _, rows in paired.groupby("size_bytes", dropna=False)
    ]
    maps = [heat_map(machine, group, rows) for machine, group, rows in matrices]
    by_machine: dict[str, list] = {}
    for machine, group, rows in matrices:
        by_machine.setdefault(machine, []).append((_words(group, rows), rows))
    tables = [near.table(run, machine, found) for machine, found in by_machine.items()]
    return Section("Endpoint to endpoint", [*maps, *filter(None, tables)], INTRO) if maps else None


def heat_map(machine: str, group: Group, rows: pd.DataFrame) -> HeatMap:
    """Rows with a source and a destination as a matrix, with endpoints in natural order."""
    names = sorted(set(rows["source"]) | set(rows["destination"]), key=natural)
    place = {name: index for index, name in enumerate(names)}
    at = (rows["source"].map(place).to_numpy(), rows["destination"].map(place).to_numpy())
    grids = values.matrices(rows, at, (len(names), len(names)))
    apart = ~np.eye(len(names), dtype=bool)
    only_self = bool(np.isfinite(grids["values"][apart]).all())
    return HeatMap(
        f"{machine}: {_words(group, rows)}",
        unit=rows["unit"].iloc[0],
        rows=names,
        columns=names,
        **grids,
        missing="an endpoint with itself" if only_self else "not measured, or listed under 'What is missing, and why'",
    )


def _words(group: Group, rows: pd.DataFrame) -> str:
    words = [f"{values.words(group.pattern)} {values.words(group.metric)}", *filter(None, [group.variant])]
    size = rows["size_bytes"].iloc[0]
    words += [quantity.size(size)] if size == size else []
    return ", ".join(words)
