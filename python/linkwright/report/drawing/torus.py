"""A torus: places on a grid, the endpoints coloured, links between neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from . import svg
from .links import Described
from .pairs import Pairs
from .svg import Scale

_LARGEST, _LINKED = 34.0, 9.0  # cell sizes: at most, and below which links are left out


def draw(machine: Described, pairs: Pairs) -> tuple[str, str]:
    """The drawing and its caption."""
    columns, rows = machine.grid
    cell = min(_LARGEST, (svg.WIDTH - 24) / columns, 330 / rows)
    left, gap = (svg.WIDTH - cell * columns) / 2, cell * 0.16
    values = {name: pairs.from_first(name) for name in machine.places}
    scale = Scale.of([value for value in values.values() if value], "s")
    at = {place: name for name, place in machine.places.items()}
    parts = [*_links(columns, rows, cell, left)] if cell >= _LINKED else []
    for y in range(rows):
        for x in range(columns):
            place = (left + x * cell + gap, 10 + y * cell + gap, cell - 2 * gap, cell - 2 * gap)
            name = at.get((x, y))
            parts.append(_place(place, name, machine, pairs, scale, (x, y)))
    height = 20 + cell * rows
    if scale:
        parts += scale.legend(height, f"latency from {pairs.first}")
        height += svg.LEGEND_HEIGHT + 8
    words = [f"{columns} × {rows} places"]
    unused = columns * rows - len(machine.places)
    words += [f"{unused} without a rank are outlined"] if unused else []
    if machine.directions:
        words += [machine.directions, "where links go one way, half a round trip shows whole turns only"]
    return svg.drawing(height, parts, f"{columns} x {rows} places on a torus"), "; ".join(words) + "."


def _place(place, name: str | None, machine: Described, pairs: Pairs, scale: Scale | None, at: tuple[int, int]) -> str:
    if name is None:
        return svg.box(place, "empty", machine.memories.get(at, "no rank here"))
    value = pairs.from_first(name)
    if name == pairs.first:
        return svg.box(place, "start", f"{name}: the others are seen from here")
    told = f"{name}: {scale.words(value)}" if value and scale else f"{name}: not run"
    return svg.box(place, scale.colour(value) if scale else "none", told)


def _links(columns: int, rows: int, cell: float, left: float) -> Iterator[str]:
    """Lines through all places; their ends stand out, because the links wrap."""
    out = cell * 0.3
    for y in range(rows):
        middle = 10 + (y + 0.5) * cell
        yield svg.line((left - out, middle), (left + columns * cell + out, middle))
    for x in range(columns):
        middle = left + (x + 0.5) * cell
        yield svg.line((middle, 10 - out), (middle, 10 + rows * cell + out))
