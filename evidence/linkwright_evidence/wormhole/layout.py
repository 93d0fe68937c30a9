"""Where the 64 ranks sit, how far their partners are, and which links a step shares.

Ranks form a logical 8 x 8 grid; place(rank) = (X[lx], Y[ly]) on the 10 x 12 torus. An exchange between
partners uses opposite networks; the network is the schedule's hint: plus = south-east, minus = north-west.
Everything here is counted from the operations of a schedule, so it is the same object that is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

SIDE = 8
IDEAL = (SIDE, SIDE)


class Layout:
    """Coordinates of the ranks on a torus of `size` = (columns, rows)."""

    def __init__(self, places: list[tuple[int, int]], size: tuple[int, int]) -> None:
        self.places = places
        self.size = size

    @classmethod
    def of(cls, machine) -> Layout:
        """The layout of a described machine; its torus is the range of all its endpoints' places."""
        ends = machine.endpoints()
        ranks = [(e["x"], e["y"]) for e in ends if e["kind"] == "rank"]
        return cls(ranks, machine.grid)

    @classmethod
    def ideal(cls) -> Layout:
        """Eight by eight without hidden places."""
        return cls([(r % SIDE, r // SIDE) for r in range(SIDE * SIDE)], IDEAL)

    def path(self, source: int, target: int, plus: bool) -> Iterator[tuple]:
        """Directed links of a one-way route: x first towards plus, y first towards minus."""
        (x, y), (tx, ty) = self.places[source], self.places[target]
        columns, rows = self.size
        way = 1 if plus else -1
        for axis in ("x", "y") if plus else ("y", "x"):
            while (x != tx) if axis == "x" else (y != ty):
                yield (plus, axis, x, y)
                x, y = ((x + way) % columns, y) if axis == "x" else (x, (y + way) % rows)

    def hops(self, source: int, target: int, plus: bool) -> int:
        """Links of the route."""
        return sum(1 for _ in self.path(source, target, plus))


def exchanges(schedule) -> list[list[tuple[int, int, bool, int]]]:
    """(source, target, plus, bytes) of every put, step by step; notices left out."""
    table = schedule.operations()
    steps: dict[int, list] = {}
    for kind, source, target, step, size, hint in zip(
        table["kind"], table["from"], table["to"], table["step"], table["bytes"], table["hint"], strict=True
    ):
        if kind == "put":
            steps.setdefault(int(step), []).append((int(source), int(target), hint[0] == "+", int(size)))
    return [steps[step] for step in sorted(steps)]


def hop_table(schedule, layout: Layout) -> np.ndarray:
    """Hops of each rank's transfer, shape (steps, ranks)."""
    steps = exchanges(schedule)
    hops = np.zeros((len(steps), schedule.ranks), dtype=int)
    for s, step in enumerate(steps):
        for source, target, plus, _ in step:
            hops[s, source] = layout.hops(source, target, plus)
    return hops


def link_loads(schedule, layout: Layout) -> list[Counter]:
    """Transfers on every directed link, step by step."""
    loads = []
    for step in exchanges(schedule):
        load = Counter()
        for source, target, plus, _ in step:
            load.update(layout.path(source, target, plus))
        loads.append(load)
    return loads
