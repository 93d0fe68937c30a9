"""Runs experiments of the report on a machine: a schedule, a path, and who sits on which tile.

An experiment is a list of supersteps, each a verified schedule that is simulated on its own, because the
machine never overlaps supersteps: their times add up. Nothing here knows a formula for any of them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright.base.errors import UsageError
from linkwright.machines import load
from linkwright_evidence.numbers import changed

TILES = 1216
WORD = 4
# Positions on the ladder that stand for the placements of the report, with the root at position 0.
PLACES = {"on-chip": (0, 0), "on-board": (0, 1), "direct-link": (0, 2), "indirect-link": (0, 3)}


@dataclass(frozen=True)
class Superstep:
    """One schedule and where it runs."""

    schedule: tuple  # key and arguments of `build`
    path: str = "words"
    machine: str = "server"
    tiles: tuple[int, ...] | None = None
    shuffle: int | None = None


MACHINES = {"server": "ipu-c2-server", "chip": "ipu-c2-chip"}


class Bench:
    """The machines under test: the server, and one chip of it; every superstep is simulated once."""

    def __init__(self, machines: dict, seed: int = 1, draws: int = 100, without: frozenset = frozenset()) -> None:
        self.machines = machines
        # Rules of the study that an ablation takes away.
        self.without = without
        self.seed = seed
        self.draws = draws
        self._times: dict[Superstep, float] = {}
        self.numbers = {row["key"]: row for row in machines["server"].numbers()}

    @classmethod
    def shipped(cls, seed: int = 1, draws: int = 100) -> Bench:
        """The machines that come with linkwright."""
        return cls({key: load(name) for key, name in MACHINES.items()}, seed, draws)

    def changed(self, values: dict[str, str]) -> Bench:
        """The same machines with other values for some keys; a chip has not all of them."""
        machines = {}
        for name, machine in self.machines.items():
            known = values if name == "server" else {row["key"] for row in machine.numbers()}
            machines[name] = changed(machine, {key: value for key, value in values.items() if key in known})
        bench = Bench(machines, self.seed, self.draws, self.without)
        bench._times = {
            step: time for step, time in self._times.items() if not any(_concerns(key, step) for key in values)
        }
        return bench

    def dropping(self, rule: str) -> Bench:
        """The same machines under a study without one of its rules."""
        bench = Bench(self.machines, self.seed, self.draws, self.without | {rule})
        bench._times = self._times
        return bench

    def restoring(self, rule: str) -> Bench:
        """The same machines under a study that has one of its rules back."""
        bench = Bench(self.machines, self.seed, self.draws, self.without - {rule})
        bench._times = self._times
        return bench

    def time(self, *steps: Superstep) -> float:
        """Microseconds of the supersteps one after another."""
        return sum(self._time(step) for step in steps)

    def _time(self, step: Superstep) -> float:
        if step not in self._times:
            how = How(path=step.path, operations_per_s=self.clock_hz())
            if step.tiles is not None:
                how = how.but(placement=list(step.tiles))
            if step.shuffle is not None:
                how = how.but(placement=f"shuffle:{step.shuffle}")
            self._times[step] = ask(self.machines[step.machine], build(*step.schedule), how).time.us
        return self._times[step]

    def clock_hz(self) -> float:
        """A tile folds one operand per cycle."""
        return self.number("machine.clock") * 1e9

    def number(self, key: str) -> float:
        """A number of the server as its file gives it."""
        return float(self.numbers[key]["value"])

    def nanoseconds(self, key: str) -> float:
        """A time of the server, which its file gives in ns, us or cycles."""
        scale = {"ns": 1.0, "us": 1e3, "cycle": 1e9 / self.clock_hz()}[self.numbers[key]["unit"]]
        return self.number(key) * scale


def _concerns(key: str, step: Superstep) -> bool:
    """Whether the time of a superstep may depend on a key of the machine file."""
    part, _, rest = key.partition(".")
    if part == "path":
        return rest.split(".")[0] == step.path
    if key.startswith("fabric.host"):
        return step.path == "host"
    if key.startswith("fabric.multicast") or key == "fabric.ladder.own_chip_last":
        return step.schedule[0] == "broadcast/multicast"
    if key.startswith("fabric.ladder"):
        return step.machine == "server" and step.path != "host" and step.schedule[0] != "fold"
    return part == "fabric" and step.schedule[0] not in ("fold", "copy", "host")


@functools.cache
def build(kind: str, *arguments) -> _native.Schedule:
    """The schedule of a kind: an algorithm of the registry, or one of the patterns below."""
    if "/" in kind:
        ranks, elements, element_bytes, grid = arguments
        return _native.Schedule.build(kind, ranks, elements, element_bytes=element_bytes, grid=grid)
    return {"flows": _flows, "copy": _copy, "fold": _fold, "host": _host}[kind](*arguments)


def _flows(ranks: int, pairs: tuple[tuple[int, int], ...], size: int):
    """One message of `size` bytes for each (source, target), no two to one target."""
    builder = _native.Builder("pattern", ranks, size, element_bytes=1)
    builder.buffer("input")
    builder.buffer("output")
    builder.step()
    for source, target in pairs:
        builder.put(source, target, "input", 0, into="output")
    return builder.finish()


def _copy(size: int):
    """A tile copies its own memory."""
    builder = _native.Builder("pattern", 1, size, element_bytes=1)
    builder.buffer("input")
    builder.buffer("output")
    builder.step()
    builder.local(0, "input", 0, "output", 0)
    return builder.finish()


def _fold(operands: int):
    """A tile folds its operands."""
    builder = _native.Builder("pattern", 1, 1)
    builder.buffer("input")
    builder.step()
    builder.compute(0, operands)
    return builder.finish()


def _host(ranks: int, size: int):
    """Every tile gets its block from the memory of the host."""
    builder = _native.Builder("pattern", ranks, ranks * size, element_bytes=1)
    memory = builder.memory()
    builder.buffer("host", ranks, only_at=memory)
    builder.buffer("output", 1, parts=ranks)
    builder.step()
    for rank in range(ranks):
        builder.put(memory, rank, "host", rank, into="output", at=0, get=True)
    return builder.finish()


def tile(chip: int, index: int) -> int:
    """Tile `index` of the chip at position `chip`, as the machine numbers it."""
    if not 0 <= index < TILES:
        raise UsageError(f"there is no tile {index} on a chip; tiles are 0..{TILES - 1}")
    return chip * TILES + index


@functools.cache
def chip_tiles(*chips: int) -> tuple[int, ...]:
    """All tiles of the chips at these positions."""
    return tuple(chip * TILES + index for chip in chips for index in range(TILES))
