"""From one condition to its time: the machine of so many nodes, the schedule of the tag, and what the code adds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright.base import registry
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import ZERO
from linkwright.machines import Shelf, Variant, load
from linkwright_evidence.numbers import changed, values

from . import software, tags, trees
from .condition import Condition
from .tags import Refusal, Way

WIDTH = 4  # bytes of an element: every tag ends in int32
FILES = {"fugaku": "fugaku", "leonardo": "leonardo-mpi", "lumi": "lumi-mpi"}
MOST_RANKS = 1 << 14
# Jobs on Leonardo of more nodes than this lie spread over cells, 16 nodes in each; smaller ones in one cell.
# Chosen after the times of a ring's step at 64 and at 128 nodes were seen.
ONE_CELL = 64
# Larger jobs are limited by the torus, and not by interfaces, of which each would be a message.
STRIPED = 64
SPREAD = "hdr-hosts,nodes_per_leaf=16,group_leaves=1,spread=2"


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
        if at.collective not in tags.COLLECTIVES.values():
            return Refusal(f"unknown collective `{at.collective}`; one of {', '.join(tags.COLLECTIVES)}")
        if not 2 <= at.ranks <= MOST_RANKS:
            return Refusal(f"{at.ranks} ranks; 2 to {MOST_RANKS:,} are possible")
        if at.sides and at.tasks_per_node != 1:
            return Refusal("several ranks on a node of Fugaku, which share its interfaces in a way that is not known")
        if at.size_bytes < WIDTH * (1 if at.collective in ("allreduce", "broadcast", "reduce") else at.ranks):
            return Refusal("fewer elements than ranks")
        way = tags.way(at.machine, at.collective, at.tag)
        if isinstance(way, Refusal):
            return way
        if not way.chosen:
            return self._way_us(at, way)
        ways = [self._way_us(at, one) for one in tags.own(at.machine, at.collective, at.ranks, at.size_bytes)]
        times = [time for time in ways if isinstance(time, float)]
        return min(times) if times else Refusal("no algorithm of the library is known here")

    def machine(self, at: Condition) -> _native.Machine:
        """The machine of `at`, with the other values."""
        key = (at.machine, at.nodes, at.tasks_per_node)
        if key not in self._machines:
            machine = _described(at)
            known = values(machine)  # jobs in one group have no links between groups
            other = {name: text for name, text in self.other.get(at.machine, {}).items() if name in known}
            self._machines[key] = changed(machine, other)
        return self._machines[key]

    def _way_us(self, at: Condition, way: Way) -> float | Refusal:
        key = (at.machine, at.nodes, at.tasks_per_node, at.collective, at.size_bytes, way)
        if key not in self._times:
            self._times[key] = self._simulated(at, way)
        return self._times[key]

    def _simulated(self, at: Condition, way: Way) -> float | Refusal:
        machine = self.machine(at)
        numbers = values(machine)
        path = software.path(at, way, numbers)
        ports = software.parallel(at, way)
        machine = changed(machine, software.changes(at, way, path, numbers))
        try:
            time = _makespan_us(at, way, machine, path, ports)
        except LinkwrightError as error:
            return Refusal(str(error).splitlines()[0])
        return time + software.memory_us(at, way, path, numbers)


def _described(at: Condition) -> _native.Machine:
    """The machine of the file, of as many nodes."""
    if at.machine == "fugaku":
        return load(FILES[at.machine]).with_grid(*units(at.sides))
    spread = SPREAD if at.machine == "leonardo" and int(at.nodes) > ONE_CELL else None
    variant = Variant(nodes=int(at.nodes), fabric=spread)
    if at.tasks_per_node == 1:
        return load(FILES[at.machine], variant)
    tasks = str(at.tasks_per_node)
    node = load(FILES[at.machine]).with_values([("endpoints.count", tasks), ("level[0].count", tasks)])
    return node.composed(Shelf(registry.machine_path(FILES[at.machine])), variant).machine()


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


def _makespan_us(at: Condition, way: Way, machine: _native.Machine, path: str, parts: int) -> float:
    grid = at.sides if at.sides and (way.puts or way.torus) else None
    elements = max(1, at.size_bytes // WIDTH // parts)
    how = How(path=path, placement=places(at.sides) if at.sides else None)
    makespan = ZERO
    for name in filter(None, (way.algorithm, way.then)):
        if name.startswith("tree/"):
            schedule = trees.at_once(name.removeprefix("tree/"), at.ranks, elements)
        else:
            key = name if "/" in name else f"{at.collective}/{name}"
            schedule = _native.Schedule.build(key, at.ranks, elements, element_bytes=WIDTH, grid=grid)
        if way.interfaces > 1 and at.ranks <= STRIPED:
            schedule = schedule.stripe(way.interfaces)
        makespan += ask(machine, schedule, how).time
    return makespan.us
