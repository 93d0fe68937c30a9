"""Shapes of networks between nodes: which switches there are, and which links join them.

    switch           all ports on one
    fat_tree         ports of a node on one leaf, leaves on a spine
    rail_fat_tree    port i of the nodes of a unit on leaf i of the unit, leaves on a spine
    dragonfly        ports of a node on one leaf, leaves of a group on the group, groups each with each

A spine or a group, as a node of the graph, stands for all switches above the leaves or all cables among them, and the
link to it for all that lead there. So messages meet at the ports and where the network narrows, never because two were
hashed to one cable; adaptive routing comes near to that. Dragonfly and Dragonfly+ are the same in this view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .edges import runs


@dataclass(frozen=True)
class Ports:
    """The network ports of all nodes, node by node in the order of rails."""

    of: Sequence[Sequence[str]]
    rails: int

    @property
    def count(self) -> int:
        """How many a node has."""
        return len(self.of[0])


@dataclass
class Wires:
    """What a network adds to a graph: switches, edges by class, and rates of links in units of a port."""

    switches: list[str] = field(default_factory=list)
    edges: dict[str, list[str]] = field(default_factory=dict)
    width: dict[str, float] = field(default_factory=lambda: {"port": 1.0})

    def join(self, kind: str, names: Sequence[str], other: str) -> None:
        """A link of a class from each of `names` to `other`."""
        self.edges.setdefault(kind, []).extend(f"{run} - {other}" for run in runs(names))

    def mesh(self, kind: str, names: Sequence[str]) -> None:
        """A link between every two of `names`, which are numbered without a gap."""
        if len(names) > 1:
            (run,) = runs(names)
            self.edges.setdefault(kind, []).append(f"{run} x {run}")


Numbers = Mapping[str, float]
# Classes of links of a network.
LINKS = {
    "port": "from a port of a node to its switch",
    "trunk": "between switches of a tree, or of a group",
    "global": "between groups",
}


@dataclass(frozen=True)
class Topology:
    """A shape, and the parameters that it takes from the network's file."""

    summary: str
    parameters: tuple[str, ...]
    build: Callable[[Ports, Numbers], Wires]


def _blocks(count: int, size: float) -> Iterator[range]:
    step = max(1, int(size))
    yield from (range(first, min(first + step, count)) for first in range(0, count, step))


def _switch(ports: Ports, numbers: Numbers) -> Wires:
    wires = Wires(["switch"])
    for names in ports.of:
        wires.join("port", names, "switch")
    return wires


def _fat_tree(ports: Ports, numbers: Numbers) -> Wires:
    wires = Wires()
    for leaf, nodes in enumerate(_blocks(len(ports.of), numbers["nodes_per_leaf"])):
        wires.switches.append(f"leaf {leaf}")
        for node in nodes:
            wires.join("port", ports.of[node], f"leaf {leaf}")
    return _with_spine(wires, numbers["nodes_per_leaf"] * ports.count / numbers["taper"])


def _rail_fat_tree(ports: Ports, numbers: Numbers) -> Wires:
    wires = Wires()
    for unit, nodes in enumerate(_blocks(len(ports.of), numbers["nodes_per_leaf"])):
        leaves = [f"leaf {unit * ports.rails + rail}" for rail in range(ports.rails)]
        wires.switches += leaves
        for node in nodes:
            for rail, leaf in enumerate(leaves):
                wires.join("port", ports.of[node][rail :: ports.rails], leaf)
    return _with_spine(wires, numbers["nodes_per_leaf"] * (ports.count / ports.rails) / numbers["taper"])


def _with_spine(wires: Wires, width: float) -> Wires:
    """The leaves under a spine, if there are several."""
    if len(wires.switches) > 1:
        wires.join("trunk", wires.switches, "spine")
        wires.switches.append("spine")
        wires.width["trunk"] = width
    return wires


def _order(count: int, numbers: Numbers) -> list[int]:
    """Nodes in the order in which they fill groups; with `spread`, runs of so many are dealt out to all groups."""
    groups = math.ceil(count / (numbers["nodes_per_leaf"] * numbers["group_leaves"]))
    run = int(numbers.get("spread", 0)) or count
    return sorted(range(count), key=lambda node: (node // run % groups, node))


def _dragonfly(ports: Ports, numbers: Numbers) -> Wires:
    wires = Wires()
    leaves: list[str] = []
    order = _order(len(ports.of), numbers)
    for leaf, places in enumerate(_blocks(len(order), numbers["nodes_per_leaf"])):
        nodes = [order[place] for place in places]
        leaves.append(f"leaf {leaf}")
        for node in nodes:
            wires.join("port", ports.of[node], leaves[leaf])
    groups: list[str] = []
    for group, under in enumerate(_blocks(len(leaves), numbers["group_leaves"])):
        groups.append(f"group {group}")
        wires.join("trunk", [leaves[leaf] for leaf in under], groups[group])
    wires.mesh("global", groups)
    wires.switches = leaves + groups
    width = numbers["nodes_per_leaf"] * ports.count / numbers["taper"]
    wires.width |= {"trunk": width, "global": numbers["group_links"]}
    return wires


REGISTRY: dict[str, Topology] = {
    "switch": Topology("all ports on one switch", (), _switch),
    "fat_tree": Topology("the ports of a node on one leaf", ("taper", "nodes_per_leaf"), _fat_tree),
    "rail_fat_tree": Topology("each rail of a unit on its leaf", ("taper", "nodes_per_leaf"), _rail_fat_tree),
    "dragonfly": Topology(
        "groups of leaves, each group with each", ("taper", "nodes_per_leaf", "group_leaves", "group_links"), _dragonfly
    ),
}
