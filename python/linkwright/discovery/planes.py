"""Switches that do the same stand as one, so that messages spread over them.

A fat tree has many equal ways up, and real networks spread messages over them by adaptive routing or hashing. A route
of the fabric `flow` is one way, so all messages would meet at the first spine. Instead, switches that are joined with
the same nodes below become one plane, whose links are as wide as those of all of them together. This describes the
ideal: no two messages collide on a thin link while others are free.

    leaf 0   leaf 1             leaf 0   leaf 1
     |  \\   /  |                   \\\\     //          each link twice as wide
     |   \\ /   |                    \\\\   //
     |   / \\   |       becomes     spine plane
    spine 0  spine 1
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping

Pair = tuple[str, str]
# How many links of each kind join two nodes.
Bundles = dict[Pair, Counter]


def merged(
    endpoints: Iterable[str], switches: list[str], bundles: Bundles, kinds: Mapping[str, str] | None = None
) -> tuple[dict[str, str], Bundles]:
    """Each switch with the name of its plane, and the links between planes; a plane is called by its first switch.

    Only switches of one of the `kinds`, where there are several, become one.
    """
    level = _levels(endpoints, bundles)
    plane = {switch: switch for switch in switches}
    below = defaultdict(set)
    for a, b in bundles:
        for upper, lower in ((a, b), (b, a)):
            if level.get(upper, 0) == level.get(lower, 0) + 1:
                below[upper].add(lower)
    first: dict[tuple, str] = {}
    for switch in sorted((switch for switch in switches if below[switch]), key=lambda switch: level[switch]):
        joined = frozenset(plane.get(lower, lower) for lower in below[switch])
        plane[switch] = first.setdefault((joined, kinds[switch] if kinds else ""), switch)
    together: Bundles = defaultdict(Counter)
    for (a, b), links in bundles.items():
        ends = plane.get(a, a), plane.get(b, b)
        if ends[0] != ends[1]:
            together[ends if ends in together or ends[::-1] not in together else ends[::-1]].update(links)
    return plane, dict(together)


def _levels(endpoints: Iterable[str], bundles: Bundles) -> dict[str, int]:
    """Links from each node to the nearest endpoint."""
    near = defaultdict(list)
    for a, b in bundles:
        near[a].append(b)
        near[b].append(a)
    level = dict.fromkeys(endpoints, 0)
    waiting = deque(level)
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in level:
                level[other] = level[node] + 1
                waiting.append(other)
    return level
