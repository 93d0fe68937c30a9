"""Endpoint to endpoint: the latency matrix, bandwidth by size, and what remains under load.

Which chart a group of rows becomes follows from what varies in it, not from its name: nearly all
ordered pairs at few sizes are a matrix, several sizes a curve by size, several rank counts a curve
by load. So a new pattern needs no code here.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .. import quantity
from ..model import Axis, Curve, HeatMap, Item, Plot, Section
from ..runs import COLLECTIVES, Run, natural, ok
from . import values

_METRICS = ("latency", "bandwidth", "time")  # the last only where a pattern has neither of the first two
_NAMED_BY = ("algorithm", "placement", "issue", "path", "dtype")
_FULL = 0.6  # part of all ordered pairs from which a group of rows is a matrix
_MATRIX_SIZES = 4  # more sizes than this and curves say more than matrices

MATRIX_HELP = (
    "Row sends, column receives; the diagonal is an endpoint with itself. Darker is less. Hover or "
    "use the arrow keys for a cell, scroll to move, Ctrl + wheel or the buttons to zoom. Blocks are "
    "levels of the machine."
)
SIZE_HELP = (
    "Points are measured medians with their 95 % interval, lines are models, dashed lines are "
    "limits. Left of the bend the fixed cost of a message rules, right of it the width of the link."
)
LOAD_HELP = (
    "More pairs at once: a flat latency and a bandwidth that grows in step mean that pairs do not "
    "disturb each other."
)


def groups(run: Run) -> list[tuple[str, str, pd.DataFrame]]:
    """(pattern, metric, rows) of everything that is no collective and has a time or a rate."""
    rows = ok(run.rows[~run.rows["label"].isin(COLLECTIVES) & run.rows["metric"].isin(_METRICS)])
    told = set(rows[rows["metric"] != "time"]["label"])
    rows = rows[(rows["metric"] != "time") | ~rows["label"].isin(told)]
    return [(label, metric, part) for (label, metric), part in rows.groupby(["label", "metric"], sort=True)]


def is_matrix(rows: pd.DataFrame) -> bool:
    """Whether the rows of one machine hold (nearly) every ordered pair of their endpoints at a few sizes."""
    paired = rows[rows["source"].notna()]
    ends = set(paired["source"]) | set(paired["destination"])
    apart = paired[paired["source"] != paired["destination"]]
    seen = len(apart[["source", "destination"]].drop_duplicates())
    full = len(ends) * (len(ends) - 1)
    return full > 0 and seen >= _FULL * full and paired["size_bytes"].nunique() <= _MATRIX_SIZES


def matrices(run: Run) -> Section | None:
    """A heat map per machine, pattern, metric and size."""
    items: list[Item] = []
    for label, metric, rows in groups(run):
        for machine in run.machines:
            here = rows[rows["machine"] == machine]
            if len(here) and is_matrix(here):
                items += [
                    heat_map(machine, label, metric, part)
                    for _, part in here.groupby("size_bytes", dropna=False)
                ]
    if not items:
        return None
    return Section(
        "Who is near whom",
        items,
        intro="Every endpoint with every other one, one message at a time on an idle machine. " + MATRIX_HELP,
    )


def heat_map(machine: str, label: str, metric: str, rows: pd.DataFrame) -> HeatMap:
    """Rows with a source and a destination as a matrix, endpoints in natural order."""
    rows = rows[rows["source"].notna()]
    names = sorted(set(rows["source"]) | set(rows["destination"]), key=natural)
    place = {name: index for index, name in enumerate(names)}
    at = (rows["source"].map(place).to_numpy(), rows["destination"].map(place).to_numpy())

    def filled(column: str) -> np.ndarray | None:
        if not rows[column].notna().any():
            return None
        matrix = np.full((len(names), len(names)), np.nan, dtype=np.float32)
        matrix[at] = rows[column].to_numpy(dtype=np.float32)
        return matrix

    size = rows["size_bytes"].iloc[0]
    shown = f", {quantity.size(size)}" if size == size else ""
    return HeatMap(
        f"{machine}: {values.words(label)} {values.words(metric)}{shown}",
        unit=rows["unit"].iloc[0],
        rows=names,
        columns=names,
        values=filled("value"),
        low=filled("ci_low"),
        high=filled("ci_high"),
        missing="not measured: see the waived and failed rows",
    )


def by_size(run: Run) -> Section | None:
    """Curves over the message size."""
    return _curves(
        run,
        "size_bytes",
        "One pair, by message size",
        "What one message costs and how fast one pair can go.",
        Axis("message size", "B", "log2"),
        SIZE_HELP,
    )


def under_load(run: Run) -> Section | None:
    """Curves over the number of ranks that talk at once."""
    return _curves(
        run,
        "ranks",
        "Under load",
        "The same with several pairs at once.",
        Axis("ranks taking part", "1", "log2"),
        LOAD_HELP,
    )


def _curves(run: Run, x: str, title: str, intro: str, axis: Axis, how_to_read: str) -> Section | None:
    items: list[Item] = []
    for label, metric, rows in groups(run):
        drawn = [
            curve
            for machine in run.machines
            for curve in _machine_curves(run, rows[rows["machine"] == machine], machine, x)
        ]
        if drawn:
            unit = rows["unit"].iloc[0]
            name = values.words(metric)
            y = Axis(name, unit, "log10")
            items.append(Plot(f"{values.words(label)}: {name}", axis, y, drawn, how_to_read))
    return Section(title, items, intro) if items else None


def _machine_curves(run: Run, rows: pd.DataFrame, machine: str, x: str) -> list[Curve]:
    if rows.empty or is_matrix(rows):
        return []
    other = "ranks" if x == "size_bytes" else "size_bytes"
    loaded = rows["ranks"].nunique() > 1
    if loaded != (x == "ranks") or rows[x].nunique() < 2:
        return []
    keys = values.varying(rows, (*_NAMED_BY, other))
    many = len(run.machines) > 1
    curves = []
    for key, part in rows.groupby(keys, dropna=False, sort=True) if keys else [((), rows)]:
        words = [_word(name, value) for name, value in zip(keys, key, strict=False)]
        name = ", ".join([machine, *words] if many or not words else words)
        curves.append(values.curve(part, x, name))
        limit = values.limits(part, x, f"limit of {name}")
        if limit and not any(list(limit.y) == list(c.y) and list(limit.x) == list(c.x) for c in curves):
            curves.append(limit)
    return curves


def _word(key: str, value: object) -> str:
    return (
        quantity.size(value)
        if key == "size_bytes"
        else f"{value:.0f} ranks"
        if key == "ranks"
        else str(value)
    )
