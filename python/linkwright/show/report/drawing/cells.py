"""Many endpoints, or endpoints of which only the names are known: small cells, in boxes of the parts they belong to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from . import svg
from .pairs import Pairs
from .svg import Scale


def draw(groups: Mapping[str, Sequence[str]], pairs: Pairs) -> tuple[str, str]:
    """The drawing and its caption; `groups` holds the endpoints of each part, in order."""
    names = [name for members in groups.values() for name in members]
    scale = Scale.of([value for value in map(pairs.from_first, names) if value], "s")
    across = min(len(groups), 1 if len(groups) == 1 else 2 if len(groups) <= 4 else 4)
    width = (svg.WIDTH - 4) / across
    most = max(len(members) for members in groups.values())
    columns = max(1, math.ceil(math.sqrt(most * width / 110)))
    cell = min(44.0, (width - 14) / columns)
    lines = math.ceil(most / columns)
    tall = lines * cell + 26
    parts = []
    for number, (group, members) in enumerate(groups.items()):
        left, top = 2 + (number % across) * width, 2 + (number // across) * tall
        parts.append(svg.box((left + 2, top + 2, width - 4, tall - 4), "frame", radius=5))
        parts.append(svg.text(left + 8, top + 15, group, "quiet", "start"))
        parts += _members(members, left + 7, top + 21, columns, cell, pairs, scale)
    height = 6 + math.ceil(len(groups) / across) * tall
    if scale:
        parts += scale.legend(height, f"latency from {pairs.first}")
        height += svg.LEGEND_HEIGHT + 8
    return svg.drawing(height, parts, f"{len(names)} endpoints"), ""


def _members(
    members: Sequence[str], left: float, top: float, columns: int, cell: float, pairs: Pairs, scale: Scale | None
) -> list[str]:
    parts = []
    for k, name in enumerate(members):
        x, y = left + (k % columns) * cell, top + (k // columns) * cell
        value = pairs.from_first(name)
        kind = "start" if name == pairs.first else scale.colour(value) if scale else "none"
        told = f"{name}: {scale.words(value)} from {pairs.first}" if value and scale else name
        gap = 1.0 if cell > 6 else 0.3
        parts.append(svg.box((x + gap, y + gap, cell - 2 * gap, cell - 2 * gap), kind, told))
        if cell >= 26:
            parts.append(svg.label(x + cell / 2, y + cell / 2, name.split()[-1][:5], kind))
    return parts
