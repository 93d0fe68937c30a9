"""What the kernel claims of caches, and what the curves of the run show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linkwright.base.stats import steps
from linkwright.store.topology import Cache

from .. import quantity
from ..model import Finding
from ..runs import Run
from ..sections import axes, levels, memory, picture

# Cache lines that one core keeps in flight, at most: the larger of today's have some 50 to 70.
MOST_LINES = 100
_LINE_BYTES = 64
_BELOW, _ABOVE = 2, 1  # working sets that must lie within and beyond a cache, before its step can be missed


def _curve(run: Run, machine: str):
    """(rows, levels found, claimed caches by number of the level) of a measured machine; None without a curve."""
    rows = memory.of(run, memory.LATENCY, "latency")
    rows = rows[(rows["machine"] == machine) & ~rows["modelled"]]
    rows = levels.finest(rows) if len(rows) else rows
    found = levels.found_levels(rows) if len(rows) else []
    claimed = levels.claimed(run, machine)
    return (rows, found, levels.matched(found, claimed)) if found and claimed else None


def _named(cache: Cache) -> str:
    return f"{cache.name} of {quantity.size(cache.size_bytes)}"


def _here(run: Run) -> str:
    return "this virtual machine" if run.environment.get("virtual") else "this machine"


def hidden_cache(run: Run, machine: str) -> Iterator[Finding]:
    """A claimed cache makes no step of its own, although the working sets around it were run."""
    curve = _curve(run, machine)
    if curve is None:
        return
    rows, _, matched = curve
    sizes, latencies = rows["size_bytes"], rows["value"]
    for cache in levels.claimed(run, machine):
        within = (sizes <= cache.size_bytes) & (sizes >= cache.size_bytes / levels.NAMED_WITHIN)
        if cache in matched.values() or within.sum() < _BELOW or (sizes > cache.size_bytes).sum() < _ABOVE:
            continue
        latency = quantity.text(float(f"{np.median(latencies[within]):.3g}"), "s")
        yield Finding(
            f"{_named(cache)}: {latency}, but no step in the curve",
            f"although the kernel claims it: {_here(run)} shares or hides it",
            f"Do not plan with {quantity.size(cache.size_bytes)}; your share ends where the curve rises.",
            55,
        )


def cache_size(run: Run, machine: str) -> Iterator[Finding]:
    """A cache ends far from its claimed size."""
    curve = _curve(run, machine)
    for number, cache in curve[2].items() if curve else ():
        level: steps.Level = curve[1][number]  # type: ignore[index]
        ratio = level.end_bytes / cache.size_bytes if level.end_bytes else 1.0
        between = level.beyond_bytes is not None and level.last_bytes <= cache.size_bytes <= level.beyond_bytes
        if 1 / levels.AGREES_WITHIN <= ratio <= levels.AGREES_WITHIN or between:
            continue
        why = (
            "another processor shares it, or only part of it is yours"
            if ratio < 1
            else "the machine has more than it reports"
        )
        yield Finding(
            f"{cache.name} ends at {quantity.size(levels.rounded(level.end_bytes))}",
            f"where the kernel claims {quantity.size(cache.size_bytes)}: {why}",
            "Block loops for the size found.",
            45,
        )


def unclaimed_step(run: Run, machine: str) -> Iterator[Finding]:
    """The latency rises at a size that belongs to no claimed cache."""
    curve = _curve(run, machine)
    for number, level in enumerate(curve[1]) if curve else ():
        if level.end_bytes and number not in curve[2]:  # type: ignore[index]
            yield Finding(
                f"The latency rises at {quantity.size(levels.rounded(level.end_bytes))}",
                "where the kernel claims no cache",
                "Measure with large pages: with small pages the reach of address translation causes such a step.",
                20,
                odd=False,
            )


def too_fast(run: Run, machine: str) -> Iterator[Finding]:
    """Memory gives one thread more lines than a core can have in flight: the block was answered by a cache."""
    claimed = levels.claimed(run, machine)
    if not claimed or run.rows[run.rows["machine"] == machine]["modelled"].all():
        return
    behind = picture.levels(claimed)[-1]
    latency = picture.latency(run, machine, behind)
    rate = picture.bandwidth(run, machine, behind, "read", "one")
    if latency is None or rate is None:
        return
    lines = float(rate["value"] * latency["value"] / _LINE_BYTES)
    if lines > MOST_LINES:
        pages = axes.pages(latency)
        yield Finding(
            f"One thread reads memory at {quantity.text(rate['value'], 'B/s')}, which is {lines:.0f} lines in flight",
            f"at {quantity.text(latency['value'], 's')} each{f' ({pages})' if pages else ''}, where a core has at most "
            f"{MOST_LINES}",
            "A cache that the kernel does not report may answer; use larger blocks (--level normal).",
            50,
        )
