"""A picture as plain values: what `svg.py` draws and what `assets/picture.js` moves.

    nodes    [name, kind, label, x, y, width, height, its first rank or -1]; a `frame` is the box of a group
    frames   [name, x, y, width, height]
    links    [node, node, number of its class, bytes per second or null, path], of which the first `behind` are
             drawn behind the frames
    time     of a simulated schedule, see `times.py`; null without one

Lengths are units of a drawing that is `width` wide; a path is described in `layouts/placed.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

from linkwright import _native
from linkwright.session.timeline import Timeline

from .collapse import collapsed
from .graph import Graph, graph
from .layouts import WIDTH, layout
from .layouts.placed import LETTER, Layout
from .times import timed

_SMALL = 4.4  # width of the smallest letter


class Scene(TypedDict):
    """See the head of this file."""

    machine: str
    title: str
    about: str
    width: float
    height: float
    nodes: list[list[Any]]
    frames: list[list[Any]]
    classes: list[str]
    links: list[list[Any]]
    behind: int
    time: dict[str, Any] | None


def scene(
    machine: _native.Machine,
    timeline: Timeline | None = None,
    *,
    title: str = "",
    placement: Sequence[int] | None = None,
) -> Scene:
    """The picture of a machine, with what happens on its links if there is a timeline of a simulation.

    Args:
        machine: a described machine with a size.
        timeline: of `linkwright.session.timeline`, simulated on this machine.
        title: what is shown; by default the name of the machine.
        placement: the endpoint of each rank; by default that of its number.
    """
    whole = graph(machine)
    shown = collapsed(whole, machine)
    placed = layout(shown)
    shown, placed = _first_behind(shown, placed)
    ranks = _ranks(whole, shown, placement)
    classes = list(dict.fromkeys(edge.kind for edge in shown.edges))
    return {
        "machine": machine.name,
        "title": title or machine.name,
        "about": _about(whole, shown, machine),
        "width": WIDTH,
        "height": round(placed.height, 1),
        "nodes": _nodes(shown, placed, ranks),
        "frames": [[name, *_numbers(box.x, box.y, box.width, box.height)] for box, name in placed.frames],
        "classes": classes,
        "links": [
            [edge.a, edge.b, classes.index(edge.kind), edge.rate, _numbers(*path)]
            for edge, path in zip(shown.edges, placed.paths, strict=True)
        ],
        "behind": len(placed.behind),
        "time": None if timeline is None else timed(shown, timeline, ranks),
    }


def _first_behind(shown: Graph, placed: Layout) -> tuple[Graph, Layout]:
    """The same with its edges in the order in which they are drawn."""
    order = sorted(range(len(shown.edges)), key=lambda edge: edge not in placed.behind)
    edges, paths = tuple(shown.edges[edge] for edge in order), [placed.paths[edge] for edge in order]
    return replace(shown, edges=edges), replace(placed, paths=paths)


def _numbers(*values: float) -> list[float]:
    return [round(value, 1) for value in values]


def _ranks(whole: Graph, shown: Graph, placement: Sequence[int] | None) -> list[tuple[str, int]]:
    """Of each rank, its endpoint and the number of the node that shows this."""
    ends = [node.name for node in whole.nodes if node.kind == "endpoint"]
    taken = ends if placement is None else [ends[endpoint] for endpoint in placement]
    return [(name, shown.number[name]) for name in taken]


def _nodes(shown: Graph, placed: Layout, ranks: Sequence[tuple[str, int]]) -> list[list[Any]]:
    rows = []
    first = {node: rank for rank, (_, node) in reversed(list(enumerate(ranks)))}
    for number, (node, box) in enumerate(zip(shown.nodes, placed.boxes, strict=True)):
        kind = "frame" if node.kind == "group" and not node.ranks else node.kind
        label = "" if kind == "frame" else _label(node.name, box.width, node.group >= 0)
        place = _numbers(box.x, box.y, box.width, box.height)
        rows.append([node.name, kind, label, *place, first.get(number, -1)])
    return rows


def _label(name: str, width: float, grouped: bool) -> str:
    """As many of the last words of a name as its box has room for; the last ones in smaller letters if need be.

    A number alone says nothing where NICs and buffers stand in one row, so the word before it stays as well.
    """
    words = name.split(" ")
    last = len(words) - 1
    for first in range(2 if grouped and len(words) > 2 else 0, len(words)):
        label = " ".join(words[first:])
        letter = _SMALL if first == last - 1 and words[last].isdigit() else LETTER
        if len(label) * letter + 2 <= width:
            return label
    return words[-1] if len(words[-1]) * _SMALL + 2 <= width else ""


def _about(whole: Graph, shown: Graph, machine: _native.Machine) -> str:
    """The picture in words."""
    told = f"{machine.name}: {_counted(machine.ranks, 'endpoint')}"
    if whole.sides:
        told += f" on a grid of {' × '.join(map(str, whole.sides))}"
    if whole.edges:
        told += f", {_counted(len(whole.edges), 'link')}" + _classes(whole)
    if len(shown.nodes) < len(whole.nodes):
        told += f"; {len(whole.nodes):,} parts are drawn as {len(shown.nodes):,}"
    return told


def _classes(whole: Graph) -> str:
    """How many there are of each class, of a fabric that has classes."""
    counts = Counter(edge.kind for edge in whole.edges)
    if set(counts) == {"link"}:
        return ""
    return f" ({', '.join(f'{count:,} {kind}' for kind, count in counts.items())})"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
