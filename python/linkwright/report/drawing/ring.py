"""Endpoints around a ring, or around the one thing that joins them all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import svg
from .pairs import Pairs
from .svg import Scale

MOST = 24
_HEIGHT, _BOX = 232.0, 24.0


def draw(order: Sequence[str], ends: set[str], pairs: Pairs, hub: str = "") -> tuple[str, str]:
    """The drawing and its caption; `order` is that of the ring, `hub` what stands in its middle instead of links."""
    at = {name: _at(k, len(order)) for k, name in enumerate(order)}
    values = {name: pairs.from_first(name) for name in order if name in ends}
    scale = Scale.of([value for value in values.values() if value], "s")
    centre = (svg.WIDTH / 2, _HEIGHT / 2)
    if hub:
        parts = [svg.line(place, centre) for place in at.values()]
        width = len(hub) * 6.6 + 20
        parts += [svg.box((centre[0] - width / 2, centre[1] - 14, width, 28), "part"), svg.label(*centre, hub)]
    else:
        parts = [svg.element("ellipse", cx=centre[0], cy=centre[1], rx=_RADII[0], ry=_RADII[1], class_="link open")]
    width = min(64.0, 0.8 * 2 * math.pi * _RADII[0] / len(order))
    for name, (x, y) in at.items():
        value = values.get(name)
        kind = (
            "part" if name not in ends else "start" if name == pairs.first else scale.colour(value) if scale else "none"
        )
        told = f"{name}: {scale.words(value)} from {pairs.first}" if value and scale else name
        parts.append(svg.box((x - width / 2, y - _BOX / 2, width, _BOX), kind, told))
        words = name if len(name) * 6.6 <= width else name.split()[-1]
        parts.append(svg.label(x, y, words, kind))
    height = _HEIGHT
    if scale:
        parts += scale.legend(height + 4, f"latency from {pairs.first}")
        height += svg.LEGEND_HEIGHT + 12
    told = "" if hub else "Grey parts of the ring take no part in collectives." if set(order) - ends else ""
    return svg.drawing(height, parts, f"{len(order)} places around a {'hub' if hub else 'ring'}"), told


_RADII = (170.0, 92.0)


def _at(k: int, n: int) -> tuple[float, float]:
    angle = 2 * math.pi * k / n - math.pi / 2
    return svg.WIDTH / 2 + _RADII[0] * math.cos(angle), _HEIGHT / 2 + _RADII[1] * math.sin(angle)
