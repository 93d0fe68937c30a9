"""Levels of the memory: steps found in the latency curve, compared with what the machine claims."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linkwright.base.rows import Rows, nunique
from linkwright.base.stats import steps
from linkwright.store.topology import Cache

from .. import cells, quantity
from ..model import Cell, Column, Table
from ..runs import Run
from . import axes, values

# Found and claimed sizes agree within this factor, or as closely as the sizes were sampled.
AGREES_WITHIN = 1.5
# A step farther than this factor from every claimed size does not belong to a claimed cache.
NAMED_WITHIN = 8.0

_COLUMNS = (
    Column("Level", help="the claimed cache nearest to the step"),
    Column("Latency", "s", numeric=True),
    Column("Found", "B", numeric=True, help="where the curve has risen half above its plateau"),
    Column("Claimed", "B", numeric=True, help="by the kernel"),
    Column("Agreement"),
)
_HOW = (
    "Plateaus and steps of the latency curve, on logarithmic axes. The position of a step is only as accurate as the "
    "working sets around it. A cache that ends before its claimed size is shared with others, or partitioned for a "
    "virtual machine."
)


def tables(run: Run, latencies: Rows) -> Iterator[Table]:
    """The levels of each measured machine; `latencies` are the rows of the probe."""
    for machine in run.machines:
        here = latencies[latencies["machine"] == machine]
        if len(here) and not here["modelled"].all():
            found = _table(machine, finest(here), claimed(run, machine))
            if found:
                yield found


def claimed(run: Run, machine: str) -> list[Cache]:
    """The caches that a measured machine claims; a described one states its levels as parameters."""
    return run.topology(machine).caches


def finest(rows: Rows) -> Rows:
    """The curve that determines the levels: random order, no neighbours, most sizes, larger pages in a tie."""
    rows = axes.where(rows, order="random", neighbours="0")
    rows = rows.assign(pages=[axes.stated(text).get("pages", "") for text in rows["axes"]])
    if not len(rows):
        return rows
    sizes = {pages: nunique(part["size_bytes"]) for (pages,), part in rows.by("pages", sort=True)}
    best = [pages for pages, many in sizes.items() if many == max(sizes.values())]
    rows = rows[rows["pages"] == ("2M" if "2M" in best else best[0])]
    return rows.ordered("size_bytes", "value").distinct("size_bytes")


def found_levels(rows: Rows) -> list[steps.Level]:
    """The levels of one curve of rows."""
    errors = (rows["ci_high"] - rows["ci_low"]) / 2  # unknown with fewer than six launches
    return steps.levels(rows["size_bytes"], rows["value"], errors)


def _table(machine: str, rows: Rows, caches: list[Cache]) -> Table | None:
    found = found_levels(rows)
    if not found:
        return None
    sizes = rows["size_bytes"]
    named = matched(found, caches)
    lines = [(level.last_bytes, _row(level, named.get(number))) for number, level in enumerate(found)]
    lines += [(cache.size_bytes, _not_found(cache, sizes)) for cache in caches if cache not in named.values()]
    title = ", ".join(filter(None, [f"{machine}: levels found and claimed", axes.pages(rows[0])]))
    return Table(title, _COLUMNS, [line for _, line in sorted(lines, key=lambda line: line[0])], _HOW)


def matched(found: list[steps.Level], caches: list[Cache]) -> dict[int, Cache]:
    """Number of a level -> the claimed cache whose size is nearest to its end, if one is near enough."""
    distances = sorted(
        (abs(np.log(level.end_bytes / cache.size_bytes)), number, c)
        for number, level in enumerate(found) if level.end_bytes
        for c, cache in enumerate(caches)
    )  # fmt: skip
    matched: dict[int, Cache] = {}
    for distance, number, c in distances:
        if distance <= np.log(NAMED_WITHIN) and number not in matched and caches[c] not in matched.values():
            matched[number] = caches[c]
    return matched


def _row(level: steps.Level, cache: Cache | None) -> list[Cell]:
    latency = Cell(quantity.text(level.latency, "s"), level.latency, tone="strong")
    if level.end_bytes is None:
        return [Cell("memory"), latency, Cell("", detail=f"from {quantity.size(level.first_bytes)}"),
                values.missing(""), Cell("")]  # fmt: skip
    around = f"between {quantity.size(level.last_bytes)} and {quantity.size(level.beyond_bytes)}"
    found = Cell(quantity.size(rounded(level.end_bytes)), level.end_bytes, around)
    if cache is None:
        why = "no cache of this size is claimed; the reach of address translation also causes a step"
        return [Cell("unnamed"), latency, found, values.missing("none"), Cell("not claimed", detail=why, tone="warn")]
    ratio = level.end_bytes / cache.size_bytes
    told = f"found at {ratio:.2f} of the claim"
    if 1 / AGREES_WITHIN <= ratio <= AGREES_WITHIN:
        verdict = Cell("agrees", ratio, tone="good")
    elif level.last_bytes <= cache.size_bytes <= level.beyond_bytes:
        verdict = Cell("agrees as far as the sizes tell", ratio, told)
    else:
        verdict = Cell("differs", ratio, told, tone="warn")
    return [Cell(cache.name), latency, found, cells.size(float(cache.size_bytes)), verdict]


def _not_found(cache: Cache, sizes: np.ndarray) -> list[Cell]:
    ratios = sizes / cache.size_bytes
    why = "the curve has no separate step"
    if cache.size_bytes > sizes[-1] / 2:
        why = "the working sets end before it"
    elif np.sum((ratios >= 1 / NAMED_WITHIN) & (ratios <= 1)) < 2 or not np.any((ratios > 1) & (ratios <= 4)):
        why = "too few working sets around it have a result"
    verdict = Cell("not found", detail=why, tone="warn")
    size = cells.size(float(cache.size_bytes))
    return [Cell(cache.name), values.missing(""), values.missing("no step"), size, verdict]


def rounded(size_bytes: float) -> float:
    """Two digits, since no more are known."""
    unit = 1024.0 ** int(np.log(size_bytes) / np.log(1024))
    shown = size_bytes / unit
    return float(f"{shown:.2g}") * unit if shown < 100 else round(shown, -1) * unit
