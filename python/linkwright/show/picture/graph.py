"""What a described machine consists of, as far as it can be drawn: nodes, edges between them, coordinates, groups.

All of it comes from the network of the machine's fabric, which also tells where each link of a simulation is: it leads
from one node to another, is a port of one, or is at no node. Such a link is listed and not drawn.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from linkwright import _native


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
        links: name of a link of a simulation -> nodes from and to which it leads, equal for a port.
        stands_for: names of nodes of the machine that another node stands for, with its number.
    """

    machine: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    sides: tuple[int, ...] = ()
    ring: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()
    links: dict[str, tuple[int, int]] = field(default_factory=dict)
    stands_for: dict[str, int] = field(default_factory=dict)

    @functools.cached_property
    def number(self) -> dict[str, int]:
        """Name -> number of the node that has it, or stands for it."""
        return self.stands_for | {node.name: number for number, node in enumerate(self.nodes)}

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


def graph(machine: _native.Machine) -> Graph:
    """All nodes and edges of a machine; none while its size is open."""
    network = machine.network()
    if network is None:
        return Graph(machine.name, (), ())
    columns, edges, links = network["nodes"], network["edges"], network["links"]
    places = [None if at is None else tuple(at) for at in columns["at"]]
    nodes = [
        Node(name, "endpoint", number, 1, at, group) if kind == "rank" else Node(name, kind, at=at, group=group)
        for number, (name, kind, at, group) in enumerate(
            zip(columns["name"], columns["kind"], places, columns["group"], strict=True)
        )
    ]
    rates = [None if rate is None else float(rate) for rate in edges["bytes_per_s"]]
    rows = dict.fromkeys(map(Edge, edges["a"], edges["b"], edges["class"], rates))
    return Graph(
        machine.name,
        tuple(nodes),
        tuple(rows),
        sides=tuple(network["sides"]),
        ring=tuple(network["ring"]),
        groups=tuple(network["groups"]),
        links={name: (a, b) for name, a, b in zip(*links.values(), strict=True) if a >= 0},
    )
