"""Nodes around a ring, or around the one switch that joins them all, or that all have links to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph import Graph
from .placed import BOX, WIDTH, Box, Layout, named, straight

MOST = 32
_LEAST_HEIGHT = 232.0


def place(graph: Graph, width: float = WIDTH) -> Layout | None:
    """The ring bus, if there is one."""
    if not graph.ring or len(graph.ring) > MOST:
        return None
    return _around(graph, graph.ring, width)


def hub(graph: Graph, width: float = WIDTH) -> Layout | None:
    """A few endpoints, with at most one node that is none."""
    if not 2 <= len(graph.endpoints) <= MOST or len(graph.nodes) > len(graph.endpoints) + 1:
        return None
    return _around(graph, graph.endpoints, width)


def _around(graph: Graph, order: Sequence[int], width: float) -> Layout:
    height = max(_LEAST_HEIGHT, 0.35 * width)
    middle, radii = (width / 2, height / 2), (0.38 * width, height / 2 - 1.4 * BOX)
    others = [number for number in range(len(graph.nodes)) if number not in set(order)]
    places = {number: _at(k, len(order), middle, radii) for k, number in enumerate(order)}
    places |= {number: (middle[0], height * (k + 0.5) / len(others)) for k, number in enumerate(others)}
    most = 1.6 * math.pi * radii[0] / len(order)
    boxes = []
    for number, node in enumerate(graph.nodes):
        room = most if number in set(order) else 0.2 * width
        boxes.append(Box(*places[number], named(node.name, room), BOX))
    return Layout(height, boxes, [straight(boxes[edge.a], boxes[edge.b]) for edge in graph.edges])


def _at(k: int, n: int, middle: tuple[float, float], radii: tuple[float, float]) -> tuple[float, float]:
    angle = 2 * math.pi * k / n - math.pi / 2
    return middle[0] + radii[0] * math.cos(angle), middle[1] + radii[1] * math.sin(angle)
