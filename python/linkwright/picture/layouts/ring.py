"""Nodes around a ring, or around the one switch that joins them all, or that all have links to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph import Graph
from .placed import BOX, WIDTH, Box, Layout, named, straight

MOST = 32
_HEIGHT = 420.0
_RADII = (430.0, 172.0)


def place(graph: Graph) -> Layout | None:
    """The ring bus, if there is one."""
    if not graph.ring or len(graph.ring) > MOST:
        return None
    return _around(graph, graph.ring)


def hub(graph: Graph) -> Layout | None:
    """A few endpoints, with at most one node that is none."""
    if not 2 <= len(graph.endpoints) <= MOST or len(graph.nodes) > len(graph.endpoints) + 1:
        return None
    return _around(graph, graph.endpoints)


def _around(graph: Graph, order: Sequence[int]) -> Layout:
    others = [number for number in range(len(graph.nodes)) if number not in set(order)]
    places = {number: _at(k, len(order)) for k, number in enumerate(order)}
    middle = 1 / max(1, len(others))
    places |= {number: (WIDTH / 2, _HEIGHT * (k + 0.5) * middle) for k, number in enumerate(others)}
    if len(others) == 1:
        places[others[0]] = (WIDTH / 2, _HEIGHT / 2)
    most = 1.6 * math.pi * _RADII[0] / len(order)
    boxes = []
    for number, node in enumerate(graph.nodes):
        x, y = places[number]
        boxes.append(Box(x, y, named(node.name, most if number in set(order) else 240), BOX))
    return Layout(_HEIGHT, boxes, [straight(boxes[edge.a], boxes[edge.b]) for edge in graph.edges])


def _at(k: int, n: int) -> tuple[float, float]:
    angle = 2 * math.pi * k / n - math.pi / 2
    return WIDTH / 2 + _RADII[0] * math.cos(angle), _HEIGHT / 2 + _RADII[1] * math.sin(angle)
