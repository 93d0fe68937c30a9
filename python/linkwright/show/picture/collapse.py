"""Large machines, with several nodes as one: a picture of more than some hundred boxes shows none of them.

    many nodes, in groups    what is inside a group and runs no rank is one with the frame of the group
    many endpoints           those of one part of a level are one node; on a grid, those of a square
    many such groups         a run of them is one node

Links between nodes that became one become ports of it; links that then join the same two nodes are one edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from linkwright import _native

from .graph import Edge, Graph, Node

MOST_NODES = 700
MOST_ENDPOINTS = 1600
MOST_GROUPS = 128  # where these stand for all endpoints


def collapsed(whole: Graph, machine: _native.Machine) -> Graph:
    """The graph, or a smaller one that stands for it."""
    crowded = len(whole.endpoints) > MOST_ENDPOINTS
    if whole.groups and (crowded or len(whole.nodes) > MOST_NODES):
        return _merged(whole, [_group(whole, node, crowded) for node in whole.nodes])
    if crowded and whole.sides:
        step = math.ceil((len(whole.endpoints) / MOST_ENDPOINTS) ** (1 / len(whole.sides)))
        sides = tuple(-(-side // step) for side in whole.sides)
        return replace(_merged(whole, [_square(node, step) for node in whole.nodes]), sides=sides)
    if crowded:
        return _merged(whole, _parts(whole, machine.levels()))
    return whole


def _group(whole: Graph, node: Node, crowded: bool) -> Node:
    if node.group < 0 or (node.ranks and not crowded):
        return node
    if not crowded:
        return Node(whole.groups[node.group], "group", group=node.group)
    size = math.ceil(len(whole.groups) / MOST_GROUPS)
    first = node.group // size * size
    last = min(first + size, len(whole.groups)) - 1
    return Node(whole.groups[first] + (f"..{last}" if last > first else ""), "group")


def _square(node: Node, step: int) -> Node:
    if node.at is None:
        return node
    at = tuple(place // step for place in node.at)
    spans = ",".join(f"{place * step}..{place * step + step - 1}" for place in at)
    return Node(f"({spans})", "group", at=at)


def _parts(whole: Graph, levels: Sequence[tuple[str, int]]) -> list[Node]:
    """The smallest parts of a level of which there are few enough, or runs of as many endpoints as it takes."""
    ranks = sum(node.ranks for node in whole.nodes)
    size = 1
    for (name, _), (_, inner) in list(pairwise(levels))[::-1]:
        size *= inner
        if ranks / size <= MOST_ENDPOINTS:
            return [_part(node, size, f"{name} {{0}}") for node in whole.nodes]
    size = math.ceil(ranks / MOST_ENDPOINTS)
    return [_part(node, size, f"{levels[-1][0]} {{1}}..{{2}}") for node in whole.nodes]


def _part(node: Node, size: int, name: str) -> Node:
    if node.rank is None:
        return node
    part = node.rank // size
    return Node(name.format(part, part * size, part * size + size - 1), "group")


def _merged(whole: Graph, into: Sequence[Node]) -> Graph:
    """Every node of the whole as the one of `into` that stands for it."""
    numbers: dict[str, int] = {}
    nodes: list[Node] = []
    for node, target in zip(whole.nodes, into, strict=True):
        number = numbers.setdefault(target.name, len(nodes))
        if number == len(nodes):
            nodes.append(target)
        if target is not node:
            first = node.rank if nodes[number].rank is None else nodes[number].rank
            nodes[number] = replace(nodes[number], rank=first, ranks=nodes[number].ranks + node.ranks)
    to = [numbers[target.name] for target in into]
    stands_for = {node.name: to[number] for number, node in enumerate(whole.nodes)}
    links = {name: (to[a], to[b]) for name, (a, b) in whole.links.items()}
    edges = tuple(_joined(whole.edges, to))
    return replace(whole, nodes=tuple(nodes), edges=edges, ring=(), links=links, stands_for=stands_for)


def _joined(edges: Sequence[Edge], to: Sequence[int]) -> list[Edge]:
    """The edges between different nodes, those between the same two as one that has all their rates."""
    found: dict[tuple[int, int], Edge] = {}
    for edge in edges:
        a, b = sorted((to[edge.a], to[edge.b]))
        if a != b:
            before = found.get((a, b))
            rate = (before.rate or 0) + edge.rate if before and edge.rate is not None else edge.rate
            found[a, b] = Edge(a, b, edge.kind, rate)
    return list(found.values())
