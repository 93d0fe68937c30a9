"""Local memory: latency by working set, bandwidth by block size, latency while others read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from linkwright.base.rows import Rows, among, given, largest, mapped, nunique, smallest, unique
from linkwright.store.topology import Cache

from .. import quantity
from ..model import Axis, Curve, Plot, Section
from ..runs import Run, ok
from . import axes, levels, values

INTRO = (
    "What an endpoint sees of its own memory. The time of a dependent load steps up where the working set outgrows a "
    "cache; dashed vertical lines are the sizes that the machine claims. Bandwidth counts the bytes that the program "
    "requested, over all threads. Under load, other threads read as fast as their pauses allow. Where the curve bends "
    "up, further bandwidth costs latency."
)
LATENCY, BANDWIDTH, LOADED = "memory_latency", "memory_bandwidth", "loaded_latency"
PROBES = (LATENCY, BANDWIDTH, LOADED)
_MOST_SERIES = 8


def section(run: Run) -> Section | None:
    """Plots of the three probes, and the levels of each machine."""
    tables = levels.tables(run, of(run, LATENCY, "latency"))
    items = [*_latency_plots(run), *_bandwidth_plots(run), *_loaded_plots(run), *tables]
    return Section("Memory", items, INTRO) if items else None


def of(run: Run, probe: str, metric: str) -> Rows:
    """The usable rows of one probe and metric."""
    rows = ok(run.rows)
    return rows[(rows["algorithm"] == probe) & (rows["metric"] == metric)]


def threads(count: float) -> str:
    """1 thread, 2 threads."""
    return f"{count:.0f} thread{'s' if count > 1 else ''}"


def _latency_plots(run: Run) -> Iterator[Plot]:
    rows = _together(of(run, LATENCY, "latency"), order="random", neighbours="0")
    axis = Axis("working set", "B", "log2")
    for part, found in _parts(run, rows, ("neighbours", "neighbours_do", "order")):
        if nunique(found["size_bytes"]) > 1:
            curves = _curves(run, found, "size_bytes")
            machines = list(dict.fromkeys(found["machine"]))
            marks = [mark for name in machines for mark in _marks(levels.claimed(run, name), found)]
            yield Plot(f"{part}: latency", axis, Axis("latency", "s", "log10"), [*curves, *marks])


def _together(rows: Rows, **plain: str) -> Rows:
    """Merges the parts whose rows all have these values (such as random loads without neighbours), whatever their
    sizes."""
    found = axes.where(rows, **plain)
    only = [part for part in unique(found["part"]) if (found["part"] == part).sum() == (rows["part"] == part).sum()]
    return rows.assign(part=np.where(among(rows["part"], only), only[0], rows["part"])) if only else rows


def _bandwidth_plots(run: Run) -> Iterator[Plot]:
    rows = _together(of(run, BANDWIDTH, "bandwidth"), width="widest")
    rows = rows.assign(threads=mapped(rows["ranks"], threads))
    for part, found in _parts(run, rows, ("kernel",)):
        if nunique(found["size_bytes"]) > 1:
            if nunique(found["threads"]) > 1:
                names = zip(found["series"], found["threads"], strict=True)
                found = found.assign(series=[", ".join(filter(None, name)) for name in names])
            curves = _curves(run, found, "size_bytes")
            axis = Axis("block of one thread", "B", "log2")
            yield Plot(f"{part}: bandwidth", axis, Axis("bandwidth", "B/s", "log10"), curves, dodge=True)


def _loaded_plots(run: Run) -> Iterator[Plot]:
    rows = of(run, LOADED, "latency")
    injected = {(row["machine"], row["experiment"]): row["value"] for row in of(run, LOADED, "injected_bandwidth")}
    keys = zip(rows["machine"], rows["experiment"], strict=True)
    rows = rows.assign(injected=np.array([injected.get(key, np.nan) for key in keys], dtype=float))
    rows = rows[given(rows["injected"])]
    if not len(rows):
        return
    rows = rows.assign(series=axes.variants(rows, leave_out=("pause",)))
    summary = run.summaries.get(rows["part"][0], "") or "latency while others read"
    axis = Axis("bandwidth that others read", "B/s", "log10")
    yield Plot(summary.capitalize(), axis, Axis("latency", "s", "log10"), _curves(run, rows, "injected"))


def _parts(run: Run, rows: Rows, split_by: tuple[str, ...]) -> Iterator[tuple[str, Rows]]:
    """(title, rows with series names) of each part, split by axes as long as it has too many series."""
    for part in sorted(unique(rows["part"]), key=_order(run)):
        found = rows[rows["part"] == part]
        title = run.summaries.get(part) or values.words(found["algorithm"][0])
        yield from _split(title.capitalize(), found, split_by, ())


def _split(title: str, rows: Rows, split_by: tuple[str, ...], taken: tuple[str, ...]) -> Iterator[tuple]:
    series = axes.variants(rows, leave_out=taken)
    several = len(set(zip(rows["machine"], rows["ranks"], series, strict=True))) > _MOST_SERIES
    if not several or not split_by:
        yield title, rows.assign(series=series)
        return
    key, *rest = split_by
    by = mapped(rows["axes"], lambda text: axes.stated(text).get(key, ""))
    for value in dict.fromkeys(by):
        heading = f"{title}, {axes.word(key, value)}" if nunique(by) > 1 else title
        yield from _split(heading, rows[by == value], tuple(rest), (*taken, key))


def _order(run: Run) -> Callable[[str], int]:
    order = [*run.summaries]
    return lambda part: order.index(part) if part in order else len(order)


def _curves(run: Run, rows: Rows, x: str) -> list[Curve]:
    curves = []
    for machine in run.machines:
        for (series,), points in rows[rows["machine"] == machine].by("series"):
            curves += values.with_limit(points, x, values.series_name(run, machine, str(series)))
    return curves


def _marks(caches: Iterable[Cache], rows: Rows) -> list[Curve]:
    """A vertical line at the size of each cache within the plot."""
    low, high = float(smallest(rows["value"])), float(largest(rows["value"]))
    first, last = smallest(rows["size_bytes"]), largest(rows["size_bytes"])
    return [
        Curve(f"{cache.name} claimed, {quantity.size(cache.size_bytes)}", [float(cache.size_bytes)] * 2, [low, high],
              kind="limit", notes=["as the kernel says"] * 2)
        for cache in caches
        if first <= cache.size_bytes <= last
    ]  # fmt: skip
