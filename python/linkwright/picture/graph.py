"""What a described machine consists of, as far as it can be drawn: nodes, edges between them, coordinates, groups.

A fabric names its links when it simulates. What a name says about a place is read here and nowhere else:

    GPU 0 -> PLX 0             a direction of the edge between two nodes
    ring 0 SPE1 to SPE3        the same, on a ring bus
    NoC 0 (1,2) east           the same, on a grid: to the next node to the east, around the edge if need be
    rank 0 out, GPU 0 local    a port of a node
    command network            of no place: listed, not drawn
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from linkwright import _native
from linkwright.ask import How, ask

_WAYS = {"east": (1, 0), "west": (-1, 0), "south": (0, 1), "north": (0, -1)}
_NOC = re.compile(r".* \((\d+),(\d+)\) (\w+)")
_RING = re.compile(r"ring \d+ (.+) to (.+)")


@dataclass(frozen=True)
class Node:
    """Something with a place.

    Attributes:
        name: as in the machine file and in the names of links.
        kind: `endpoint`, `memory`, `switch` or `group`, which stands for several nodes.
        rank: the first rank that it runs, or stands for.
        ranks: how many ranks it stands for.
        at: its coordinates, if it has some.
        group: the number of its group, -1 if it is in none.
    """

    name: str
    kind: str
    rank: int | None = None
    ranks: int = 0
    at: tuple[int, ...] | None = None
    group: int = -1


@dataclass(frozen=True)
class Edge:
    """A link in both directions between the nodes numbered `a` and `b`; `rate` is in bytes per second, if known."""

    a: int
    b: int
    kind: str = "link"
    rate: float | None = None


@dataclass(frozen=True)
class Graph:
    """A machine as nodes and edges.

    Attributes:
        machine: its name.
        nodes: endpoints first.
        edges: without duplicates.
        sides: of the grid of coordinates; empty without one.
        ring: numbers of the nodes around a ring bus; empty without one.
        groups: names of the groups that `Node.group` counts, such as `node 3`.
        around: the sides of the whole grid, if squares of it are drawn as one.
        stands_for: names of nodes of the machine that another node stands for, with its number.
    """

    machine: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    sides: tuple[int, ...] = ()
    ring: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()
    around: tuple[int, ...] = ()
    stands_for: dict[str, int] = field(default_factory=dict)

    @functools.cached_property
    def number(self) -> dict[str, int]:
        """Name -> number of the node that has it, or stands for it."""
        return self.stands_for | {node.name: number for number, node in enumerate(self.nodes)}

    @functools.cached_property
    def _at(self) -> dict[tuple[int, ...], int]:
        return {node.at: number for number, node in enumerate(self.nodes) if node.at is not None}

    @functools.cached_property
    def near(self) -> list[list[int]]:
        """The neighbours of every node."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for edge in self.edges:
            found[edge.a].append(edge.b)
            found[edge.b].append(edge.a)
        return found

    @functools.cached_property
    def endpoints(self) -> list[int]:
        """Numbers of the nodes that run ranks, or stand for some that do."""
        return [number for number, node in enumerate(self.nodes) if node.ranks]

    def place(self, link: str) -> tuple[int, int] | None:
        """The numbers of the nodes from and to which a link of the simulator leads, equal for a port; None without."""
        return self._ends(link) or self._port(link)

    def _ends(self, link: str) -> tuple[int, int] | None:
        number = self.number
        first, arrow, second = link.partition(" -> ")
        if arrow and first in number:
            second = second.removesuffix(" turn") if second not in number else second
            return (number[first], number[second]) if second in number else None
        if match := _RING.fullmatch(link):
            a, b = number.get(match[1]), number.get(match[2])
            return None if a is None or b is None else (a, b)
        if match := _NOC.fullmatch(link):
            return self._on_grid(int(match[1]), int(match[2]), match[3])
        return None

    def _on_grid(self, x: int, y: int, way: str) -> tuple[int, int] | None:
        here = self._place_at(x, y)
        if here is None or way not in _WAYS:
            return None if here is None else (here, here)
        columns, rows = self.around or self.sides
        there = self._place_at((x + _WAYS[way][0]) % columns, (y + _WAYS[way][1]) % rows)
        return None if there is None else (here, there)

    def _place_at(self, x: int, y: int) -> int | None:
        return self.stands_for.get(f"({x},{y})", self._at.get((x, y)))

    def _port(self, link: str) -> tuple[int, int] | None:
        """The longest name that the words of the link begin or end with."""
        words = link.split(" ")
        parts = [words[:end] for end in range(len(words), 0, -1)] + [words[at:] for at in range(1, len(words))]
        for part in parts:
            if (node := self.number.get(" ".join(part))) is not None:
                return node, node
        return None


def links(machine: _native.Machine) -> list[str]:
    """The names of all links of a machine, from the smallest simulation that has some."""
    if machine.ranks < 2:
        return []
    schedule = _native.Schedule.pattern("ping_pong", 2, 8)
    return ask(machine, schedule, How(links=True)).links.name


def graph(machine: _native.Machine) -> Graph:
    """All nodes and edges of a machine."""
    wires = machine.edges()
    names = [] if wires is not None else links(machine)
    joined = _ring_names(names) if wires is None else [*wires["a"], *wires["b"]]
    sides = _sides(machine)
    nodes = _endpoints(machine.endpoints(), sides if wires is not None else ())
    known = {node.name for node in nodes}
    nodes += [Node(name, "switch") for name in dict.fromkeys(joined) if name not in known]
    if wires is None and machine.grid:
        nodes += _free(machine.grid, nodes)
    groups = _groups(machine, nodes)
    numbers = {name: number for number, name in enumerate(groups)}
    nodes = [_grouped(node, numbers) for node in nodes]
    bare = Graph(machine.name, tuple(nodes), (), sides=sides, groups=tuple(groups))
    edges = _edges(bare, names) if wires is None else _wired(bare, wires)
    return replace(bare, edges=tuple(dict.fromkeys(edges)), ring=tuple(bare.number[name] for name in _ring(names)))


def _wired(bare: Graph, wires: _native._Edges) -> list[Edge]:
    """The edges that a machine file lists."""
    rows = zip(wires["class"], wires["a"], wires["b"], wires["bytes_per_s"], strict=True)
    return [Edge(bare.number[a], bare.number[b], kind, float(rate)) for kind, a, b, rate in rows]


def _edges(bare: Graph, names: Iterable[str]) -> list[Edge]:
    """The edges that names of links tell of."""
    return [Edge(min(ends), max(ends)) for ends in map(bare.place, names) if ends and ends[0] != ends[1]]


def _sides(machine: _native.Machine) -> tuple[int, ...]:
    """Of the grid on which endpoints, or the places of a network on a chip, have coordinates."""
    if machine.grid and any(end["x"] is not None for end in machine.endpoints()):
        return machine.grid
    return tuple(machine.rank_grid or ())


def _endpoints(ends: Iterable[_native._Endpoint], sides: tuple[int, ...]) -> list[Node]:
    nodes: list[Node] = []
    ranks = 0
    for end in ends:
        at = (end["x"], end["y"]) if end["x"] is not None and end["y"] is not None else None
        if end["kind"] == "rank":
            nodes.append(Node(end["name"], "endpoint", ranks, 1, at or _from_rank(ranks, sides)))
            ranks += 1
        else:
            nodes.append(Node(end["name"], "memory", at=at))
    return nodes


def _from_rank(rank: int, sides: tuple[int, ...]) -> tuple[int, ...] | None:
    """The coordinates of a rank, of which the first counts fastest."""
    at = []
    for side in sides:
        at.append(rank % side)
        rank //= side
    return tuple(at) or None


def _free(sides: tuple[int, int], nodes: Sequence[Node]) -> list[Node]:
    """The places of a grid that neither a rank nor a memory has, where a network passes nevertheless."""
    taken = {node.at for node in nodes}
    free = ((x, y) for y in range(sides[1]) for x in range(sides[0]) if (x, y) not in taken)
    return [Node(f"({x},{y})", "switch", at=(x, y)) for x, y in free]


def _groups(machine: _native.Machine, nodes: Sequence[Node]) -> list[str]:
    """The parts of the outermost level whose names begin those of their nodes: `node 0`, `node 1`, ..."""
    for name, count in machine.levels()[:-1]:
        if count > 1:
            found = [f"{name} {number}" for number in range(count)]
            named = all(node.name.startswith(f"{name} ") for node in nodes if node.kind == "endpoint")
            return found if named else []
    return []


def _grouped(node: Node, groups: Mapping[str, int]) -> Node:
    words = node.name.split(" ")
    name = " ".join(words[:2])
    if len(words) < 3 or name not in groups:
        return node
    return replace(node, group=groups[name])


def _ring_names(names: Iterable[str]) -> list[str]:
    """All stops of ring buses."""
    return [name for match in map(_RING.fullmatch, names) if match for name in match.groups()]


def _ring(names: Iterable[str]) -> list[str]:
    """The stops of the first ring bus, in order."""
    found = [match[1] for match in map(_RING.fullmatch, names) if match and match[0].startswith("ring 0 ")]
    return list(dict.fromkeys(found))
