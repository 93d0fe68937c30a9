"""The order of the nodes of one rank: each after all that it waits for, otherwise as recorded.

Nodes become free to run at different times, but what a rank *issues* has one order: that of the recorded start times,
where there are any, then of the file, so far as dependencies allow. It decides which collective of one rank meets
which of another, and which of two computations goes first on one processor.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from linkwright.advise.predict.trace.nodes import Trace
from linkwright.base.units import counted

# Most nodes of a circle that a message lists.
MOST_SHOWN = 8


def settled(trace: Trace) -> tuple[list[list[int]], list[int]]:
    """For each node, by place in the file, the places of those it waits for; and all places in the order of issue.

    Data dependencies must be in the file and lead to an order. Control dependencies are what a recorder saw: they may
    be on nodes that converters leave out, such as the records of PyTorch's threads, and where they make a circle, none
    of them counts.
    """
    places = _places(trace)
    before = [[places[one] for one in node.waits_for] for node in trace.nodes]
    both, trace.absent = [], 0
    for node, own in zip(trace.nodes, before, strict=True):
        present = [places[one] for one in node.follows if one in places]
        trace.absent += len(node.follows) - len(present)
        both.append(list(dict.fromkeys([*own, *present])))
    order, stuck = _ordered(trace, both)
    if not stuck:
        return both, order
    trace.absent, trace.control_circle = 0, _circle(trace, both, stuck)
    order, stuck = _ordered(trace, before)
    if stuck:
        circle = _circle(trace, before, stuck)
        raise trace.wrong(None, f"nodes wait for each other in a cycle: {circle}; break it, or record the step again")
    return before, order


def _places(trace: Trace) -> dict[int, int]:
    """Id -> place in the file."""
    places: dict[int, int] = {}
    for place, node in enumerate(trace.nodes):
        if node.id in places:
            other = trace.nodes[places[node.id]]
            raise trace.wrong(node, f"another node has the same id: {other.shown}; give each node its own")
        places[node.id] = place
    for node in trace.nodes:
        for dependency in node.waits_for:
            if dependency not in places:
                raise trace.wrong(
                    node, f"it waits for node {dependency}, which the file lacks; add it, or record the whole step"
                )
    return places


def _ordered(trace: Trace, before: Sequence[Sequence[int]]) -> tuple[list[int], set[int]]:
    """All places in the order of issue, and those that no order serves."""
    left = [len(own) for own in before]
    after = followers(before)
    free = [(trace.nodes[place].start_us, place) for place, number in enumerate(left) if not number]
    heapq.heapify(free)
    found = []
    while free:
        _, place = heapq.heappop(free)
        found.append(place)
        for other in after[place]:
            left[other] -= 1
            if not left[other]:
                heapq.heappush(free, (trace.nodes[other].start_us, other))
    return found, {place for place, number in enumerate(left) if number}


def followers(before: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each node, those that wait for it."""
    after: list[list[int]] = [[] for _ in before]
    for place, own in enumerate(before):
        for other in own:
            after[other].append(place)
    return after


def _circle(trace: Trace, before: Sequence[Sequence[int]], stuck: set[int]) -> str:
    """One circle; every stuck node waits for a stuck one."""
    seen: dict[int, int] = {}
    place = min(stuck)
    while place not in seen:
        seen[place] = len(seen)
        place = next(other for other in before[place] if other in stuck)
    return told([trace.nodes[one].shown for one, number in seen.items() if number >= seen[place]])


def told(circle: Sequence[str]) -> str:
    """`a -> b -> a`, in which `->` reads `waits for`; of a long circle its first members."""
    listed = list(circle[:MOST_SHOWN])
    if len(circle) > MOST_SHOWN:
        listed.append(f"{counted(len(circle) - MOST_SHOWN, 'more node')}")
    return " -> ".join([*listed, circle[0]])
