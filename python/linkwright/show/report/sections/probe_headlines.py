"""The probes in the first table: one line per question, not one per axis.

The questions are the latency while others read at full rate, the fastest and the slowest round trip to another process,
and, per element type, the best rate of computing with its size or generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linkwright.base import units
from linkwright.base.rows import Column, Row, Rows, mapped, smallest

from .. import quantity
from ..runs import Run, ok
from . import axes, computing, values

# (order in the table, question, row, what was chosen)
Headline = tuple[int, str, Row, str]

_ROUND_TRIP, _COMPUTE = 6, 7


def headlines(run: Run, machine: str) -> Iterator[Headline]:
    """The rows that represent this machine, in reading order."""
    rows = ok(run.rows)
    rows = rows[rows["machine"] == machine]
    for kind in (_loaded, _round_trips, _computing):
        yield from kind(rows)


def _loaded(rows: Rows) -> Iterator[Headline]:
    found = axes.where(_of(rows, "loaded_latency", "latency"), pause="0")
    injected = {row["experiment"]: row["value"] for row in _of(rows, "loaded_latency", "injected_bandwidth")}
    for (at,), part in found.assign(at=_axis(found, "at")).by("at"):
        row = part.greatest("value")
        others = injected.get(row["experiment"])
        about = f"others read {quantity.text(others, 'B/s')}" if others else ""
        yield -1, f"{values.words(at).capitalize()}: latency while others read", row, about


def _round_trips(rows: Rows) -> Iterator[Headline]:
    found = _of(rows, "round_trip", "round_trip_p50")
    if not len(found):
        return
    found = found.assign(reply=mapped(_axis(found, "out_bytes"), units.parse_size))
    total = found["size_bytes"] + found["reply"]
    least = found[total == smallest(total)]
    ends = {"fastest": least.least("value"), "slowest": least.greatest("value")}
    sizes = f"{quantity.size(least['size_bytes'][0])} and {quantity.size(least['reply'][0])}"
    for word, row in ends.items() if len(least) > 1 else [("", least[0])]:
        transport = values.words(axes.stated(row["axes"]).get("transport", ""))
        question = " ".join(filter(None, ["Round trip to another process,", word, "way"])) if word else "Round trip"
        yield _ROUND_TRIP, question, row, ", ".join(filter(None, [f"{sizes} back", transport]))


def _computing(rows: Rows) -> Iterator[Headline]:
    kinds: tuple[tuple[str, str, str, Callable[[dict[str, str]], str]], ...] = (
        ("fma_peak", "flop_rate", "Multiply-adds on registers", lambda given: ""),
        ("matmul", "flop_rate", "Matrix product", lambda given: f"n = {given.get('n')}"),
        ("convolution", "flop_rate", "Convolution", lambda given: f"{given.get('layer')}, batch {given.get('batch')}"),
        ("matmul", "flop_rate_per_watt", "Matrix product per watt", lambda given: f"n = {given.get('n')}"),
        ("random", "sample_rate", "Random numbers", lambda given: given.get("generator", "")),
    )
    for number, (probe, metric, question, about) in enumerate(kinds):
        found = _of(rows, probe, metric)
        found = found[_axis(found, "generator") != "store"]  # storing without generating is the limit
        for (dtype,), part in found.assign(element=_axis(found, "dtype")).by("element", sort=True):
            row = part.greatest("value")
            words = [about(axes.stated(row["axes"])), computing.workers(row) if row["ranks"] else ""]
            yield _COMPUTE + number, ", ".join(filter(None, [question, dtype])), row, ", ".join(filter(None, words))


def _of(rows: Rows, probe: str, metric: str) -> Rows:
    return rows[(rows["algorithm"] == probe) & (rows["metric"] == metric)]


def _axis(rows: Rows, key: str) -> Column:
    return mapped(rows["axes"], lambda text: axes.stated(text).get(key, ""))
