"""Groups, such as the nodes of a cluster, each in a frame of its own; the network stands between the rows of frames.

[ node 0 ] [ node 1 ]
  leaf 0     leaf 1        switches by their distance from the groups
       spine
[ node 2 ] [ node 3 ]
"""

from __future__ import annotations

import math

from ..graph import Edge, Graph
from . import cells, tiers
from .placed import BOX, MARGIN, WIDTH, Box, Layout, named, straight

_NETWORK_ROW = 58.0
_HEIGHT = {1: 250.0, 2: 210.0}  # of a frame, by the number of rows
_TITLE = 18.0


def place(graph: Graph, width: float = WIDTH) -> Layout | None:
    """The frames, if the machine has groups with endpoints of their own."""
    members: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        if node.group >= 0:
            members.setdefault(node.group, []).append(number)
    if len(members) < 2:
        return None
    network = [number for number, node in enumerate(graph.nodes) if node.group < 0]
    entries = sorted({n for group in members.values() for number in group for n in graph.near[number]} & set(network))
    layers = tiers.split(graph, network, entries)[0] if network else []
    frames, between = _frames(len(members), width, _NETWORK_ROW * len(layers) + (20 if layers else 0))
    upper = {group for group, frame in zip(members, frames, strict=True) if frame.y < between.y}
    boxes: dict[int, Box] = {}
    for frame, (group, inside) in zip(frames, members.items(), strict=True):
        boxes |= _inside(graph, inside, frame, group in upper)
    boxes |= _network(graph, layers, between)
    ends = {number for number, node in enumerate(graph.nodes) if node.ranks}
    paths = [_path(graph, edge, boxes, ends, graph.nodes[edge.a].group in upper) for edge in graph.edges]
    titled = [(frame, graph.groups[group]) for frame, group in zip(frames, members, strict=True)]
    height = frames[-1].y + frames[-1].height / 2 + MARGIN
    far = len({frame.y for frame in frames}) > 2
    behind = frozenset(k for k, edge in enumerate(graph.edges) if far and not _within(graph, edge))
    return Layout(height, [boxes[number] for number in range(len(graph.nodes))], paths, titled, behind)


def _frames(count: int, whole: float, network: float) -> tuple[list[Box], Box]:
    """The frames in rows, and the place of the network below the first half of these, or above the only one."""
    rows = 1 if count <= 4 else 2 if count <= 16 else 2 * math.ceil(math.sqrt(count / 22))
    columns = math.ceil(count / rows)
    width = (whole - MARGIN) / columns
    tall = _HEIGHT.get(rows, max(40.0, min(150.0, 560.0 / rows, width)))
    frames = []
    for k in range(count):
        row = k // columns
        y = MARGIN + (row + 0.5) * tall + (network if row >= rows // 2 else 0)
        frames.append(Box(MARGIN / 2 + (k % columns + 0.5) * width, y, width - 8, tall - 8))
    return frames, Box(whole / 2, MARGIN / 2 + rows // 2 * tall + network / 2, whole - 2 * MARGIN, network)


def _inside(graph: Graph, members: list[int], frame: Box, above: bool) -> dict[int, Box]:
    """What is in a frame; `above` the network, its switches are at the bottom."""
    ends = [number for number in members if graph.nodes[number].ranks]
    whole = [number for number in members if graph.nodes[number].kind == "group" and not graph.nodes[number].ranks]
    title = min(_TITLE, frame.height * 0.2)
    room = Box(frame.x, frame.y + title / 2, frame.width - 6, frame.height - title - 6)
    if whole:
        return dict.fromkeys(whole, frame) | _cells(ends, room)
    layers, below = tiers.split(graph, members, ends)
    boxes = tiers.spread(graph, layers, below, room, min(tiers.arcs(graph, ends, room.width), room.height * 0.3))
    if not above:
        return boxes
    return {n: Box(box.x, 2 * room.y - box.y, box.width, box.height) for n, box in boxes.items()}


def _cells(ends: list[int], room: Box) -> dict[int, Box]:
    top = room.y - room.height / 2
    boxes, bottom = cells.lines(len(ends), room.x - room.width / 2, top, room.width, room.width / room.height)
    down = max(0.0, (top + room.height - bottom) / 2)
    return {n: Box(box.x, box.y + down, box.width, box.height) for n, box in zip(ends, boxes, strict=True)}


def _network(graph: Graph, layers: list[list[int]], into: Box) -> dict[int, Box]:
    """The switches, those next to the groups at the bottom."""
    boxes: dict[int, Box] = {}
    row = into.height / max(1, len(layers))
    for depth, layer in enumerate(reversed(layers)):
        y, pitch = into.y - into.height / 2 + (depth + 0.5) * row, into.width / len(layer)
        for k, number in enumerate(layer):
            wide = named(graph.nodes[number].name, pitch * 0.86)
            boxes[number] = Box(MARGIN + (k + 0.5) * pitch, y, wide, min(BOX, row * 0.6))
    return boxes


def _path(graph: Graph, edge: Edge, boxes: dict[int, Box], ends: set[int], flipped: bool) -> tuple[float, ...]:
    a, b = graph.nodes[edge.a], graph.nodes[edge.b]
    if _within(graph, edge):
        return tiers.path(edge, boxes, ends, flipped)
    start, end = boxes[edge.a], boxes[edge.b]
    return straight(
        _edge_of(start, end) if a.kind == "group" else start, _edge_of(end, start) if b.kind == "group" else end
    )


def _edge_of(frame: Box, towards: Box) -> Box:
    """The point of a frame from which a line leaves."""
    y = frame.y + frame.height / 2 if towards.y > frame.y else frame.y - frame.height / 2
    return Box(frame.x, y, 0, 0)


def _within(graph: Graph, edge: Edge) -> bool:
    """Whether an edge stays in one frame."""
    return graph.nodes[edge.a].group == graph.nodes[edge.b].group >= 0
