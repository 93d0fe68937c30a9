"""Every graph: endpoints in a row, above them what joins them, by its distance in links.

host 0          host 1     farthest from the endpoints
  CPU 0 ------- CPU 1
 PLX 0  PLX 1  PLX 2       as many links away as the row says
[0] [1] [2] [3] [4] [5]    endpoints
  \\___/   \\___/          links between endpoints
     [ NVSwitch ]          a switch that joins most endpoints, and nothing else
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from ..graph import Edge, Graph
from .placed import BOX, WIDTH, Box, Layout, named, straight

_ROW = 72.0
_LEAST = 15.0  # width of an endpoint's place, below which the row breaks
_DEEP = 0.30  # of an arc, over its width
_MOST_DEEP = 130.0


def place(graph: Graph, width: float = WIDTH) -> Layout:
    """The tiers of the whole machine."""
    layers, below = split(graph, range(len(graph.nodes)), graph.endpoints)
    room = arcs(graph, layers[0], width)
    height = _ROW * (len(layers) + bool(below)) + room + (_lines(len(layers[0]), width) - 1) * BOX
    boxes = spread(graph, layers, below, Box(width / 2, height / 2, width, height), room)
    whole = [boxes[number] for number in range(len(graph.nodes))]
    return Layout(height, whole, [path(edge, boxes, set(layers[0])) for edge in graph.edges])


def split(graph: Graph, members: Collection[int], first: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Members by their distance from the first, and the switches below these."""
    inside, ends = set(members), set(first)
    near = {number: [other for other in graph.near[number] if other in inside] for number in members}
    below = [n for n in members if n not in ends and set(near[n]) <= ends and 2 * len(near[n]) >= max(4, len(ends))]
    layers, seen = [list(first)], ends | set(below)
    places = {number: (k + 0.5) / len(first) for k, number in enumerate(first)}
    while reached := _lowest({n for number in layers[-1] for n in near[number] if n not in seen}, near, seen):
        layers.append(_ordered(reached, near, places))
        seen |= set(reached)
    if rest := sorted(inside - seen):
        layers.append(rest)
    return ([*layers, below], []) if len(layers) == 1 and below else (layers, below)


def _lowest(reached: set[int], near: dict[int, list[int]], seen: set[int]) -> list[int]:
    """Those that were reached, without the few that join many more than the others do: they stand above these."""
    joins = {number: len((seen | reached) & set(near[number])) for number in reached}
    usual = sorted(joins.values())[(len(joins) - 1) // 2] if joins else 0
    above = {number for number, count in joins.items() if count >= 3 and count >= 2 * usual}
    return sorted(reached - above if 2 * len(above) <= len(reached) else reached)


def _ordered(layer: list[int], near: dict[int, list[int]], places: dict[int, float]) -> list[int]:
    """By the middle of the neighbours below, so that links cross less; notes the places (0 to 1) of the layer."""
    wanted = {n: _middle([places[other] for other in near[n] if other in places], 0.5) for n in layer}
    order = sorted(layer, key=lambda number: (wanted[number], number))
    places.update({number: (k + 0.5) / len(order) for k, number in enumerate(order)})
    return order


def arcs(graph: Graph, ends: Sequence[int], width: float) -> float:
    """The height of the arcs below the endpoints."""
    place = {number: k for k, number in enumerate(ends)}
    spans = [abs(place[e.a] - place[e.b]) for e in graph.edges if e.a in place and e.b in place]
    return min(_MOST_DEEP, max(spans) * width / len(ends) * _DEEP) if spans else 0.0


def _lines(count: int, width: float) -> int:
    return -(-count // max(8, int(width / _LEAST)))


def spread(graph: Graph, layers: list[list[int]], below: list[int], into: Box, room: float) -> dict[int, Box]:
    """All boxes inside of one: the endpoints `room` above its lower edge, with the switches below them."""
    left, bottom = into.x - into.width / 2, into.y + into.height / 2
    depth = len(layers) + bool(below)
    extra = (_lines(len(layers[0]), into.width) - 1) * BOX  # a row of endpoints that breaks
    row = (into.height - room - extra) / depth
    tall = min(BOX - 2, row * 0.55)
    boxes: dict[int, Box] = {}
    base = bottom - room - row * (0.5 + bool(below))
    for level, layer in enumerate(layers):
        y = base - level * row - (extra if level else 0)
        boxes |= _row(graph, layer, boxes, left, y, into.width, tall, bool(level))
    boxes |= _row(graph, below, boxes, left, bottom - row / 2, into.width, tall, True)
    return boxes


def _row(
    graph: Graph, layer: list[int], done: dict[int, Box], left: float, y: float, width: float, tall: float, free: bool
) -> dict[int, Box]:
    """One layer: evenly spread, or where the nodes below it stand if these leave room."""
    if not layer:
        return {}
    lines = 1 if free else _lines(len(layer), width)
    across = -(-len(layer) // lines)
    pitch = width / across
    places = [left + (k % across + 0.5) * pitch for k in range(len(layer))]
    wide = [named(_short(graph, number), pitch * 0.86) for number in layer]
    if free:
        wanted = [
            _middle([done[o].x for o in graph.near[n] if o in done], at) for n, at in zip(layer, places, strict=True)
        ]
        fits = all(b[0] - a[0] > (a[1] + b[1]) / 2 + 4 for a, b in pairwise(zip(wanted, wide, strict=True)))
        places = wanted if fits else places
    else:
        wide = [max(each, pitch * 0.8) if pitch < 90 else each for each in wide]
    up = [(lines - 1 - k // across) * (tall + 2) for k in range(len(layer))]
    return {n: Box(x, y - lift, w, tall) for n, x, w, lift in zip(layer, places, wide, up, strict=True)}


def _short(graph: Graph, number: int) -> str:
    """The name without that of its group."""
    node = graph.nodes[number]
    return node.name.removeprefix(f"{graph.groups[node.group]} ") if node.group >= 0 else node.name


def _middle(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def path(edge: Edge, boxes: dict[int, Box], ends: Collection[int], flipped: bool = False) -> tuple[float, ...]:
    """A straight line; between two nodes of one row an arc, below it for endpoints, so that it passes the others."""
    a, b = boxes[edge.a], boxes[edge.b]
    if abs(a.y - b.y) > 1:
        return straight(a, b)
    wide = abs(a.x - b.x)
    if edge.a in ends and edge.b in ends:
        depth = min(_MOST_DEEP, wide * _DEEP) * 2 + a.height
        return a.x, a.y, (a.x + b.x) / 2, a.y + (-depth if flipped else depth), b.x, b.y
    if wide < 1.8 * max(a.width, b.width) + 60:
        return straight(a, b)
    depth = min(56.0, wide * 0.2)
    return a.x, a.y, (a.x + b.x) / 2, a.y - (-depth if flipped else depth), b.x, b.y
