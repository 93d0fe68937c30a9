"""Two machines on one page: who is faster, where they cross, and how near each is to its limit.

Every number is modelled: exact for the machines as described.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwright.base.units import NS_PER_S, format_size
from linkwright.session.compare.machines import Pair, Row

from . import cells
from .model import Axis, Cell, Choice, Column, Curve, HeatMap, Plot, Report, Section, Table, Text


def against(pairs: Sequence[Pair], names: Sequence[str], told: Sequence[str]) -> Report:
    """Return the page of two machines, which are called `names`; `told` are the sentences that it begins with."""
    kinds = list(dict.fromkeys(pair.collective for pair in pairs))
    facts = [(name, _choices(i, pairs)) for i, name in enumerate(names)]
    plots = [_plot(kind, [pair for pair in pairs if pair.collective == kind], names) for kind in kinds]
    sections = [
        Section("In short", [Text(told)]),
        Section("Which is faster", [_heat(kinds, pairs, names)]),
        Section("Times", plots if len(plots) == 1 else [Choice("Collective", plots)]),
        Section("Numbers", [_table(pairs, names)]),
    ]
    subtitle = "Modelled, not measured: exact for the machines as described."
    return Report(f"{names[0]} against {names[1]}", subtitle, facts, sections=sections)


def _choices(side: int, pairs: Sequence[Pair]) -> str:
    rows = [(pair.first, pair.second)[side] for pair in pairs]
    kinds = dict.fromkeys(row["algorithm"] for row in rows)
    chosen = ", ".join(kinds) if len(kinds) <= 2 else "the fastest of all algorithms"
    return f"{max(row['ranks'] for row in rows):,} ranks; {chosen}"


def _heat(kinds: Sequence[str], pairs: Sequence[Pair], names: Sequence[str]) -> HeatMap:
    sizes = sorted({pair.size_bytes for pair in pairs})
    ratios = {(pair.collective, pair.size_bytes): pair.ratio for pair in pairs}
    values = np.array([[ratios.get((kind, size), np.nan) for size in sizes] for kind in kinds])
    return HeatMap(
        f"Time on {names[1]} over time on {names[0]}", "1", kinds, [format_size(size) for size in sizes], values,
        rows_title="collective", columns_title="size", missing="no time on both", wide=True,
        how_to_read=f"Above 1, {names[0]} is faster; below 1, {names[1]}. The colour in the middle is 1.",
        ends=(f"{names[1]} faster", f"{names[0]} faster"),
    )  # fmt: skip


def _plot(kind: str, pairs: Sequence[Pair], names: Sequence[str]) -> Plot:
    curves = []
    for side, name in enumerate(names):
        rows = [(pair.first, pair.second)[side] for pair in pairs]
        sizes = [row["size_bytes"] for row in rows]
        told = [row["algorithm"] for row in rows]
        curves.append(Curve(name, sizes, [row["value"] / NS_PER_S for row in rows], kind="model", notes=told))
        limits = [row["limit"] / NS_PER_S if row["limit"] else None for row in rows]
        if any(limits):
            curves.append(Curve(f"{name}: limit", sizes, limits, kind="limit", series=name))
    read = "Dashed: the time that no algorithm beats on that machine."
    return Plot(kind, Axis("size", "B", "log2"), Axis("time", "s", "log10"), curves, read, wide=True)


def _table(pairs: Sequence[Pair], names: Sequence[str]) -> Table:
    columns = [Column("Collective"), Column("Size", "B", numeric=True)]
    for name in names:
        columns += [Column(name, "s", numeric=True), Column("% of limit", "%", numeric=True)]
    body = [
        [pair.collective, Cell(format_size(pair.size_bytes), pair.size_bytes), *_side(pair.first), *_side(pair.second),
         _ratio(pair, names)]
        for pair in pairs
    ]  # fmt: skip
    return Table("Every collective and size", [*columns, Column("Faster", numeric=True)], body)


def _side(row: Row) -> list[Cell]:
    time = cells.time(row["value"], row["algorithm"])
    if not row["limit"]:
        return [time, Cell("—", -1, "no limit known", "quiet")]
    return [time, cells.share(row["limit"] / row["value"])]


def _ratio(pair: Pair, names: Sequence[str]) -> Cell:
    if pair.faster is None:
        return Cell("equal", 1.0, f"{pair.ratio:.2f}", "quiet")
    return Cell(f"{max(pair.ratio, 1 / pair.ratio):.2f} ×", pair.ratio, names[pair.faster])
