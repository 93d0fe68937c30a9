"""Input from host memory to the devices, simulated on the host links.

Every device fetches its share of the batch from the nearest host memory, all at once, so links that several share are
shared here too. Nearest is what a small message says, and so is the path: the fastest that connects the two.
A machine whose file has no memories says nothing of its input; the forecast then says that.
"""

from __future__ import annotations

import math

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright.base.errors import SimError

_SMALL_BYTES = 64


class Staging:
    """Host links of one machine for `ranks` devices."""

    def __init__(self, machine: _native.Machine, ranks: int):
        self._machine, self._ranks = machine, ranks
        self._found: tuple[str, list[int]] | None = self._nearest() if machine.memories else None
        self._known: dict[int, tuple[float, dict[str, float]]] = {}

    @property
    def described(self) -> bool:
        """Whether the machine describes how input arrives."""
        return self._found is not None

    def time_ns(self, bytes_each: int) -> tuple[float, dict[str, float]]:
        """Time until every device has its share, and where the time goes."""
        if self._found is None or bytes_each == 0:
            return 0.0, {}
        if bytes_each not in self._known:
            path, homes = self._found
            pairs = list(enumerate(homes))
            self._known[bytes_each] = self._simulated(pairs, bytes_each, path)
        return self._known[bytes_each]

    def _nearest(self) -> tuple[str, list[int]] | None:
        """The path to host memory and the memory of each device."""
        found = []
        for path in self._machine.paths:
            times = [
                [self._small_ns(rank, memory, path) for memory in range(self._machine.memories)]
                for rank in range(self._ranks)
            ]
            found.append((sum(map(min, times)), path, [each.index(min(each)) for each in times]))
        time_ns, path, homes = min(found, key=lambda one: one[0])
        return (path, homes) if time_ns < math.inf else None

    def _small_ns(self, rank: int, memory: int, path: str) -> float:
        """Time of a small message; infinite if the path does not connect the two."""
        try:
            return self._simulated([(rank, memory)], _SMALL_BYTES, path)[0]
        except SimError:
            return math.inf

    def _simulated(self, pairs: list[tuple[int, int]], size: int, path: str) -> tuple[float, dict[str, float]]:
        ranks, memories = self._ranks, self._machine.memories
        builder = _native.Builder("pattern", ranks, size, element_bytes=1)
        builder.buffer("output")
        for memory in range(memories):
            builder.buffer(f"batch{memory}", only_at=builder.memory())
        builder.step()
        for rank, memory in pairs:
            builder.put(ranks + memory, rank, f"batch{memory}", 0, into="output", get=True)
        schedule = builder.finish()
        answer = ask(self._machine, schedule, How(path=path))
        time_ns = answer.time.ns
        return time_ns, {cause: share * time_ns for cause, share in answer.critical.items()}
