"""From one condition to its time: the machine of so many nodes, the schedule of the tag, and what the code adds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from linkwright import _native
from linkwright.errors import LinkwrightError
from linkwright.machines import Variant, load
from linkwright.studies.numbers import changed, values

from . import tags
from .tags import Refusal, Way

WIDTH = 4  # bytes of an element: every tag ends in int32
FILES = {"fugaku": "fugaku", "leonardo": "leonardo-mpi", "lumi": "lumi-mpi"}
# Jobs on Leonardo of more nodes than this lie spread over cells, 16 nodes in each; smaller ones in one cell.
# Chosen after the times of a ring's step at 64 and at 128 nodes were seen.
ONE_CELL = 64
SPREAD = "hdr-hosts,nodes_per_leaf=16,group_leaves=1,spread=1"


@dataclass(frozen=True)
class Condition:
    """One line of the file, its time apart."""

    machine: str
    nodes: str  # a number, or sides such as 4x4x4
    tasks_per_node: int
    collective: str  # as here
    tag: str
    size_bytes: int  # of the larger buffer of a rank

    @property
    def sides(self) -> tuple[int, ...]:
        """Of the torus; empty on other machines."""
        return tuple(map(int, self.nodes.split("x"))) if "x" in self.nodes else ()

    @property
    def ranks(self) -> int:
        """How many take part."""
        return math.prod(self.sides) if self.sides else int(self.nodes)


@dataclass
class Model:
    """Machines, with other values of their numbers if asked, and the times that were simulated."""

    # Machine of the file -> key of a number -> its text.
    other: dict[str, dict[str, str]] = field(default_factory=dict)
    _machines: dict[tuple, _native.Machine] = field(default_factory=dict)
    _times: dict[tuple, float | Refusal] = field(default_factory=dict)

    def time_us(self, at: Condition) -> float | Refusal:
        """The time of one collective, or why there is none."""
        if at.machine not in FILES:
            return Refusal(f"machine `{at.machine}`; one of {', '.join(FILES)}")
        if at.tasks_per_node != 1:
            return Refusal("several ranks on a node, which share its memory and port; the machines have one")
        if at.size_bytes < WIDTH * (1 if at.collective in ("allreduce", "broadcast", "reduce") else at.ranks):
            return Refusal("fewer elements than ranks")
        way = tags.way(at.machine, at.collective, at.tag)
        if isinstance(way, Refusal):
            return way
        if not way.chosen:
            return self._way_us(at, way)
        ways = [self._way_us(at, one) for one in tags.own(at.machine, at.collective)]
        times = [time for time in ways if isinstance(time, float)]
        return min(times) if times else Refusal("no algorithm of the library is known here")

    def machine(self, at: Condition) -> _native.Machine:
        """The machine of `at`, with the other values."""
        key = (at.machine, at.nodes)
        if key not in self._machines:
            machine = _described(at)
            known = values(machine)  # jobs in one group have no links between groups
            other = {name: text for name, text in self.other.get(at.machine, {}).items() if name in known}
            self._machines[key] = changed(machine, other)
        return self._machines[key]

    def _way_us(self, at: Condition, way: Way) -> float | Refusal:
        key = (at.machine, at.nodes, at.collective, at.size_bytes, way)
        if key not in self._times:
            self._times[key] = self._simulated(at, way)
        return self._times[key]

    def _simulated(self, at: Condition, way: Way) -> float | Refusal:
        machine = self.machine(at)
        numbers = values(machine)
        path = _path(at, way, numbers)
        ports = _parallel(at, way)
        machine = changed(machine, _software(way, path, numbers, ports))
        try:
            time = _makespan_us(at, way, machine, path, ports)
        except LinkwrightError as error:
            return Refusal(str(error).splitlines()[0])
        return time + _memory_us(at, way, path, numbers)


def _described(at: Condition) -> _native.Machine:
    """The machine of the file, of as many nodes."""
    if at.machine == "fugaku":
        return load(FILES[at.machine]).with_grid(*units(at.sides))
    spread = SPREAD if at.machine == "leonardo" and at.ranks > ONE_CELL else None
    return load(FILES[at.machine], Variant(nodes=at.ranks, fabric=spread))


def places(sides: tuple[int, ...]) -> list[int]:
    """The endpoint of each rank: along each axis of the job, a ring that goes to and fro inside the units it passes.

    Place i is in unit i // 2, at its near side first if the unit is even and at its far side first if it is odd, so
    that neighbours on the ring are neighbours on the torus.
    """
    whole = units(sides)
    strides = [math.prod(whole[:axis]) for axis in range(len(whole))]
    found = []
    for rank in range(math.prod(sides)):
        at, endpoint = rank, 0
        for axis, side in enumerate(sides):
            at, place = divmod(at, side)
            unit = place // 2
            inside = (place + unit) % 2
            endpoint += unit * strides[axis] + inside * strides[axis + len(sides)]
        found.append(endpoint)
    return found


def units(sides: tuple[int, ...]) -> tuple[int, ...]:
    """The six sides of a job of three: half of each along X, Y, Z, and two along a, b, c."""
    return (*(side // 2 for side in sides), 2, 2, 2)


def _path(at: Condition, way: Way, numbers: dict[str, float]) -> str:
    """What software carries the messages."""
    if way.puts:
        return "both" if way.twice else "whole" if way.algorithm in WHOLE else "blocks"
    cached = numbers.get("facts.cached", math.inf) * 2**20
    return "mpi" if at.size_bytes <= cached else "memory"


WHOLE = {"swing_latency", "recursive_doubling_latency"}


def _parallel(at: Condition, way: Way) -> int:
    """How many parts of the vector move at once: ports, but an axis of two nodes has one link."""
    if not way.divided or way.whole:
        return 1
    links = sum(2 if side > 2 else 1 for side in at.sides) or 1
    return min(way.ports, links)


def _software(way: Way, path: str, numbers: dict[str, float], parts: int) -> dict[str, str]:
    """Numbers of the path as one of the copies on several ports sees them: one thread serves them all."""
    found = {}
    if way.ports > 1 and not way.whole:
        found[f"path.{path}.receive"] = f"{numbers[f'path.{path}.receive'] * way.ports:.6g}"
        for rate in ("combine_rate", "copy_rate"):
            found[f"path.{path}.{rate}"] = f"{numbers[f'path.{path}.{rate}'] / parts:.6g}"
    if way.blocks:
        found[f"path.{path}.per_run"] = f"{numbers['facts.per_block'] * way.ports:.6g}"
    if way.segment:
        key = "fabric.transport.utofu.rate"
        each_ns = way.segment / numbers[key] + numbers["facts.per_segment"]  # GB/s are bytes per ns
        found[key] = f"{way.segment / each_ns:.6g}"
    return found


def _makespan_us(at: Condition, way: Way, machine: _native.Machine, path: str, parts: int) -> float:
    key = way.algorithm if "/" in way.algorithm else f"{at.collective}/{way.algorithm}"
    grid = at.sides if at.sides and (way.puts or way.torus) else None
    elements = max(1, at.size_bytes // WIDTH // parts)
    schedule = _native.Schedule.build(key, at.ranks, elements, element_bytes=WIDTH, grid=grid)
    options = {"path": path} | ({"placement": places(at.sides)} if at.sides else {})
    return _native.simulate(_native.lower(schedule, machine, path), machine, options)["makespan_ps"] / 1e6


def _memory_us(at: Condition, way: Way, path: str, numbers: dict[str, float]) -> float:
    """Copies of the vector besides those of the schedule, and pages that are new to the kernel."""
    time = way.copies * at.size_bytes / numbers[f"path.{path}.copy_rate"] / 1e3
    if "facts.fresh_from" in numbers and at.size_bytes >= numbers["facts.fresh_from"] * 2**20 and not way.puts:
        time += way.fresh * at.size_bytes / numbers["facts.fresh_rate"] / 1e3
    return time
