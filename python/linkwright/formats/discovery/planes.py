"""Switches that do the same stand as one, so that messages spread over them.

A fat tree has many equal ways up, and real networks spread messages over them by adaptive routing or hashing. A route
of the fabric `flow` is one way, so all messages would meet at the first spine. Instead, switches of one level above the
same switch become one plane, whose links are as wide as those of all of them together. This describes the ideal: no two
messages collide on a thin link while others are free. A cable that is missing, or slower, narrows the plane.

    leaf 0   leaf 1             leaf 0   leaf 1
     |  x    x  |                   \\\\     //          each link twice as wide
     | /      \\ |       becomes     spine plane
    spine 0  spine 1

The lowest level are switches with endpoints. A few endpoints on a spine, such as computers that manage the network,
make it no leaf: its switches have more of them than it has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
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
    near: dict[str, list[str]] = defaultdict(list)
    for a, b in bundles:
        near[a].append(b)
        near[b].append(a)
    level = _levels(list(endpoints), switches, near)
    plane = _planes(switches, near, level, kinds or {})
    together: Bundles = defaultdict(Counter)
    for (a, b), links in bundles.items():
        ends = plane.get(a, a), plane.get(b, b)
        if ends[0] != ends[1]:
            together[ends if ends in together or ends[::-1] not in together else ends[::-1]].update(links)
    return plane, dict(together)


def _planes(
    switches: list[str], near: Mapping[str, list[str]], level: Mapping[str, int], kinds: Mapping[str, str]
) -> dict[str, str]:
    """The plane of each switch: those of one level and kind that are joined, over any steps, by nodes below."""
    plane = {switch: switch for switch in switches}
    order = {switch: i for i, switch in enumerate(switches)}

    def first(node: str) -> str:
        while plane.get(node, node) != node:
            plane[node] = node = plane[plane[node]]
        return node

    above: dict[tuple[str, str | None], str] = {}  # one switch of a kind above each endpoint or plane
    for node in sorted(level, key=lambda node: level[node]):
        for upper in near[node]:
            if level.get(upper) == level[node] + 1:
                other = above.setdefault((first(node), kinds.get(upper)), upper)
                one, other = sorted((first(upper), first(other)), key=order.__getitem__)
                plane[other] = one
    return {switch: first(switch) for switch in switches}


def _levels(endpoints: Iterable[str], switches: list[str], near: Mapping[str, list[str]]) -> dict[str, int]:
    """0 for endpoints; for switches, steps to the nearest leaf, which is 1."""
    known = set(endpoints)
    own = {switch: sum(other in known for other in near[switch]) for switch in switches}

    def is_leaf(switch: str) -> bool:
        others = [own[other] > own[switch] for other in near[switch] if other not in known]
        return own[switch] > 0 and sum(others) * 2 <= len(others)

    waiting = [switch for switch in switches if is_leaf(switch)]
    level = dict.fromkeys(endpoints, 0) | dict.fromkeys(waiting, 1)
    for switch in waiting:  # grows while it is walked
        for other in near[switch]:
            if other not in known and other not in level:
                level[other] = level[switch] + 1
                waiting.append(other)
    return level
