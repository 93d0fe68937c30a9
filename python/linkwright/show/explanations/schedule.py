"""The page of a schedule: its time and limit, a picture next to the fastest known one, what binds, what is faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwright.base import units
from linkwright.base.units import US_PER_S
from linkwright.show.picture.scene import Scene
from linkwright.show.report.model import Cell, Column, Item, Moving, Report, Section, Table, Text
from linkwright.show.report.spent import Spent, compared

from .shared import duration, effects, share, time

if TYPE_CHECKING:
    from linkwright.advise.explain.schedule import Found


def schedule(found: Found, scenes: Sequence[Scene]) -> Report:
    """The page of a schedule; the first scene shows it."""
    asked = found.question
    size = units.format_size(found.size)
    return Report(
        f"{found.name} of {size} on {found.machine.name}",
        "Modelled, not measured: exact for the machine as described.",
        [
            ("Machine", found.machine.name),
            ("Ranks", f"{asked.ranks:,}"),
            ("Size", size),
            *([("Chosen by the library", asked.chosen)] if asked.chosen else []),
        ],
        sections=[
            Section("In short", [_conclusion(found), *([Moving(scenes)] if scenes else [])]),
            Section("Where the time goes", [_spent(found), _busiest(found)]),
            *effects(found.binds, "What binds it"),
            Section("What would be faster", [*_searched(found), _better(found)]),
        ],
    )


def _conclusion(found: Found) -> Text:
    told = [f"It takes {duration(found.time_us)}."]
    if found.limit_us:
        of = found.limit_us / found.time_us
        told.append(f"No algorithm beats {duration(found.limit_us)} ({found.limit}): it reaches {of:.0%} of the limit.")
    if found.spent:
        part, most = found.spent[0]
        told.append(f"{most:.0%} of the critical path is {part}.")
    if found.better:
        name, time_us = found.better[0]
        told.append(f"{name} takes {duration(time_us)}, {1 - time_us / found.time_us:.0%} less.")
    return Text([" ".join(told)])


def _spent(found: Found) -> Table:
    body = [[Cell(part, tone="strong"), share(its)] for part, its in found.spent]
    columns = [Column("Cause"), Column("Share", "%", numeric=True)]
    return Table("The critical path", columns, body, "The chain of operations that decides when the last rank ends.")


def _busiest(found: Found) -> Table:
    body = [[Cell(link, tone="strong"), share(its)] for link, its in found.busiest]
    return Table("The busiest links", [Column("Link"), Column("Busy", "%", numeric=True)], body)


def _searched(found: Found) -> list[Item]:
    """Result of a search: where its time goes, compared with this schedule, and how to enable it."""
    its = found.faster
    if its is None:
        return []
    kind = "A search found a new schedule" if its.new else "The search found nothing faster than a known algorithm"
    told = [f"{kind}: {duration(its.time_us)}, {1 - its.time_us / found.time_us:.0%} less. {its.recipe}."]
    told += [f"Write it: {its.write}", f"Enable it {its.switch_on}"]
    before = Spent("This schedule", found.time_us / US_PER_S, dict(found.spent))
    return [Text(told), compared("Why it is faster", before, Spent("The one found", its.time_us / US_PER_S, its.spent))]


def _better(found: Found) -> Table:
    body = [
        [Cell(name, tone="strong"), time(time_us), share(1 - time_us / found.time_us)] for name, time_us in found.better
    ]
    columns = [Column("Algorithm"), Column("Time", "s", numeric=True), Column("Saves", "%", numeric=True)]
    empty = "No known algorithm is faster here; `linkwright synthesize` looks for new ones."
    return Table("Known algorithms, simulated", columns, body, empty=empty)
