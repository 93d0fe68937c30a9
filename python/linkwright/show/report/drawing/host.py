"""A host: its processors over the caches that they share, over the memory.

cpu    [0][1][2][3] | [4][5][6][7]      one cell each, by package
L1d    [ ][ ][ ][ ] | [ ][ ][ ][ ]
L3     [    ][    ] | [    ][    ]      a bar spans the processors that share it
memory [                         ]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from linkwright.store.topology import Topology

from .. import quantity
from . import svg
from .pairs import Pairs
from .svg import Scale

_GUTTER = 120.0  # left of the bars: the name of a level, its size and its latency
_ROW = 34.0
_LEGIBLE = 20.0  # a narrower cell has no text
_THIN = 4.0  # bars narrower than this merge into one of the package


@dataclass(frozen=True)
class Row:
    """A level of the host: its bars, each with the processors that share it, and its latency in seconds."""

    name: str
    size_bytes: float | None
    bars: list[frozenset[int]]
    latency: float | None


def draw(topology: Topology, levels: list[Row], pairs: Pairs) -> tuple[str, str]:
    """The drawing and its caption."""
    order = _order(topology)
    ends = {cpu: pairs.from_first(f"cpu {cpu}") for cpu in order}
    scale = Scale.of([value for value in (*ends.values(), *(level.latency for level in levels)) if value], "s")
    columns = _columns(topology, order)
    parts = [*_packages(topology, columns, _ROW * (len(levels) + 1)), *_cpus(order, columns, ends, pairs, scale)]
    for number, level in enumerate(levels, 1):
        parts += _level(level, columns, 18 + number * _ROW, scale)
    height = 18 + _ROW * (len(levels) + 1)
    if scale:
        parts += scale.legend(height + 6, "latency")
        height += svg.LEGEND_HEIGHT + 12
    first = f"cpu {order[0]}"
    told = f"Processors are coloured by half a round trip with {first}" if any(ends.values()) else "No pair was run"
    return (
        svg.drawing(height, parts, f"{len(order)} processors, their caches and memory"),
        f"{told}; caches and memory by the latency of a dependent load.",
    )


def _order(topology: Topology) -> list[int]:
    """Processors that share much stand side by side."""

    def key(cpu: int) -> tuple:
        row = topology.rows[cpu]
        return str(row.get("package") or ""), min(topology.sharers(cpu), default=cpu), cpu

    return sorted(topology.rows, key=key)


def _columns(topology: Topology, order: list[int]) -> dict[int, tuple[float, float]]:
    """Processor -> (left, width), with a gap between packages."""
    packages = [topology.rows[cpu].get("package") for cpu in order]
    gaps = [a != b for a, b in pairwise(packages)]
    width = (svg.WIDTH - _GUTTER - 8 - 10 * sum(gaps)) / len(order)
    lefts, x = [], _GUTTER
    for gap in (*gaps, False):
        lefts.append(x)
        x += width + 10 * gap
    return {cpu: (left, width) for cpu, left in zip(order, lefts, strict=True)}


def _packages(topology: Topology, columns: dict[int, tuple[float, float]], height: float) -> Iterator[str]:
    by_package: dict[str, list[int]] = {}
    for cpu in columns:
        by_package.setdefault(str(topology.rows[cpu].get("package")), []).append(cpu)
    for package, cpus in by_package.items():
        left, width = _span(cpus, columns)
        yield svg.box((left - 3, 16, width + 6, height - _ROW + 4), "frame", radius=5)
        yield svg.text(left, 11, f"package {package}", "quiet", "start")


def _span(cpus: list[int], columns: dict[int, tuple[float, float]]) -> tuple[float, float]:
    left = min(columns[cpu][0] for cpu in cpus)
    return left, max(columns[cpu][0] + columns[cpu][1] for cpu in cpus) - left


def _cpus(
    order: list[int], columns: dict[int, tuple[float, float]], ends: dict[int, float | None], pairs: Pairs, scale
) -> Iterator[str]:
    yield from _gutter(18, "processors", f"{len(order)}")
    for cpu in order:
        left, width = columns[cpu]
        value = ends[cpu]
        kind = "start" if f"cpu {cpu}" == pairs.first else scale.colour(value) if scale else "none"
        told = f"cpu {cpu}" + (f": {scale.words(value)} from {pairs.first}" if value and scale else "")
        yield svg.box((left + _gap(width), 20, width - 2 * _gap(width), _ROW - 6), kind, told)
        if width >= _LEGIBLE:
            words = f"cpu {cpu}" if width >= 44 else str(cpu)
            words += f" · {scale.words(value)}" if width >= 110 and value and scale else ""
            yield svg.label(left + width / 2, 18 + _ROW / 2, words, kind)


def _gap(width: float) -> float:
    return 1.5 if width >= 8 else width / 10


def _level(level: Row, columns: dict[int, tuple[float, float]], top: float, scale: Scale | None) -> Iterator[str]:
    latency = scale.words(level.latency) if level.latency and scale else "not measured"
    size = "" if level.size_bytes is None else _size(level.size_bytes)
    yield from _gutter(top, f"{level.name} {size}".strip(), latency)
    kind = scale.colour(level.latency) if scale else "none"
    for cpus in level.bars:
        here = [cpu for cpu in cpus if cpu in columns]
        if here:
            left, width = _span(here, columns)
            if width >= _THIN or min(cpus) == min(columns):
                told = f"{level.name} of cpu {', '.join(map(str, sorted(cpus)[:8]))}: {latency}"
                gap = _gap(width)
                yield svg.box((left + gap, top + 2, max(1.0, width - 2 * gap), _ROW - 6), kind, told)


def _size(size_bytes: float) -> str:
    """A cache as it is, a memory in whole GiB: a part of it is not reported."""
    return quantity.size(size_bytes) if size_bytes < 2**30 else f"{size_bytes / 2**30:,.0f} GiB"


def _gutter(top: float, name: str, value: str) -> Iterator[str]:
    yield svg.text(4, top + 13, name, "name", "start")
    yield svg.text(4, top + 27, value, "quiet", "start")
