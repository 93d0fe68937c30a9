"""Round trips: one heat map per machine, transport and statistic, laid out like the published tables."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from linkwright import units

from .. import quantity
from ..model import HeatMap, Section
from ..runs import Run, ok
from . import axes, values

INTRO = (
    "A request goes to another process (or to an accelerator) and its reply comes back, one at a time. Rows are sizes "
    "of the reply, columns sizes of the request, as in the published tables of accelerators; darker is less. The maps "
    "show the median, the mean and the 99th percentile of the trips."
)
PROBES = ("round_trip",)
METRICS = ("round_trip_p50", "round_trip_mean", "round_trip_p99")


def section(run: Run) -> Section | None:
    """All grids of the run."""
    rows = ok(run.rows)
    maps = list(_maps(run, rows[rows["metric"].isin(METRICS)]))
    return Section("Round trips", maps, INTRO) if maps else None


def _maps(run: Run, rows: pd.DataFrame) -> Iterator[HeatMap]:
    stated = rows["axes"].map(axes.stated)
    rows = rows.assign(
        transport=[given.get("transport", "") for given in stated],
        reply=[units.parse_size(given.get("out_bytes", "0")) for given in stated],
    )
    for machine in run.machines:
        here = rows[rows["machine"] == machine]
        for transport in here["transport"].unique():
            for metric in METRICS:
                found = here[(here["transport"] == transport) & (here["metric"] == metric)]
                if found["size_bytes"].nunique() > 1 or found["reply"].nunique() > 1:
                    yield _map(machine, transport, metric, found)


def _map(machine: str, transport: str, metric: str, rows: pd.DataFrame) -> HeatMap:
    replies, requests = sorted(rows["reply"].unique()), sorted(rows["size_bytes"].unique())
    at = (rows["reply"].map(replies.index).to_numpy(), rows["size_bytes"].map(requests.index).to_numpy())
    return HeatMap(
        f"{machine}: {values.words(transport)}, {values.words(metric)}",
        unit=rows["unit"].iloc[0],
        rows=[quantity.size(size) for size in replies],
        columns=[quantity.size(size) for size in requests],
        **values.matrices(rows, at, (len(replies), len(requests))),
        rows_title="reply",
        columns_title="request",
        scale="log10",
        missing="not measured, or listed under 'What is missing, and why'",
    )
