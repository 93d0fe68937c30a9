"""How long would my recorded step take there? The page of a forecast of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwright.base.units import PS_PER_NS

from . import cells
from .cells import count, share
from .model import Cell, Column, Report, Section, Table, Text

if TYPE_CHECKING:
    from linkwright.advise.predict.trace.outcome import Outcome

# Rows of a table on the page; the rest is told as a number.
MOST_ROWS = 50
HEADINGS = {
    "computation": "Computation",
    "memory": "Memory",
    "communication": "Exposed messages",
    "waiting": "Waiting for others",
    "host": "Host",
}


def page(outcomes: Sequence[Outcome]) -> Report:
    """The page of a forecast on one machine or several."""
    from linkwright.advise.predict.trace.outcome import NOT_MODELLED

    first = outcomes[0]
    sections = [Section(f"On {one.machine}", [_path(one), _messages(one)]) for one in outcomes]
    told = [
        f"{line[:1].upper()}{line[1:]}." for line in (*first.notes, *(f"not modelled: {one}" for one in NOT_MODELLED))
    ]
    return Report(
        f"{first.app}: forecast of a recorded step",
        "Modelled, not measured: messages are simulated on the described machines, computation takes recorded times.",
        [
            ("Machines", ", ".join(one.machine for one in outcomes)),
            ("Ranks", f"{len(first.ranks):,}"),
            ("Nodes", f"{first.nodes:,}"),
        ],
        sections=[
            Section("How long the step takes", [_steps(outcomes)]),
            *sections,
            Section("Assumptions", [Text(told)]),
        ],
    )


def _steps(outcomes: Sequence[Outcome]) -> Table:
    causes = list(dict.fromkeys(cause for one in outcomes for cause in one.causes()))
    columns = [Column("Machine"), Column("Step", "s", numeric=True)]
    columns += [Column(HEADINGS[cause], "%", numeric=True) for cause in causes]
    rows = [[one.machine, _time(one.step_ps), *(share(one.share(cause)) for cause in causes)] for one in outcomes]
    return Table("Step and its causes", columns, rows, "Causes are averaged over all ranks, and add up to the step.")


def _path(found: Outcome) -> Table:
    columns = [Column("What"), Column("Times", numeric=True), Column("Together", "s", numeric=True)]
    columns += [Column("Share", "%", numeric=True)]
    rows = [
        [f"{one.what}, {one.detail}", count(one.count), _time(one.time_ps), share(one.time_ps / found.step_ps)]
        for one in found.path[:MOST_ROWS]
    ]
    return Table("Critical path", columns, rows, _rest(len(found.path)))


def _messages(found: Outcome) -> Table:
    columns = [Column("Kind"), Column("Size", "B", numeric=True), Column("Ranks", numeric=True)]
    columns += [Column("Times", numeric=True), Column("Once", "s", numeric=True), Column("Together", "s", numeric=True)]
    columns += [Column("Share", "%", numeric=True, help="of the step, averaged over all ranks, hidden or not")]
    columns += [Column("By")]
    rows = [
        [
            row.kind, cells.size(row.size_bytes), count(row.ranks), count(row.count),
            _time(row.price.time_ps), _time(row.total_ps), share(row.share), row.price.algorithm or "—",
        ]
        for row in found.rows[:MOST_ROWS]
    ]  # fmt: skip
    return Table("Messages", columns, rows, _rest(len(found.rows)))


def _rest(number: int) -> str:
    return f"{number - MOST_ROWS:,} more rows are in the JSON of `--json`." if number > MOST_ROWS else ""


def _time(time_ps: int) -> Cell:
    return cells.time(time_ps / PS_PER_NS)
