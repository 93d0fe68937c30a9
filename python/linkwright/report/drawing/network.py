"""A network: endpoints in a row, their links as arcs below it, the switches and memories that join them above it.

host 0          host 1     farthest from the endpoints
  CPU 0 ------- CPU 1
 PLX 0  PLX 1  PLX 2       as many hops away as the row says
[0] [1] [2] [3] [4] [5]    endpoints
  \\___/   \\___/          links between endpoints
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from . import svg
from .links import Described
from .pairs import Pairs
from .svg import Scale

MOST = 16  # endpoints in one row
_ROW, _BOX, _GAP = 52.0, 24.0, 6.0
_LETTER = 6.6  # width of a letter


def draw(machine: Described, pairs: Pairs) -> tuple[str, str]:
    """The drawing and its caption."""
    ends = list(machine.endpoints)
    layers = _layers(ends, machine.links)
    at = _placed(layers, machine.links)
    direct = [link for link in machine.links if set(link) <= set(ends)]
    shown = {name: pairs.from_first(name) for name in ends}
    arcs = {link: pairs.between(*link) for link in direct}
    scale = Scale.of([value for value in (*shown.values(), *arcs.values()) if value], "s")
    bottom = at[ends[0]][1]
    parts = [svg.line(at[a], at[b]) for a, b in machine.links if (a, b) not in arcs and a in at and b in at]
    parts += [_arc(at[a], at[b], value, scale, f"{a} – {b}") for (a, b), value in arcs.items()]
    room = {name: svg.WIDTH / len(layer) - _GAP for layer in layers for name in layer}
    parts += [svg for name in at for svg in _node(name, at[name], shown, pairs, scale, room[name])]
    deepest = max((abs(ends.index(a) - ends.index(b)) for a, b in direct), default=0)
    height = bottom + 24 + (17 * deepest if direct else 0)
    if scale:
        parts += scale.legend(height, "latency")
        height += svg.LEGEND_HEIGHT + 8
    caption = f"An endpoint has the colour of its latency from {pairs.first}" if pairs.first else "No pair was run"
    caption += ", a link between two endpoints that of their latency." if direct and pairs.first else "."
    return svg.drawing(height, parts, f"{len(ends)} endpoints and their links"), caption


def _layers(ends: list[str], links: list[tuple[str, str]]) -> list[list[str]]:
    """Everything by its distance from the endpoints, which are the first layer."""
    near: dict[str, set[str]] = {}
    for a, b in links:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    layers, seen = [ends], set(ends)
    while reached := sorted({n for name in layers[-1] for n in near.get(name, ()) if n not in seen}):
        layers.append(reached)
        seen |= set(reached)
    return layers


def _placed(layers: list[list[str]], links: list[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """The centre of every box: a switch stands above the middle of what it joins."""
    at: dict[str, tuple[float, float]] = {}
    for depth, names in enumerate(layers):
        y = 18 + (len(layers) - 1 - depth) * _ROW
        wanted = {name: _mean([at[o][0] for o in _others(name, links) if o in at]) for name in names}
        order = sorted(names, key=lambda name: wanted[name]) if depth else names
        pitch = svg.WIDTH / len(order)
        places = [wanted[name] if depth else pitch * (k + 0.5) for k, name in enumerate(order)]
        if any(b - a < 80 for a, b in pairwise(places)):
            places = [pitch * (k + 0.5) for k in range(len(order))]
        at |= {name: (x, y) for name, x in zip(order, places, strict=True)}
    return at


def _others(name: str, links: list[tuple[str, str]]) -> list[str]:
    return [b if a == name else a for a, b in links if name in (a, b)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else svg.WIDTH / 2


def _arc(a, b, value: float | None, scale: Scale | None, told: str) -> str:
    """A link below the row of endpoints, deeper the farther they are apart."""
    depth = 12 + abs(a[0] - b[0]) * 0.34
    y = a[1] + _BOX / 2
    path = f"M{a[0]:.1f} {y:.1f}C{a[0]:.1f} {y + depth:.1f} {b[0]:.1f} {y + depth:.1f} {b[0]:.1f} {y:.1f}"
    kind = scale.colour(value) if scale else "none"
    words = f"{told}: {scale.words(value)}" if scale and value else told
    return svg.element("path", svg.element("title", str(svg.escape(words))), d=path, class_=f"arc {kind}")


def _node(
    name: str,
    at: tuple[float, float],
    shown: Mapping[str, float | None],
    pairs: Pairs,
    scale: Scale | None,
    room: float,
) -> Iterator[str]:
    endpoint = name in shown
    width = room if endpoint else min(room, len(name) * _LETTER + 14)
    value = shown.get(name)
    kind = "part" if not endpoint else "start" if name == pairs.first else scale.colour(value) if scale else "none"
    told = f"{name}: {scale.words(value)} from {pairs.first}" if value and scale else name
    yield svg.box((at[0] - width / 2, at[1] - _BOX / 2, width, _BOX), kind, told)
    words = name if len(name) * _LETTER <= width else name.split()[-1]
    yield svg.label(*at, words, kind)
