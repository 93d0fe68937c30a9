"""Coordinates: a grid; of three dimensions, one plane behind the other.

Links around the edge are stubs that leave the grid at both ends.
"""

from __future__ import annotations

from ..graph import Edge, Graph
from .placed import BOX, WIDTH, Box, Layout, bent, straight

_MOST_HEIGHT = 0.52  # of the width
_LEAST_HEIGHT = 330.0
_LARGEST = 86.0
_STUB = 0.42  # of the distance between neighbours


def place(graph: Graph, width: float = WIDTH) -> Layout | None:
    """The grid, if every node has coordinates in one of at most three dimensions."""
    sides = graph.sides
    if not 1 <= len(sides) <= 3 or any(node.at is None for node in graph.nodes):
        return None
    columns, rows, planes = (*sides, 1, 1)[:3]
    tall = max(_LEAST_HEIGHT, _MOST_HEIGHT * width)
    cell = min(_LARGEST, width / (columns + 1), tall / (rows + 0.2))
    behind = cell / (planes + 0.4)
    left = (width - cell * columns) / 2
    size = (behind if planes > 1 else cell) * 0.68
    boxes = []
    for node in graph.nodes:
        x, y, z = (*(node.at or ()), 0, 0)[:3]
        across, down = left + cell / 2, cell * 0.6
        lift = z - (planes - 1) / 2 if planes > 1 else 0
        boxes.append(
            Box(across + x * cell + lift * behind, down + y * cell - lift * behind, size, min(size, BOX * 1.4))
        )
    paths = [_path(graph, edge, boxes, cell) for edge in graph.edges]
    return Layout(cell * (rows + 0.2), boxes, paths)


def _path(graph: Graph, edge: Edge, boxes: list[Box], cell: float) -> tuple[float, ...]:
    a, b = boxes[edge.a], boxes[edge.b]
    steps = [there - here for here, there in zip(_at(graph, edge.a), _at(graph, edge.b), strict=True)]
    far = [abs(step) > 1 for step in steps]
    if not any(far):
        return straight(a, b)
    if sum(map(bool, steps)) > 1 or any(
        abs(step) != side - 1 for step, side, is_far in zip(steps, graph.sides, far, strict=True) if is_far
    ):
        return bent(a, b)
    length = ((b.x - a.x) ** 2 + (b.y - a.y) ** 2) ** 0.5
    x, y = ((there - here) / length * cell * _STUB for here, there in ((a.x, b.x), (a.y, b.y)))
    return a.x, a.y, a.x - x, a.y - y, b.x + x, b.y + y, b.x, b.y


def _at(graph: Graph, number: int) -> tuple[int, ...]:
    return graph.nodes[number].at or ()
