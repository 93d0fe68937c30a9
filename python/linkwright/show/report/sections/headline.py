"""The first table: what can this machine do, and how good is that?

It has about a dozen numbers, each with its limit and the published value if there is one. Every machine of the run has
its own columns, so that measured and modelled machines can be compared. A rule selects the row for each question (the
nearest pair, the best size, the fastest algorithm at the smallest message); the first column names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from linkwright.base.rows import Column as Values
from linkwright.base.rows import Row, Rows, among, largest, nunique, smallest, unique

from .. import quantity
from ..model import Cell, Column, Section, Table
from ..runs import Run, ok
from . import axes, collectives, levels, memory, picture, probe_headlines, values
from .groups import Group, groups

HELP = (
    "Each value is the median over n fresh launches. Its 95 % interval, below it, needs six launches; a modelled "
    "machine is deterministic and has none. 'Of limit' compares a model with the least time or the greatest rate that "
    "any algorithm could reach on it; below about 50 % there is something to gain. 'Of best seen' compares a measured "
    "machine with the best that it has shown: a cache line, a copy rate, arithmetic. A collective is represented by "
    "its fastest algorithm on the most ranks. Empty cells give their reason."
)

# The `order` of the first collective: collectives come after everything else.
FIRST_COLLECTIVE = 20


@dataclass(frozen=True)
class Pick:
    """One row that answers one question for one machine."""

    order: int  # memory, pairs, sizes, load, other processes, computing, collectives
    question: str
    row: Row
    about: str  # what was chosen: size, pair, algorithm


def section(run: Run) -> Section | None:
    """One line per question, each machine in its own columns."""
    picked = {machine: {pick.question: pick for pick in picks(run, machine)} for machine in run.machines}
    order = {question: pick.order for found in picked.values() for question, pick in found.items()}
    questions = sorted(order, key=order.__getitem__)  # stable: ties keep their order
    if not questions:
        return None
    columns = [Column("Question")]
    cells: list[list[Cell]] = [[Cell(question)] for question in questions]
    for machine in run.machines:
        found = [picked[machine].get(question) for question in questions]
        for column, make in _columns(run, machine, [pick for pick in found if pick]):
            columns.append(column)
            for line, pick in zip(cells, found, strict=True):
                line.append(make(pick) if pick else values.missing("not in this run"))
    table = Table("What can this machine do, and how good is that?", columns, cells, HELP)
    return Section("At a glance", [table])


def _columns(run: Run, machine: str, found: list[Pick]) -> Iterator[tuple[Column, Callable[[Pick], Cell]]]:
    """The value, and the limit and the published value if this machine has any."""
    yield Column(title(run, machine), numeric=True), lambda pick: values.value(pick.row, pick.about)
    if any(pick.row["share"] == pick.row["share"] for pick in found):
        modelled = run.rows[run.rows["machine"] == machine]["modelled"].all()
        yield (
            Column("of limit" if modelled else "of best seen", "%", numeric=True),
            lambda pick: values.of_limit(pick.row),
        )
    if any(pick.row["reference_value"] == pick.row["reference_value"] for pick in found):
        yield Column("published", numeric=True), lambda pick: values.published(pick.row)


def subtitle(run: Run) -> str:
    """Whether the numbers are measured, when the run was made, and of which suite."""
    kinds = run.rows.distinct("machine")["modelled"]
    kind = "Modelled" if kinds.all() else "Measured and modelled" if kinds.any() else "Measured"
    suites = ", ".join(sorted(map(str, unique(run.rows["suite"]))))
    began = str(run.environment.get("time", ""))[:16].replace("T", " ")
    return " · ".join(filter(None, [kind, f"suite {suites}" if suites else "", began, f"run {run.id}"]))


def title(run: Run, machine: str) -> str:
    """The machine, and whether its numbers are measured."""
    kind = "model" if run.rows[run.rows["machine"] == machine]["modelled"].all() else "measured"
    return f"{machine}, {kind}"


@lru_cache(maxsize=32)  # shared by the page and the terminal
def picks(run: Run, name: str) -> list[Pick]:
    """The rows that represent this machine, in reading order."""
    return sorted(_picks(run, name), key=lambda pick: pick.order)  # stable: ties keep their order


def _picks(run: Run, name: str) -> Iterator[Pick]:
    yield from _memory_picks(run, name)
    for headline in probe_headlines.headlines(run, name):
        yield Pick(*headline)
    told = set()
    for group in groups(run):
        if (group.part, group.pattern, group.metric) in told:
            continue  # another variant of the same question
        if name in group.matrices:
            told.add((group.part, group.pattern, group.metric))
            yield from _matrix_picks(group, group.matrices[name])
        elif (group.curves["machine"] == name).any():
            told.add((group.part, group.pattern, group.metric))
            yield _curve_pick(group, group.curves[group.curves["machine"] == name])
    for number, kind in enumerate(run.collectives):
        rows = collectives.times(run, kind)
        own = ok(rows[rows["machine"] == name])
        best = collectives.fastest(own)
        if len(best):
            many = f"{best['ranks'][0]:.0f} ranks" if nunique(own["ranks"]) > 1 else ""
            yield from _collective_picks(FIRST_COLLECTIVE + number, kind, best, _common_sizes(rows), many)


def _memory_picks(run: Run, name: str) -> Iterator[Pick]:
    """The latency of the last cache and of the memory, and the memory's triad with all threads."""
    shown = picture.levels(levels.claimed(run, name))[-2:]
    for level in shown:
        row = picture.latency(run, name, level)
        if row is not None:
            about = ", ".join(filter(None, [quantity.size(row["size_bytes"]), axes.pages(row)]))
            yield Pick(-2, f"{_level_words(level)}: latency", row, about)
    for threads in ("all", "one"):
        row = picture.bandwidth(run, name, shown[-1], "triad", threads)
        if row is not None:
            yield Pick(-1, "Memory: triad", row, f"{memory.threads(row['ranks'])}, blocks of {size(row)}")
            return


def _level_words(level: picture.Level) -> str:
    return f"Last cache, {level.name}" if level.cache else "Memory"


def _matrix_picks(group: Group, rows: Rows) -> Iterator[Pick]:
    sizes = _sizes(rows)
    apart = rows[(rows["source"] != rows["destination"]) & (sizes == smallest(sizes))]
    ranked = apart.ordered("-value" if group.rate else "value", "experiment")
    last = len(ranked) - 1
    ends = [(0, "best", 0), (1, "median", last // 2), (2, "worst", last)]
    for order, word, at in ends if last >= 2 else ends[::2]:
        row = ranked[at]
        pair = ", ".join(filter(None, [size(row), f"{row['source']} → {row['destination']}"]))
        yield Pick(order, f"{group.question}, {word} pair", row, pair)


def _curve_pick(group: Group, rows: Rows) -> Pick:
    """Under load, the row with the most ranks; by size, the best rate or the time of the smallest message."""
    whole = rows
    if group.loaded:
        rows = rows[rows["ranks"] == largest(rows["ranks"])]
    if group.rate:
        row = rows.greatest("value")
        half = smallest(rows[rows["value"] >= row["value"] / 2]["size_bytes"])
        about = size(row) if group.loaded else f"{size(row)}; half of the peak from {quantity.size(half)}"
    else:
        row = rows[int(np.argmin(_sizes(rows)))]
        about = size(row)
    if group.loaded:
        told = (f"{row['ranks']:.0f} ranks", about, _undisturbed(group, whole, row))
        about = ", ".join(part for part in told if part)
        return Pick(5, f"{group.question}, all at once", row, about)
    words = "best size" if group.rate else "smallest message"
    return Pick(4 if group.rate else 3, f"{group.question}, {words}", row, about)


def _undisturbed(group: Group, rows: Rows, row: Row) -> str:
    """The most ranks, compared with the same number of pairs without interference."""
    alone = rows[(rows["ranks"] == smallest(rows["ranks"])) & (rows["size_bytes"] == row["size_bytes"])]
    pairs = row["ranks"] / smallest(rows["ranks"])
    if not len(alone) or pairs <= 1:
        return ""
    first = alone["value"][0]
    if group.rate:
        return f"{quantity.percent(row['value'] / (pairs * first))} of {pairs:.0f} times one pair"
    return f"{row['value'] / first:.2f}× one pair alone"


def _common_sizes(rows: Rows) -> set[float]:
    """Sizes at which all machines of the run have a result: only these are compared."""
    machines = (collectives.most_ranks(part) for _, part in ok(rows).by("machine"))
    return set.intersection(*(set(_sizes(part)) for part in machines))


def _sizes(rows: Rows) -> Values:
    """The sizes; 0 where there is none, as of a cache line."""
    return np.nan_to_num(rows["size_bytes"])


def _collective_picks(
    order: int, kind: str, best: Rows, common: set[float], ranks: str
) -> Iterator[Pick]:  # fmt: skip
    shown = best[among(_sizes(best), common)] if common else best
    ends = [("smallest message", shown[0])]
    if len(shown) > 1:
        ends.append(("largest message", shown[-1]))
    for word, row in ends:
        word = size(row) if common else word
        about = ", ".join(part for part in ("" if common else size(row), row["algorithm"], ranks) if part)
        yield Pick(order, f"{kind}, {word}" if word and len(ends) > 1 else kind, row, about)


def size(row: Row) -> str:
    """The message size of a row in words; empty where it has none."""
    return quantity.size(row["size_bytes"]) if row["size_bytes"] > 0 else ""
