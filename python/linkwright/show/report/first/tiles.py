"""Four answers for each machine: latency, bandwidth, memory, collectives, each at its stated size.

A tile compares its value with what is known: of a model the limit of the problem, of a measured machine the best that
was seen on this host, then the published value or the earlier run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.base.rows import Row, Rows, among, given, largest, nunique, smallest
from linkwright.base.stats import grade

from .. import quantity
from ..model import Tile
from ..runs import Run, is_rate, ok
from ..sections import collectives, headline, levels, memory, picture, values
from ..sections.groups import groups
from ..sections.rising import is_rising
from . import earlier

_AT_LIMIT = 0.9  # a curve that has reached this share of its limit rises no more
_NOT_RUN = "not in this run"
_FIRST = "allreduce"  # the collective that stands for all, if the run has it


def tiles(run: Run, machine: str) -> list[Tile]:
    """The four tiles; a run that asked one question has only the tiles that it answers."""
    made = [make(run, machine) for make in (latency, bandwidth, local_memory, all_together)]
    answered = [tile for tile in made if tile.value]
    return made if len(answered) > 1 else answered


def precision(row: Row) -> tuple[str, str]:
    """How sure a value is, and the tone that says so: amber for wide, grey for too few launches."""
    if row["modelled"]:
        return "exact", ""
    if row["precision"] != row["precision"]:
        return grade.SINGLE, "quiet"
    return f"±{quantity.percent(row['precision'])}", "warn" if row["grade"] == grade.WIDE else ""


def said(row: Row) -> str:
    """A value with its precision, as part of a sentence."""
    sure, _ = precision(row)
    return shown(row) + (f" {sure}" if sure.startswith("±") else "")


def shown(row: Row) -> str:
    """A value with as many digits as its interval supports."""
    ends = values.number(row["ci_low"]), values.number(row["ci_high"])
    return quantity.with_interval(row["value"], *ends, row["unit"])[0]


def latency(run: Run, machine: str) -> Tile:
    """Half a round trip of the smallest message, between the median pair."""
    row = median_pair(run, machine)
    if row is not None:
        return _tile(run, "Latency", row[0], row[1], row[2])
    row = smallest_message(run, machine)
    return (
        Tile("Latency", "", _NOT_RUN, tone="quiet") if row is None else _tile(run, "Latency", row, headline.size(row))
    )


def median_pair(run: Run, machine: str) -> tuple[Row, str, list[str]] | None:
    """The row of the median pair, which it is, and the range over all pairs."""
    for group in sorted(groups(run), key=lambda group: group.is_probe):
        rows = group.matrices.get(machine)
        if rows is None or group.rate:
            continue
        apart = rows[rows["source"] != rows["destination"]]
        sizes = np.nan_to_num(apart["size_bytes"])
        apart = apart[sizes == smallest(sizes)]
        ranked = apart.ordered("value", "experiment")
        row = ranked[len(ranked) // 2]
        if len(ranked) <= 2:
            back = [f"{said(ranked[0])} the other way"] if len(ranked) == 2 else []
            return row, ", ".join(filter(None, [headline.size(row), f"{row['source']} → {row['destination']}"])), back
        low, high = (quantity.text(float(f"{v:.3g}"), row["unit"]) for v in ranked["value"][[0, -1]])
        span = f"{low} to {high} over all pairs" if low != high else "the same between all pairs"
        return row, ", ".join(filter(None, [headline.size(row), f"median of {len(ranked):,} pairs"])), [span]
    return None


def smallest_message(run: Run, machine: str) -> Row | None:
    """The latency of the smallest message, of a run without pairs."""
    found = [group for group in groups(run) if group.metric == "latency" and not group.is_probe]
    rows = [group.curves[group.curves["machine"] == machine] for group in found]
    rows = [part for part in rows if len(part)]
    return rows[0][int(np.argmin(np.nan_to_num(rows[0]["size_bytes"])))] if rows else None


def bandwidth(run: Run, machine: str) -> Tile:
    """The best rate of one pair over all sizes, and of all pairs at once."""
    rows = sweep(run, machine)
    if rows is None:
        return Tile("Bandwidth", "", _NOT_RUN, tone="quiet")
    row = rows.greatest("value")
    state = "the last size, and still rising" if rising(rows) else "the best size"
    about = f"{headline.size(row)}, {state}" if nunique(rows["size_bytes"]) > 1 else headline.size(row)
    return _tile(run, "Bandwidth", row, about, list(_all_at_once(run, machine)))


def sweep(run: Run, machine: str) -> Rows | None:
    """The rates of one pair by size."""
    for group in groups(run):
        rows = group.curves[group.curves["machine"] == machine]
        if group.metric == "bandwidth" and not group.is_probe and not group.loaded and len(rows):
            return rows.ordered("size_bytes", "experiment")
    return None


def rising(rows: Rows) -> bool:
    """Whether the best rate is that of the largest size, clearly above every smaller one, and not at its limit."""
    best = rows.greatest("value")
    mark = yardstick(best)
    at_limit = mark is not None and best["value"] >= _AT_LIMIT * mark.value
    return not at_limit and is_rising(rows)


def _all_at_once(run: Run, machine: str) -> Iterator[str]:
    for pick in headline.picks(run, machine):
        if pick.question.endswith("all at once") and pick.row["unit"] == "B/s":
            yield f"{said(pick.row)} with {pick.row['ranks']:.0f} ranks at once"
            return


def local_memory(run: Run, machine: str) -> Tile:
    """The rate of the memory behind all caches, and its latency."""
    claimed = levels.claimed(run, machine)
    behind = picture.levels(claimed)[-1]
    slow = picture.latency(run, machine, behind) if claimed else _last(run, machine, memory.LATENCY, "latency")
    more = [] if slow is None else [f"{said(slow)} per load, {headline.size(slow)}"]
    for kernel, threads in (("triad", "all"), ("triad", "one"), ("read", "all"), ("read", "one")):
        row = picture.bandwidth(run, machine, behind, kernel, threads) if claimed else None
        if row is not None:
            about = f"{kernel}, {memory.threads(row['ranks'])}, blocks of {headline.size(row)}"
            return _tile(run, "Memory", row, about, more)
    row = None if claimed else _last(run, machine, memory.BANDWIDTH, "bandwidth")
    if row is not None:
        return _tile(run, "Memory", row, f"{memory.threads(row['ranks'])}, blocks of {headline.size(row)}", more)
    if slow is not None:
        return _tile(run, "Memory", slow, f"a dependent load, {headline.size(slow)}")
    waived = run.rows[(run.rows["machine"] == machine) & among(run.rows["algorithm"], memory.PROBES)]
    why = _NOT_RUN
    if len(waived):
        why = "this model describes no memory" if waived["modelled"].all() else "nothing was measured beyond the caches"
    return Tile("Memory", "", why, tone="quiet")


def _last(run: Run, machine: str, probe: str, metric: str) -> Row | None:
    """The row of the largest size, of a machine that claims no caches."""
    rows = memory.of(run, probe, metric)
    rows = rows[rows["machine"] == machine]
    if not len(rows):
        return None
    rows = rows[rows["size_bytes"] == largest(rows["size_bytes"])]
    return rows.greatest("value") if is_rate(rows["unit"][0]) else rows.least("value")


def all_together(run: Run, machine: str) -> Tile:
    """The fastest algorithm of a collective at its smallest size, and at its largest."""
    kinds = sorted(run.collectives, key=lambda kind: (kind != _FIRST, kind))
    for kind in kinds:
        best = fastest(run, machine, kind)
        if not len(best):
            continue
        small, large = best[0], best[-1]
        about = ", ".join(filter(None, [kind, headline.size(small), values.words(small["algorithm"]), _ranks(small)]))
        more = []
        if len(best) > 1:
            rate = _bus(run, large)
            more = [f"{said(large)} at {headline.size(large)}, {values.words(large['algorithm'])}{rate}"]
        return _tile(run, "Collectives", small, about, more)
    return Tile("Collectives", "", _NOT_RUN, tone="quiet")


def fastest(run: Run, machine: str, kind: str) -> Rows:
    """The fastest algorithm of a collective by size, on the most ranks."""
    rows = collectives.times(run, kind)
    return collectives.fastest(ok(rows[rows["machine"] == machine]))


def _bus(run: Run, row: Row) -> str:
    rows = run.rows[(run.rows["experiment"] == row["experiment"]) & (run.rows["machine"] == row["machine"])]
    found = rows[(rows["metric"] == "bus_bw") & given(rows["value"])]
    return f", {quantity.text(float(found['value'][0]), 'B/s')} on the bus" if len(found) else ""


def _tile(run: Run, title: str, row: Row, about: str, more: list[str] | None = None) -> Tile:
    sure, tone = precision(row)
    sure += ", disturbed" if "disturbed" in row["flags"].split(",") else ""
    compared, rated, share = list(_known(run, row)), "", None
    if mark := yardstick(row):
        share = row["value"] / mark.value if is_rate(row["unit"]) else mark.value / row["value"]
        told = f"{quantity.text(float(f'{mark.value:.4g}'), row['unit'])}, {mark.name}: {quantity.percent(share)}"
        compared.insert(0, (mark.kind, told))
        rated = f"{quantity.percent(share)} of {mark.kind}"
    bar = min(float(share), 1.0) if share is not None else None
    return Tile(title, shown(row), about, sure, tone, more or [], compared, rated, bar)


@dataclass(frozen=True)
class Yardstick:
    """What a value is a share of, in its unit."""

    kind: str  # limit, or best seen
    name: str
    value: float


def yardstick(row: Row) -> Yardstick | None:
    """The limit of the problem, or what was seen at best on this host; None if neither is known."""
    for kind, column in (("limit", "limit"), ("best seen", "best_seen")):
        if row[column] == row[column] and row[column] > 0 and row["value"] > 0:
            return Yardstick(kind, values.limit_words(row[f"{column}_name"]) or kind, float(row[column]))
    return None


def _known(run: Run, row: Row) -> Iterator[tuple[str, str]]:
    """The published value, and that of the earlier run."""
    if row["reference_value"] == row["reference_value"]:
        published = values.published(row)
        yield "published", ": ".join(filter(None, [published.text, published.detail.removeprefix("off by ")]))
    if before := earlier.words(run, row):
        yield before


def _ranks(row: Row) -> str:
    return f"{row['ranks']:.0f} ranks" if row["ranks"] > 0 else ""
