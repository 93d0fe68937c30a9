"""One simulation as a page: the figures, the limit, what binds, a picture over time, the critical path, every link.

Every number is modelled and exact for the machine as described.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from linkwright import _native
from linkwright.ask import answer as ask
from linkwright.ask.question import Collective, Scheduled
from linkwright.base import units
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import NS_PER_S, NS_PER_US
from linkwright.session.insight import Insight
from linkwright.session.timeline import SPENT
from linkwright.show import shown
from linkwright.show.picture import scene
from linkwright.store.schema import METRICS

from . import cells, quantity
from .model import Cell, Column, Item, Moving, Report, Section, Table, Text

Row = Mapping[str, Any]
_SEVERAL = 1.5  # times as long as one run: several
BUSIEST, MOST_LINKS, MOST_STEPS = 20, 1000, 500  # rows of tables: the busiest links, and the first operations
MOST_ROUND = 8  # operations of a round that repeats


def simulation(machine: _native.Machine, answer: ask.Answer, question: Scheduled, rows: Sequence[Row]) -> Report:
    """The page of an answer that kept `operations`, `links` and `bins`."""
    time = next(row for row in rows if row["metric"] == "time")
    insight = Insight(answer)
    what = question.what if isinstance(question, Collective) else "pattern"
    title = f"{what} by {question.algorithm} on {machine.name}"
    told = f"{title}: {_duration(time['value'])}"
    sections = [
        Section(
            "In short",
            [
                _conclusion(time, insight, answer),
                Moving([scene(machine, insight.timeline, title=told)]),
            ],
        ),
        Section("Figures", [_figures(rows)]),
        *_limits(machine, question, time),
        Section("Where the time goes", [_causes(insight), *_path(insight)]),
        Section("Links", _links(insight)),
    ]
    return Report(
        title, "Modelled, not measured: exact for the machine as described.", _facts(question), sections=sections
    )


def _facts(question: Scheduled) -> list[tuple[str, str]]:
    return [
        ("Ranks", f"{question.ranks:,}"),
        *([("Size", quantity.size(question.size_bytes))] if question.size_bytes is not None else []),
        ("Data type", question.dtype),
        *([("Chosen by the library", question.chosen)] if question.chosen else []),
        *([("Path", question.path)] if question.path else []),
    ]


def _conclusion(time: Row, insight: Insight, answer: ask.Answer) -> Text:
    spent = _spent(insight)
    whole = sum(spent.values())
    told = [f"It takes {_duration(time['value'])}{_of_limit(time)}."]
    if whole:
        most = max(spent, key=lambda name: spent[name])
        told.append(f"{quantity.percent(spent[most] / whole)} of the critical path is {most}.")
    links = insight.links
    if len(links):
        name, share = links.columns["link"][0], float(links.columns["busy_share"][0])
        told.append(f"The busiest link, {name}, is busy for {quantity.percent(share)} of the time.")
    return Text([" ".join(told), *_repeats(time, answer)])


def _repeats(time: Row, answer: ask.Answer) -> list[str]:
    """Explain the picture of a path that repeats the schedule."""
    whole_ns = units.Time(int(answer.ranks.finish_ps.max())).ns
    if not len(answer.ranks.runs_ps) or whole_ns < _SEVERAL * time["value"]:
        return []
    told = (
        f"This path runs the schedule several times, {_duration(whole_ns)} in all, and the picture shows all of them."
    )
    return [f"{told} The time, the critical path and the loads of links are those of one run."]


def _of_limit(time: Row) -> str:
    if not time["limit"]:
        return ""
    share = quantity.percent(time["limit"] / time["value"])
    return f"; no algorithm beats {_duration(time['limit'])} ({time['limit_name']}), so it reaches {share} of the limit"


def _figures(rows: Sequence[Row]) -> Table:
    body = [[str(row["metric"]), _figure(row), METRICS[row["metric"]][2]] for row in rows if row["value"] is not None]
    return Table("All figures", [Column("Metric"), Column("Value", numeric=True), Column("Meaning")], body)


def _figure(row: Row) -> Cell:
    if row["unit"] == "ns":
        return cells.time(row["value"])
    return Cell(shown.value(row), row["value"])


def _limits(machine: _native.Machine, question: Scheduled, time: Row) -> list[Section]:
    """What no algorithm beats, and what this schedule does not; nothing for a pattern."""
    items: list[Item] = []
    limits = _known(machine, question)
    if limits:
        columns = [Column("Limit"), Column("Time", "s", numeric=True), Column("Of the time", "%", numeric=True)]
        body = [
            [
                each.name,
                cells.time(NS_PER_US * each.time_us),
                cells.share(NS_PER_US * each.time_us / time["value"]),
                each.derivation,
            ]
            for each in limits
        ]
        items.append(Table("No algorithm is faster", [*columns, Column("Because")], body))
    if time["bound"]:
        told = f"With the traffic of this schedule, nothing is faster than {_duration(time['bound'])}"
        items.append(Text([f"{told} ({time['bound_name']})."]))
    return [Section("Limits", items)] if items else []


def _known(machine: _native.Machine, question: Scheduled) -> list[ask.Limit]:
    try:
        return ask.limits_of(machine, question) if isinstance(question, Collective) else []
    except LinkwrightError:  # such as a collective without a limit
        return []


def _spent(insight: Insight) -> dict[str, float]:
    columns = insight.critical_path.columns
    return {name: float(np.sum(columns[f"{name}_us"])) for name in SPENT}


def _causes(insight: Insight) -> Table:
    spent = _spent(insight)
    whole = sum(spent.values()) or 1.0
    body = [[name, cells.time(NS_PER_US * time_us), cells.share(time_us / whole)] for name, time_us in spent.items()]
    columns = [Column("Cause"), Column("Time", "s", numeric=True), Column("Share", "%", numeric=True)]
    return Table("The critical path", columns, body, "The chain of operations that decides when the last rank ends.")


def _path(insight: Insight) -> list[Table]:
    """Its operations, in order; repetition is one row."""
    found = insight.critical_path
    if not len(found):
        return []
    names = ["operation", "kind", "from", "to", "bytes", "start_us", "end_us", *(f"{name}_us" for name in SPENT)]
    steps = list(zip(*(found.columns[name] for name in names), strict=True))
    turns = list(_turns([(step[1], step[4], *(f"{time_us:.3g}" for time_us in step[7:])) for step in steps]))
    body = [_turn(steps[at : at + length * times], times) for at, length, times in turns[:MOST_STEPS]]
    heads = [Column("Operation", numeric=True), Column("Times", numeric=True), Column("Kind")]
    heads += [Column("From", numeric=True), Column("To", numeric=True), Column("Bytes", numeric=True)]
    heads += [Column(name, "s", numeric=True) for name in ("Start", "End", *(name.capitalize() for name in SPENT))]
    read = "Rounds that take the same kinds, bytes and times are one row, with the first ranks and the times of all."
    title = f"Its operations{_first(len(turns), MOST_STEPS)}"
    return [Table(title, heads, body, read if len(turns) < len(steps) else "", collapsed=True)]


def _turns(keys: Sequence[object]) -> Iterator[tuple[int, int, int]]:
    """(place, length, times) of rounds of equal keys that follow each other; where nothing repeats, 1 and 1."""
    at = 0
    while at < len(keys):
        length, times = 1, 1
        for period in range(1, MOST_ROUND + 1):
            count = 1
            while keys[at : at + period] == keys[at + period * count : at + period * (count + 1)]:
                count += 1
            if count > 2 and period * count > length * times:
                length, times = period, count
        yield at, length, times
        at += length * times


def _turn(steps: Sequence[Sequence[Any]], times: int) -> list[Cell | str]:
    round_ = steps[: len(steps) // times]
    first, last = steps[0], steps[-1]
    number, kind, *others = _operation(first[:5])
    kinds = ", ".join(str(step[1]) for step in round_) if times > 1 else kind
    spent = [sum(float(step[i]) for step in steps) for i in range(7, 7 + len(SPENT))]
    whole = [float(first[5]), float(last[6]), *spent]
    return [number, cells.count(times), kinds, *others, *(cells.time(NS_PER_US * time_us) for time_us in whole)]


def _operation(values: Sequence[Any]) -> list[Cell | str]:
    number, kind, *others = values
    return [cells.count(int(number)), str(kind), *(cells.count(int(other)) for other in others)]


def _links(insight: Insight) -> list[Table]:
    """The busiest links, and below them all others that carried something."""
    found = insight.links.columns
    columns = [Column("Link"), Column("Busy", "s", numeric=True), Column("Of the time", "%", numeric=True)]
    columns += [Column("Carried", "B", numeric=True), Column("Messages at once", numeric=True)]
    rows = zip(*(found[name] for name in ("link", "busy_us", "busy_share", "bytes", "peak_messages")), strict=True)
    used = [row for row in rows if row[3] or row[1]]
    unused = len(insight.links) - len(used)
    read = f"{units.counted(unused, 'link')} carried nothing." if unused else ""
    tables = [Table("The busiest", columns, list(map(_link, used[:BUSIEST])), read)]
    if others := used[BUSIEST:MOST_LINKS]:
        title = f"{units.counted(len(others), 'other')}{_first(len(used), MOST_LINKS)}"
        tables.append(Table(title, columns, list(map(_link, others)), collapsed=True))
    return tables


def _link(row: Sequence[Any]) -> list[Cell | str]:
    name, busy_us, share, carried, peak = row
    moved = cells.size(int(carried))
    return [str(name), cells.time(NS_PER_US * float(busy_us)), cells.share(float(share)), moved, cells.count(int(peak))]


def _first(count: int, most: int) -> str:
    return f", {most:,} of {count:,}" if count > most else ""


def _duration(time_ns: float) -> str:
    return quantity.text(time_ns / NS_PER_S, "s")
