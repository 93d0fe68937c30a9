"""Load of traffic patterns: rates in total and of single endpoints, latencies of messages, the time of each rank.

The rows of `suite.load_rows` make the section, so every pattern has it, whatever suite ran it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from linkwright.base.rows import Row, Rows, among, given
from linkwright.base.stats import launches
from linkwright.base.units import NS_PER_S
from linkwright.session.suite.load_rows import PERCENTILES

from .. import quantity
from ..model import Axis, BoxPlot, Cell, Choice, Column, Curve, Item, Plot, Section, Table
from ..runs import Run, ok
from . import spread, values

_RATES = ("endpoint_rate_min", "endpoint_rate_median", "endpoint_rate_max")
_TAIL = ("message_p50", "message_p99", "message_max")
_MOST_CURVES = 8  # of one chart
_MOST_RANKS = 64  # boxes of one chart

INTRO = (
    "The total rate counts the bytes that all messages of a pattern move, over the time of the slowest rank. An "
    "endpoint's rate counts what it sends, over its own time: the slowest over the fastest is 100 % where every sender "
    "gets its share. The latency of a message lasts from when its sender takes it up until it is complete."
)
_RANKS_HOW = (
    "Each box holds the launch medians of one rank's own time. Low boxes are ranks that finish early; a rank whose box "
    "is far above the others gets less than its share."
)
_LATENCIES_HOW = "The share of messages that were complete after at most this time."


@dataclass(frozen=True)
class _Loaded:
    """One experiment: its rows by metric."""

    rows: Mapping[str, Row]

    @property
    def row(self) -> Row:
        return self.rows["time"]

    @property
    def issue(self) -> str:
        """`window(2)`; empty for the default."""
        return _text(self.row["issue"])

    @property
    def ways(self) -> str:
        """`both ways`, or nothing."""
        return "both ways" if _text(self.row["both_ways"]) else ""

    @property
    def words(self) -> str:
        """`hot spot, both ways, window(2)`."""
        return ", ".join(filter(None, [values.words(self.row["label"]), self.ways, self.issue]))

    @property
    def at(self) -> str:
        """`8 ranks, 64 B`."""
        return f"{self.row['ranks']:.0f} ranks, {quantity.size(self.row['size_bytes'])}"


def _text(value: object) -> str:
    """A text, empty for a value that is missing or false."""
    return str(value) if value and value == value else ""


def section(run: Run) -> Section | None:
    """A table of rates and tails, the latencies and the times of ranks, for each machine."""
    items = [item for machine in run.machines for item in _items(run, machine, _loaded(run, machine))]
    return Section("Who gets how much", items, INTRO) if items else None


def _loaded(run: Run, machine: str) -> list[_Loaded]:
    """The patterns of a machine whose messages or endpoints were looked at, in the order of the run."""
    rows = ok(run.patterns[run.patterns["machine"] == machine])
    known = rows[among(rows["metric"], [*_RATES, *PERCENTILES])]["experiment"]
    rows = rows[among(rows["experiment"], set(known))]
    found = []
    for _, part in rows.by("experiment"):
        by_metric = {row["metric"]: row for row in part}
        if "time" in by_metric:
            found.append(_Loaded(by_metric))
    return found


def _items(run: Run, machine: str, loaded: list[_Loaded]) -> Iterator[Item]:
    if not loaded:
        return
    yield _table(machine, loaded)
    most = max(one.row["ranks"] for one in loaded)
    fullest = [one for one in loaded if one.row["ranks"] == most]
    yield from _chosen(f"{machine}, latency of messages:", _latencies(fullest))
    if not loaded[0].row["modelled"]:  # a model keeps no samples
        yield from _chosen(f"{machine}, time of each rank:", _ranks(run, fullest))


def _chosen(title: str, charts: Iterator[Plot] | Iterator[BoxPlot]) -> list[Item]:
    found = list(charts)
    return [Choice(title, found)] if len(found) > 1 else [*found]


def _table(machine: str, loaded: list[_Loaded]) -> Table:
    columns = [
        Column("Pattern"), Column("Ranks", numeric=True), Column("Size", "B", numeric=True),
        Column("Total rate", "B/s", numeric=True), Column("Slowest endpoint", "B/s", numeric=True),
        Column("Fastest endpoint", "B/s", numeric=True),
        Column("Share", "%", numeric=True, help="the rate of the slowest endpoint over that of the fastest"),
        Column("Message p50", "s", numeric=True), Column("p99", "s", numeric=True),
        Column("Longest", "s", numeric=True),
    ]  # fmt: skip
    lines = [
        [
            Cell(values.sentence(one.words)), Cell(f"{one.row['ranks']:.0f}", float(one.row["ranks"])),
            values.size(one.row),
            _cell(one, "bandwidth"), _cell(one, _RATES[0]), _cell(one, _RATES[-1]), _share(one),
            *(_cell(one, metric) for metric in _TAIL),
        ]
        for one in loaded
    ]  # fmt: skip
    return Table(f"{machine}: rates and tails", columns, lines, collapsed=len(lines) > 40)


def _cell(one: _Loaded, metric: str) -> Cell:
    row = one.rows.get(metric)
    return values.missing("not known") if row is None else Cell(quantity.text(row["value"], row["unit"]), row["value"])


def _share(one: _Loaded) -> Cell:
    slowest, _, fastest = (one.rows.get(metric) for metric in _RATES)
    if slowest is None or fastest is None:
        return values.missing("not known")
    share = float(slowest["value"] / fastest["value"])
    return Cell(values.bare_percent(share), share, share=share)


def _latencies(loaded: list[_Loaded]) -> Iterator[Plot]:
    """A chart for all patterns that differ in nothing else, and one for the issue policies of each pattern."""
    charts: dict[tuple[str, str], list[_Loaded]] = {}
    for one in loaded:
        if "message_p50" in one.rows:
            about = f"{values.words(one.row['label'])} by issue policy" if one.issue else "patterns"
            charts.setdefault((", ".join(filter(None, [about, one.ways])), one.at), []).append(one)
    for (about, at), part in charts.items():
        curves = [_curve(one) for one in part[:_MOST_CURVES]]
        yield Plot(
            f"{values.sentence(about)}, {at}", Axis("latency of a message", "s", "log10"),
            Axis("messages", "%"), curves, _LATENCIES_HOW,
            summary=f"The first {_MOST_CURVES} of {len(part)}." if len(part) > _MOST_CURVES else "",
        )  # fmt: skip


def _curve(one: _Loaded) -> Curve:
    known = [metric for metric in PERCENTILES if metric in one.rows]
    return Curve(
        one.issue or values.words(one.row["label"]),
        [float(one.rows[metric]["value"]) for metric in known],
        [float(PERCENTILES[metric]) for metric in known],
        kind="model" if one.row["modelled"] else "measured",
        notes=[f"{values.words(metric)}: {quantity.text(one.rows[metric]['value'], 's')}" for metric in known],
    )


def _ranks(run: Run, loaded: list[_Loaded]) -> Iterator[BoxPlot]:
    """The time of each rank, where samples know it."""
    for one in loaded if len(run.samples) and loaded[0].row["ranks"] <= _MOST_RANKS else ():
        medians = _rank_medians(run.samples, one.row["experiment"])
        if medians:
            names = _names(run, str(one.row["executor"]), max(medians) + 1)
            boxes = [spread.box(name, medians[rank]) for rank, name in enumerate(names) if rank in medians]
            title = f"{values.sentence(one.words)}, {one.at}"
            yield BoxPlot(title, Axis("own time of a rank", "s"), boxes, _RANKS_HOW, wide=True)


def _rank_medians(samples: Rows, experiment: str) -> dict[int, np.ndarray]:
    """Rank -> its median time in each launch, in seconds."""
    mine = samples[(samples["experiment"] == experiment) & given(samples["rank"])]
    if "set_aside" in mine:
        mine = mine[~given(mine["set_aside"])]
    return {int(rank): launches.medians(part) / NS_PER_S for (rank,), part in mine.by("rank", sort=True)}


def _names(run: Run, executor: str, ranks: int) -> list[str]:
    """What each rank runs on, as far as the run knows it."""
    about = run.environment.get(executor) or {}
    known = [str(name) for name in about.get("endpoints", ())] or [
        f"{place['host']} {place['rank']}" for place in about.get("ranks", ())
    ]
    return [known[rank] if rank < len(known) else f"rank {rank}" for rank in range(ranks)]
