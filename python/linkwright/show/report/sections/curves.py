"""One pair by message size, and many pairs at once."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.base.rows import Rows, nunique

from .. import quantity
from ..model import Axis, Curve, Plot, Section
from ..runs import Run, is_rate
from . import rising, values
from .groups import Group, groups

_NAMED_BY = ("algorithm", "placement", "issue", "path", "dtype")

SIZE_INTRO = (
    "The fixed cost of a message dominates to the left of the bend, and the bandwidth of the link to the right of it."
)
LOAD_INTRO = (
    "An increasing number of ranks at once. Ranks do not disturb each other where the time stays flat, or where the "
    "bandwidth grows in proportion to the ranks."
)


def by_size(run: Run) -> Section | None:
    """Plots over the message size."""
    axis = Axis("message size", "B", "log2")
    plots = [_plot(run, group, "size_bytes", axis) for group in groups(run) if group.sized]
    return Section("By message size", plots, f"{SIZE_INTRO} {values.how_drawn(run)}") if plots else None


def under_load(run: Run) -> Section | None:
    """Plots over the number of ranks that communicate at once."""
    axis = Axis("ranks taking part", "1", "log2")
    plots = [_plot(run, group, "ranks", axis) for group in groups(run) if group.loaded]
    return Section("Under load", plots, f"{LOAD_INTRO} {values.how_drawn(run)}") if plots else None


def _plot(run: Run, group: Group, x: str, axis: Axis) -> Plot:
    rows = group.curves
    machines = [name for name in run.machines if (rows["machine"] == name).any()]
    curves = [curve for name in machines for curve in _series(run, rows[rows["machine"] == name], name, x)]
    said = [_best(run, rows[rows["machine"] == name], name) for name in machines] if x == "size_bytes" else []
    up = Axis(values.words(group.metric), rows["unit"][0], "log10")
    return Plot(group.title, axis, up, curves, summary=values.sentence("; ".join(filter(None, said))))


def _best(run: Run, rows: Rows, machine: str) -> str:
    """The best rate of a machine's sweep, or that it still rises; empty for a time or a single size."""
    if not is_rate(rows["unit"][0]) or nunique(rows["size_bytes"]) < 2:
        return ""
    return ": ".join([*([machine] if len(run.machines) > 1 else []), rising.words(rows)])


def _series(run: Run, rows: Rows, machine: str, x: str) -> Iterator[Curve]:
    """One curve, and its limit, per combination of what else varies on this machine."""
    keys = values.varying(rows, [*_NAMED_BY, "ranks" if x == "size_bytes" else "size_bytes"])
    limits = set()
    for key, part in rows.by(*keys, sort=True):
        name = values.series_name(run, machine, *(_word(*pair) for pair in zip(keys, key, strict=True)))
        curve, *limit = values.with_limit(part, x, name)
        yield curve
        yield from (line for line in limit if (*line.x, *line.y) not in limits)
        limits |= {(*line.x, *line.y) for line in limit}


def _word(key: str, value: object) -> str:
    if key == "size_bytes":
        return quantity.size(value)
    return f"{value:.0f} ranks" if key == "ranks" else str(value)
