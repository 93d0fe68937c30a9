"""What groups of ranks send in one step: the flows that an order of ranks is judged by.

    tensor, data    a ring allreduce of S bytes in each group of n: every rank sends 2 S (n - 1) / n to the next one
    pipeline        S bytes from each stage to the next, and as many back
    group           named ranks; a ring allreduce

Ranks are numbered as training frameworks number them: tensor fastest, then data, then pipeline.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkwright.base.errors import ShapeError

# Axes, the fastest first.
AXES = ("tensor", "data", "pipeline")
Flows = Mapping[tuple[int, int], int]  # (source, target) -> bytes


@dataclass(frozen=True)
class Axis:
    """One kind of parallelism: how many ranks a group of it has, and the bytes that it exchanges."""

    size: int
    size_bytes: int


@dataclass(frozen=True)
class Group:
    """Ranks that exchange something: in a ring, or along a chain."""

    kind: str
    ranks: tuple[int, ...]
    size_bytes: int

    def flows(self) -> Iterator[tuple[int, int, int]]:
        """(source, target, bytes) of each."""
        count = len(self.ranks)
        if self.kind == "pipeline":
            for a, b in itertools.pairwise(self.ranks):
                yield from ((a, b, self.size_bytes), (b, a, self.size_bytes))
        elif count > 1:
            moved = 2 * self.size_bytes * (count - 1) // count
            yield from ((a, b, moved) for a, b in zip(self.ranks, (*self.ranks[1:], self.ranks[0]), strict=True))


def groups_of(axes: Mapping[str, Axis]) -> list[Group]:
    """The groups of all axes, which number the ranks together."""
    sizes = [axes[name].size if name in axes else 1 for name in AXES]
    places = list(itertools.product(*(range(size) for size in reversed(sizes))))  # pipeline, data, tensor
    number = {place: rank for rank, place in enumerate(places)}
    found = []
    for at, name in enumerate(reversed(AXES)):
        if name not in axes:
            continue
        for place in places:
            if place[at] == 0:
                line = tuple(number[*place[:at], k, *place[at + 1 :]] for k in range(axes[name].size))
                found.append(Group(name, line, axes[name].size_bytes))
    return found


def flows_of(groups: Sequence[Group], ranks: int) -> dict[tuple[int, int], int]:
    """Bytes from rank to rank, over all groups."""
    found: dict[tuple[int, int], int] = {}
    for group in groups:
        for rank in group.ranks:
            if not 0 <= rank < ranks:
                raise ShapeError(f"group {','.join(map(str, group.ranks))}: there are ranks 0 to {ranks - 1}")
        if len(set(group.ranks)) < len(group.ranks):
            raise ShapeError(f"group {','.join(map(str, group.ranks))}: a rank occurs twice; name each once")
        for source, target, moved in group.flows():
            if moved:
                found[source, target] = found.get((source, target), 0) + moved
    return found


def nested_orders(axes: Mapping[str, Axis]) -> Iterator[list[int]]:
    """Endpoint of each rank for every nesting of the axes: that of the numbering first."""
    sizes = [axes[name].size if name in axes else 1 for name in AXES]
    places = list(itertools.product(*(range(size) for size in reversed(sizes))))
    for nesting in itertools.permutations(range(3)):  # slowest axis first
        order = []
        for place in places:
            at = 0
            for axis in nesting:
                at = at * sizes[2 - axis] + place[axis]
            order.append(at)
        yield order


def as_goal(flows: Flows, ranks: int) -> str:
    """The flows as a program of GOAL, all at once."""
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        sends = [f"send {moved}b to {b}" for (a, b), moved in flows.items() if a == rank]
        receives = [f"recv {moved}b from {a}" for (a, b), moved in flows.items() if b == rank]
        lines += [f"l{number}: {what}" for number, what in enumerate([*sends, *receives], 1)]
        lines.append("}")
    return "\n".join(lines) + "\n"
