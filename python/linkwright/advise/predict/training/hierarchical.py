"""An allreduce over many identical nodes, from one node and one column of devices.

`allreduce/hierarchical` over p devices in nodes of c works on c blocks: inside every node, then along each column of
devices across the nodes, then inside again. Where all nodes are alike and columns do not meet on links, every node and
every column does the same at the same time, so one of each tells the whole:

    time = reduce_scatter of S over c + handshake + allreduce of S / c over p / c + allgather of S over c

Each part is a registered schedule, verified and simulated where its ranks really sit. The handshake is what the whole
schedule has at that border: a device may not be written to before it says that its block is its own sum. That the
parts do not slow each other is not assumed but tried: in every round of every part, all devices of the machine send at
once, and a device must not take longer than when its node or column sends alone.

Source: see `linkwright describe allreduce/hierarchical`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.base.errors import UsageError
from linkwright.base.units import Time

NAME = "hierarchical"
WHOLE = "allreduce/hierarchical"
Partner = Callable[[int], int]
Round = tuple[str, Sequence[int], Partner]


@dataclass(frozen=True)
class Part:
    """A schedule over some devices of the machine."""

    key: str
    devices: Sequence[int]
    size: int
    grid: tuple[int, ...] | None = None

    def simulated(self, machine: _native.Machine, path: str | None) -> tuple[float, dict[str, float]]:
        """Time in ns until the last of them finishes, and by causes."""
        schedule = _native.Schedule.build(self.key, len(self.devices), self.size // 4, grid=self.grid)
        placement = list(self.devices)
        answer = ask(machine, schedule, How(path=path, placement=placement))
        time_ns = answer.time.ns
        return time_ns, {cause: share * time_ns for cause, share in answer.critical.items()}


@dataclass(frozen=True)
class Nodes:
    """The devices that take part, as whole nodes of a machine."""

    machine: _native.Machine
    columns: int
    rows: int
    path: str | None

    @classmethod
    def of(cls, machine: _native.Machine, ranks: int, path: str | None) -> Nodes:
        """The first `ranks` devices; nodes are the units above the innermost level of the machine."""
        levels = machine.levels()
        columns = levels[-1][1] if len(levels) > 1 else 0
        if not columns or ranks % columns or ranks > machine.ranks:
            raise UsageError(
                f"machine {machine.name}: {NAME} needs whole nodes, and its innermost level has {columns or 'no'} "
                f"devices of a node, not a part of {ranks}; use a multiple with --gpus, or --algorithm ring"
            )
        return cls(machine, columns, ranks // columns, path)

    @property
    def ranks(self) -> int:
        """All devices."""
        return self.columns * self.rows

    @property
    def node(self) -> range:
        """Devices of the first node."""
        return range(self.columns)

    @property
    def column(self) -> range:
        """Devices of the first column."""
        return range(0, self.ranks, self.columns)

    def parts(self, size: int) -> list[Part]:
        """What one node and then one column do; without the handshake."""
        block = size // self.columns
        inside = [Part(key, self.node, size) for key in ("reduce_scatter/ring", "allgather/ring")] * (self.columns > 1)
        across = [Part(WHOLE, self.column, block, (1, self.rows))] * (self.rows > 1)
        return [*inside[:1], *across, *inside[1:]]

    def simulated(self, size: int) -> tuple[float, dict[str, float]]:
        """Time in ns of an allreduce of `size` bytes, and by causes."""
        if self.meeting:
            raise UsageError(self.meeting)
        found = [part.simulated(self.machine, self.path) for part in self.parts(size)]
        causes = {cause: sum(each[cause] for _, each in found) for cause in found[0][1]} if found else {}
        if self.columns > 1 and self.rows > 1:
            causes["latency"] += self.handshake_ns
        return sum(time_ns for time_ns, _ in found) + self.handshake_ns, causes

    @cached_property
    def handshake_ns(self) -> float:
        """Time until every device of a column has heard from the first one that writes to it; 0 without two parts."""
        if self.columns == 1 or self.rows == 1:
            return 0.0
        _, column, partner = self._rounds()[1]
        return Time(max(self._round(column, partner, elements=0).values())).ns

    @cached_property
    def meeting(self) -> str | None:
        """Where devices of different nodes or columns slow each other; None if they do not."""
        for first, alone, partner in self._rounds():
            everyone = self._round(range(self.ranks), partner)
            few = self._round(alone, partner)
            if any(everyone[device] != time for device, time in few.items()):
                return (
                    f"machine {self.machine.name}: devices of different {first} share links, so the time of one "
                    f"is not that of all; use another --algorithm, or fewer --gpus"
                )
        return None

    def _rounds(self) -> list[Round]:
        """What is compared in every round, which device sends alone, and to which each sends; inside a node first."""
        c = self.columns
        found: list[Round] = []
        if c > 1:
            found.append(("nodes", self.node, lambda device: device - device % c + (device + 1) % c))
        if self.rows.bit_count() > 1:
            found.append(("columns", self.column, lambda device: (device + c) % self.ranks))
        elif self.rows > 1:
            distances = [c << step for step in range(self.rows.bit_length() - 1)]
            found += [("columns", self.column, lambda device, far=far: device ^ far) for far in distances]
        return found

    def _round(self, senders: Sequence[int], partner: Partner, elements: int = 1 << 20) -> dict[int, int]:
        """Time of each sender of a round of messages, in ps."""
        messages = [(device, partner(device), 4 * elements) for device in senders]
        schedule = schedules.at_once(self.ranks, messages)
        finish = ask(self.machine, schedule, How(path=self.path)).ranks.finish_ps
        return {device: int(finish[device]) for device in senders}
