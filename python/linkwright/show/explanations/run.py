"""The pages of a run and of one of its rows: what was the fastest, how near to the limit, and a picture of it."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.advise.explain.run import Fastest, OneRow, value
from linkwright.base.units import NS_PER_US
from linkwright.show.picture.scene import Scene
from linkwright.show.report import quantity
from linkwright.show.report.model import Cell, Column, Item, Moving, Report, Section, Table, Text

from .shared import share, time

_NOTHING = Cell("—", -1, tone="quiet")


def run(name: str, found: Sequence[Fastest], scenes: Sequence[Scene]) -> Report:
    """The page of all collectives of a run."""
    columns = [
        Column("Machine"),
        Column("Collective"),
        Column("Ranks", numeric=True),
        Column("Size", "B", numeric=True),
        Column("Fastest"),
        Column("Time", "s", numeric=True),
        Column("Of the limit", "%", numeric=True, help="or of the best seen"),
        Column("Next"),
    ]
    body = [
        [
            one.machine, Cell(one.collective, tone="strong"), Cell(f"{one.ranks:,}", one.ranks),
            Cell(quantity.size(one.size_bytes), one.size_bytes), one.algorithm, time(one.time_ns / NS_PER_US),
            share(one.share) if one.share else _NOTHING,
            f"{one.others[0][0]}, {one.others[0][1]:.2f} × as long" if one.others else "",
        ]
        for one in found
    ]  # fmt: skip
    table = Table("The largest size of each collective", columns, body, empty="The run has no time of a collective.")
    return Report(f"Run {name}", sections=[Section("The fastest", [table]), *_motion(scenes)])


def row(name: str, found: OneRow, scenes: Sequence[Scene]) -> Report:
    """The page of one experiment of a run."""
    body = [[Cell(str(one["metric"]), tone="strong"), value(one), str(one["reason"] or "")] for one in found.rows]
    table = Table("Its values", [Column("Metric"), Column("Value"), Column("Why it is missing")], body)
    items: list[Item] = [Text([_conclusion(found)]), table]
    sections = [Section("In short", items), *_motion(scenes)]
    return Report(f"{found.experiment} on {found.machine}", f"Of run {name}.", sections=sections)


def _conclusion(found: OneRow) -> str:
    if found.faster is None:
        return "It has no time."
    reached = f"It reaches {found.share:.0%} of the {found.of}." if found.share else "The limit is unknown."
    faster = ", ".join(f"{name} ({1 - part:.0%} less)" for name, part in found.faster)
    return f"{reached} Faster in this run: {faster or 'nothing'}."


def _motion(scenes: Sequence[Scene]) -> list[Section]:
    return [Section("In motion", [Moving(scenes)])] if scenes else []
