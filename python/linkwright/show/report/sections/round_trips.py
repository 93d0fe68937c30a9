"""Round trips: a table of transports and sizes, or maps laid out like the published tables for a full grid of sizes."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.base import units
from linkwright.base.rows import Row, Rows, among, nunique, unique

from .. import quantity
from ..model import Cell, Choice, Column, HeatMap, Item, Section, Table
from ..runs import Run, ok
from . import axes, values

INTRO = "A request goes to another process (or to an accelerator) and its reply comes back, one at a time."
MAPS = "Rows are sizes of the reply, columns sizes of the request, as in the published tables; darker is less."
PROBES = ("round_trip",)
METRICS = {"round_trip_p50": "Median", "round_trip_mean": "Mean", "round_trip_p99": "99th percentile"}
_LEAST_SIDE = 4  # sizes each way from which a map says more than a table
_SIZES = ["size_bytes", "reply"]


def section(run: Run) -> Section | None:
    """One table or one choice of maps for each machine."""
    rows = ok(run.rows)
    rows = rows[among(rows["metric"], list(METRICS))]
    stated = [axes.stated(text) for text in rows["axes"]]
    rows = rows.assign(
        transport=[values.words(given.get("transport", "")) for given in stated],
        reply=[float(units.parse_size(given.get("out_bytes", "0"))) for given in stated],
    )
    by_machine = ((machine, rows[rows["machine"] == machine]) for machine in run.machines)
    items = [_shown(machine, here) for machine, here in by_machine if len(here)]
    maps = any(isinstance(item, Choice) for item in items)
    return Section("Round trips", items, f"{INTRO} {MAPS}" if maps else INTRO) if items else None


def _shown(machine: str, rows: Rows) -> Item:
    if min(nunique(rows[name]) for name in _SIZES) < _LEAST_SIDE:
        return _table(machine, rows)
    return Choice(f"{machine}:", list(_maps(rows)))


def _table(machine: str, rows: Rows) -> Table:
    found = [name for name in METRICS if (rows["metric"] == name).any()]
    columns = [Column("Transport"), Column("Request", "B", numeric=True), Column("Reply", "B", numeric=True)]
    columns += [Column(METRICS[name], "s", numeric=True) for name in found]
    body = []
    for (transport, request, reply), part in rows.by("transport", *_SIZES):
        by_metric = {row["metric"]: _cell(row) for row in part}
        sizes = (Cell(quantity.size(size), float(size)) for size in (request, reply))
        body.append([Cell(transport), *sizes, *(by_metric.get(name) or values.missing("") for name in found)])
    return Table(f"{machine}: round trips by transport and size", columns, body)


def _cell(row: Row) -> Cell:
    """The modes are those of the median, so that the other statistics do not repeat them."""
    return values.value(row if row["metric"] == next(iter(METRICS)) else {**row, "modes": ""})


def _maps(rows: Rows) -> Iterator[HeatMap]:
    for transport in unique(rows["transport"]):
        for metric, words in METRICS.items():
            found = rows[(rows["transport"] == transport) & (rows["metric"] == metric)]
            if len(found):
                yield _map(f"{transport}, {words.lower()}", found)


def _map(title: str, rows: Rows) -> HeatMap:
    replies, requests = sorted(unique(rows["reply"])), sorted(unique(rows["size_bytes"]))
    at = [replies.index(size) for size in rows["reply"]], [requests.index(size) for size in rows["size_bytes"]]
    return HeatMap(
        title,
        unit=rows["unit"][0],
        rows=[quantity.size(size) for size in replies],
        columns=[quantity.size(size) for size in requests],
        **values.matrices(rows, at, (len(replies), len(requests))),
        rows_title="reply",
        columns_title="request",
        scale="log10",
        missing="not measured, or listed under 'What is missing, and why'",
    )
