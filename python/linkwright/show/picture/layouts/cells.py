"""Endpoints without links between them: cells in rows that form a flat rectangle."""

from __future__ import annotations

import math

from ..graph import Graph
from .placed import MARGIN, WIDTH, Box, Layout

_LARGEST = 90.0
_FLAT = 2.4  # width over height


def place(graph: Graph, width: float = WIDTH) -> Layout | None:
    """All nodes, if there are no edges."""
    if graph.edges or not graph.nodes:
        return None
    boxes, height = lines(len(graph.nodes), MARGIN, MARGIN, width - 2 * MARGIN)
    return Layout(height + MARGIN, boxes, [])


def lines(count: int, left: float, top: float, width: float, flat: float = _FLAT) -> tuple[list[Box], float]:
    """The boxes of `count` cells, and where they end below."""
    columns = max(1, min(count, math.ceil(math.sqrt(count * flat))))
    pitch = min(_LARGEST, width / columns)
    tall = min(pitch, 34.0) if pitch > 34 else pitch
    indent = left + (width - pitch * columns) / 2
    gap = 4.0 if pitch > 20 else 1.0
    boxes = [
        Box(indent + (k % columns + 0.5) * pitch, top + (k // columns + 0.5) * tall, pitch - gap, tall - gap)
        for k in range(count)
    ]
    return boxes, top + math.ceil(count / columns) * tall
