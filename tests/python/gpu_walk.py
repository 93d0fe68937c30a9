"""An invented GPU that walks the instruction stream itself, with a time for everything it does.

Not the simulator's model: here SMs share the L2 as they come and go, every wait costs a look even where the flag is
long there, and what a combination costs is what it moves. The fit is held against it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from linkwright.executors.cuda import stream as streams
from linkwright.executors.cuda.stream import CODES, Stream


@dataclass(frozen=True)
class Costs:
    """Round numbers in ns and bytes per ns; of no machine."""

    look: float = 200.0  # a load of a flag
    flight: float = 250.0  # from the raise until another SM can see it
    piece: float = 350.0  # a copy's barriers and its first byte
    raised: float = 150.0
    sm_rate: float = 60.0
    l2_rate: float = 400.0


def time_ns(schedule, dtype: str, op: str | None, costs: Costs) -> float:
    """Until the last rank has done."""
    stream = streams.encode(schedule, dtype, op)
    return _Shared([_walk(stream, rank, costs) for rank in range(stream.ranks)], costs).run()


def _walk(stream: Stream, rank: int, costs: Costs) -> Iterator[tuple]:
    """What a rank does next: ("look", counter, value), ("take", ns), ("move", bytes) or ("raise", counter, value)."""
    ends = stream.instructions
    for i in range(int(stream.rank_first[rank]), int(stream.rank_first[rank + 1])):
        first = ends[i - 1] if i else (0, 0, 0, 0)
        for counter, ordinal, _ in stream.waits[int(first[1]) : int(ends[i, 1])].tolist():
            yield "look", counter, ordinal
        for *_, nbytes in stream.pieces[int(first[2]) : int(ends[i, 2])].tolist():
            yield "take", costs.piece
            yield "move", nbytes * (3 if ends[i, 0] == CODES["combine"] else 2)
        for counter, ordinal, _ in stream.raises[int(first[3]) : int(ends[i, 3])].tolist():
            yield "take", costs.raised
            yield "raise", counter, None if ends[i, 0] == CODES["arrive"] else ordinal


class _Shared:
    """All ranks at one L2, which those that move data share evenly."""

    def __init__(self, ranks: list[Iterator[tuple]], costs: Costs):
        self.ranks, self.costs = ranks, costs
        self.now = 0.0
        self.seen: dict[int, list[tuple[int, float]]] = {}  # by counter: values, and when others can see them
        self.moving: dict[int, float] = {}  # rank -> bytes left
        self.looking: dict[int, tuple[int, int]] = {}
        self.due: list[tuple[float, int]] = []

    def run(self) -> float:
        for rank in range(len(self.ranks)):
            self.go_on(rank)
        while self.moving or self.due:
            share = min(self.costs.sm_rate, self.costs.l2_rate / max(1, len(self.moving)))
            least = min(self.moving.values(), default=float("inf"))
            until = min(self.now + least / share, self.due[0][0] if self.due else float("inf"))
            for rank in self.moving:
                self.moving[rank] -= (until - self.now) * share
            self.now = until
            for rank in [rank for rank, left in self.moving.items() if left <= 1e-6]:
                del self.moving[rank]
                self.go_on(rank)
            while self.due and self.due[0][0] <= self.now:
                self.go_on(heapq.heappop(self.due)[1])
        assert not self.looking, "nobody can go on"
        return self.now

    def go_on(self, rank: int) -> None:
        for kind, what, *more in self.ranks[rank]:
            if kind == "raise":
                self.raised(what, *more)
                continue
            if kind == "move" and not what:
                continue
            if kind == "take":
                heapq.heappush(self.due, (self.now + what, rank))
            elif kind == "move":
                self.moving[rank] = what
            else:
                self.looking[rank] = (what, *more)
                self.look(rank)
            return

    def raised(self, counter: int, value: int | None) -> None:
        values = self.seen.setdefault(counter, [])
        values.append((len(values) + 1 if value is None else value, self.now + self.costs.flight))
        for rank in [rank for rank, wanted in self.looking.items() if wanted[0] == counter]:
            self.look(rank)

    def look(self, rank: int) -> None:
        """Where the value is under way or there, the rank sees it after a look."""
        counter, wanted = self.looking[rank]
        times = [at for value, at in self.seen.get(counter, ()) if value >= wanted]
        if times or not wanted:
            del self.looking[rank]
            heapq.heappush(self.due, (max([self.now, *times[:1]]) + self.costs.look, rank))
