"""A described machine, laid out by `linkwright.show.picture`: endpoints and the links between them have their
latencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwright import _native
from linkwright.machines.variant import totals
from linkwright.show.picture.graph import Graph, Node, graph
from linkwright.show.picture.layouts import Box, layout
from linkwright.show.picture.svg import outline

from . import cells, svg
from .pairs import Pairs
from .svg import Scale

_MOST = 130  # nodes that are drawn one by one
_LETTER = 6.6  # width of a letter


def draw(described: _native.Machine, pairs: Pairs) -> tuple[str, str]:
    """The drawing and its caption."""
    found = graph(described)
    if len(found.nodes) > _MOST:
        return cells.draw(parts(described, pairs.names), pairs)
    placed = layout(found, svg.WIDTH)
    taking_part = [node.name for node in found.nodes if node.kind == "endpoint"]
    values = {name: pairs.from_first(name) for name in taking_part}
    direct = [_between(found, edge.a, edge.b, pairs) for edge in found.edges]
    scale = Scale.of([value for value in (*values.values(), *direct) if value], "s")
    drawn = [
        svg.box((b.x - b.width / 2, b.y - b.height / 2, b.width, b.height), "frame", name) for b, name in placed.frames
    ]
    for edge, path, value in zip(found.edges, placed.paths, direct, strict=True):
        told = f"{found.nodes[edge.a].name} – {found.nodes[edge.b].name}"
        drawn.append(_link(path, value, told, scale))
    for node, box in zip(found.nodes, placed.boxes, strict=True):
        drawn += _node(node, box, values.get(node.name), pairs, scale)
    height = placed.height
    if scale:
        drawn += scale.legend(height + 4, f"latency from {pairs.first}")
        height += svg.LEGEND_HEIGHT + 12
    about = f"{len(taking_part)} endpoints of {found.machine} and their links"
    return svg.drawing(height, drawn, about), _caption(found, pairs, any(direct), directions(described))


def _between(found: Graph, a: int, b: int, pairs: Pairs) -> float | None:
    """The latency of a link that joins two endpoints and is not one of a grid, whose lines pass others."""
    first, second = found.nodes[a], found.nodes[b]
    both = first.kind == second.kind == "endpoint" and not found.sides and not found.ring
    return pairs.between(first.name, second.name) if both else None


def _link(path: Sequence[float], value: float | None, told: str, scale: Scale | None) -> str:
    if not scale or value is None:
        return svg.element("path", d=outline(path), class_="link")
    words = svg.element("title", str(svg.escape(f"{told}: {scale.words(value)}")))
    return svg.element("path", words, d=outline(path), class_=f"arc {scale.colour(value)}")


def _node(node: Node, at: Box, value: float | None, pairs: Pairs, scale: Scale | None) -> Iterator[str]:
    kind = "start" if node.name == pairs.first else "part" if node.kind != "endpoint" else "none"
    if kind == "none" and scale:
        kind = scale.colour(value)
    told = f"{node.name}: {scale.words(value)} from {pairs.first}" if value and scale else node.name
    yield svg.box((at.x - at.width / 2, at.y - at.height / 2, at.width, at.height), kind, told)
    words = [words for words in (node.name, node.name.split()[-1]) if len(words) * _LETTER <= at.width]
    if words and at.height > 14:
        yield svg.label(at.x, at.y, words[0], kind)


def _caption(found: Graph, pairs: Pairs, direct: bool, ways: str) -> str:
    told = [f"Endpoints are coloured by their latency from {pairs.first}" if pairs.first else "No pair was run"]
    told += ["links between two endpoints by the latency of these"] if direct else []
    told += ["links that leave the grid go around it"] if found.sides else []
    told += [ways, "where links are one-way, half a round trip shows only whole turns"] if ways else []
    return "; ".join(told) + "."


def directions(described: _native.Machine) -> str:
    """`NoC 0: east, south; NoC 1: north, west`, where links go one way."""
    ways: dict[str, set[str]] = {}
    for name in graph(described).links:
        words = name.rsplit(" ", 2)
        if len(words) == 3 and words[2] in ("east", "west", "north", "south"):
            ways.setdefault(words[0], set()).add(words[2])
    return "; ".join(f"{noc} moves {' and '.join(sorted(found))}" for noc, found in ways.items() if len(found) < 4)


def parts(described: _native.Machine, used: Sequence[str]) -> dict[str, list[str]]:
    """The endpoints that are used, or all, by the parts of the outermost level that has more than one."""
    every = [end["name"] for end in described.endpoints() if end["kind"] == "rank"]
    chosen = set(used) & set(every) or set(every)
    for name, outer in totals(described)[:-1]:
        if outer > 1:
            size = max(1, len(every) // outer)
            found: dict[str, list[str]] = {}
            for number, endpoint in enumerate(every):
                if endpoint in chosen:
                    found.setdefault(f"{name} {number // size}", []).append(endpoint)
            return found
    return {described.name: [name for name in every if name in chosen]}
