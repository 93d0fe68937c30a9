"""From one condition to its time: the machine of so many nodes, the schedule of the tag, and what the code adds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from linkwright import _native, registry
from linkwright.errors import LinkwrightError
from linkwright.machines import Variant, compose, load, writer
from linkwright.studies.numbers import changed, values

from . import tags, trees
from .tags import Refusal, Way

WIDTH = 4  # bytes of an element: every tag ends in int32
FILES = {"fugaku": "fugaku", "leonardo": "leonardo-mpi", "lumi": "lumi-mpi"}
# Jobs on Leonardo of more nodes than this lie spread over cells, 16 nodes in each; smaller ones in one cell.
# Chosen after the times of a ring's step at 64 and at 128 nodes were seen.
ONE_CELL = 64
SPREAD = "hdr-hosts,nodes_per_leaf=16,group_leaves=1,spread=2"


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
        return (math.prod(self.sides) if self.sides else int(self.nodes)) * self.tasks_per_node


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
        path = _path(at, way, numbers)
        ports = _parallel(at, way)
        machine = changed(machine, _software(at, way, path, numbers, ports))
        try:
            time = _makespan_us(at, way, machine, path, ports)
        except LinkwrightError as error:
            return Refusal(str(error).splitlines()[0])
        return time + _memory_us(at, way, path, numbers)


def _described(at: Condition) -> _native.Machine:
    """The machine of the file, of as many nodes."""
    if at.machine == "fugaku":
        return load(FILES[at.machine]).with_grid(*units(at.sides))
    spread = SPREAD if at.machine == "leonardo" and int(at.nodes) > ONE_CELL else None
    variant = Variant(nodes=int(at.nodes), fabric=spread)
    if at.tasks_per_node == 1:
        return load(FILES[at.machine], variant)
    path = registry.machine_path(FILES[at.machine])
    node = compose.document(path)
    node["endpoints"]["count"] = node["level"][0]["count"] = at.tasks_per_node
    return _native.Machine.parse(compose.finished(writer.text(node), path, variant), path.name)


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


def _software(at: Condition, way: Way, path: str, numbers: dict[str, float], parts: int) -> dict[str, str]:
    """Numbers of the path as one of the copies on several ports sees them: one thread serves them all."""
    found = {}
    if way.ports > 1 and not way.whole:
        found[f"path.{path}.receive"] = f"{numbers[f'path.{path}.receive'] * way.ports:.6g}"
        for rate in ("combine_rate", "copy_rate"):
            found[f"path.{path}.{rate}"] = f"{numbers[f'path.{path}.{rate}'] / parts:.6g}"
    if way.blocks:
        found[f"path.{path}.per_run"] = f"{numbers['facts.per_block'] * way.ports:.6g}"
    if at.machine == "leonardo":
        found["fabric.transport.net_mpi.rate"] = f"{_rate(at, way, path, numbers):.6g}"
        if at.tasks_per_node > 1 and found["fabric.transport.net_mpi.rate"] == f"{numbers['fabric.transport.net_mpi.rate']:.6g}":
            found["fabric.links.port.bandwidth"] = f"{numbers['fabric.links.port.bandwidth'] / 2:.6g}"
    if at.machine != "fugaku" and way.algorithm == "linear" and at.collective in ("alltoall", "gather", "scatter"):
        starts = ("fabric.transport.net_mpi.start", "fabric.transport.net_mpi.long_start")
        found |= dict.fromkeys(starts, f"{numbers[f'path.{path}.receive']:.6g}")  # all are under way at once
    if way.algorithm.startswith("tree/"):
        share = trees.overlap(way.algorithm.removeprefix("tree/"), at.ranks)
        for start in ("start", "long_start"):
            key = f"fabric.transport.net_mpi.{start}"
            found[key] = f"{numbers[key] * share:.6g}"
    if way.segment:
        key = "fabric.transport.utofu.rate"
        each_ns = way.segment / numbers[key] + numbers["facts.per_segment"]  # GB/s are bytes per ns
        found[key] = f"{way.segment / each_ns:.6g}"
    return found


def _rate(at: Condition, way: Way, path: str, numbers: dict[str, float]) -> float:
    """GB/s of messages on Leonardo: copied at both ends if short, else from one port or from both.

    Both ports carry messages of trees, which go one way, blocks that are sent on as they came, and several messages
    under way at once. Long vectors that partners exchange get the rate of one.
    """
    one_port = numbers["fabric.transport.net_mpi.rate"]
    longest = at.size_bytes / at.ranks if way.algorithm in ONE_BLOCK else at.size_bytes
    if longest < numbers["fabric.transport.net_mpi.long"] * 2**10 and not way.blocks:
        return 1 / (1 / one_port + 2 / numbers[f"path.{path}.copy_rate"])
    passed_on = way.algorithm in ONE_BLOCK and longest >= numbers["facts.striped_from"] * 2**20
    one_way = at.collective in ("broadcast", "reduce") and way.algorithm in TREES
    one_way |= at.collective in ("gather", "scatter") and way.algorithm == "linear"
    return numbers["facts.both_ports"] if passed_on or one_way or way.blocks else one_port


# Algorithms whose messages are one block, and those whose messages go one way.
ONE_BLOCK = {"ring", "neighbor_exchange", "pairwise", "scatter/binomial"}
TREES = {"binomial", "binary_tree", "bine", "linear", "tree/binomial", "tree/bine", "tree/knomial"}


def _makespan_us(at: Condition, way: Way, machine: _native.Machine, path: str, parts: int) -> float:
    grid = at.sides if at.sides and (way.puts or way.torus) else None
    elements = max(1, at.size_bytes // WIDTH // parts)
    options = {"path": path} | ({"placement": places(at.sides)} if at.sides else {})
    makespan_ps = 0
    for name in filter(None, (way.algorithm, way.then)):
        if name.startswith("tree/"):
            schedule = trees.at_once(name.removeprefix("tree/"), at.ranks, elements)
        else:
            key = name if "/" in name else f"{at.collective}/{name}"
            schedule = _native.Schedule.build(key, at.ranks, elements, element_bytes=WIDTH, grid=grid)
        makespan_ps += _native.simulate(_native.lower(schedule, machine, path), machine, options)["makespan_ps"]
    return makespan_ps / 1e6


def _memory_us(at: Condition, way: Way, path: str, numbers: dict[str, float]) -> float:
    """Copies of the vector besides those of the schedule, and pages that are new to the kernel."""
    time = way.copies * at.size_bytes / numbers[f"path.{path}.copy_rate"] / 1e3
    if "facts.fresh_from" in numbers and at.size_bytes >= numbers["facts.fresh_from"] * 2**20 and not way.puts:
        time += way.fresh * at.size_bytes / numbers["facts.fresh_rate"] / 1e3
    if "facts.threads" in numbers and way.puts:
        time += _forks(at, way, numbers["facts.threaded"] * 2**10) * numbers["facts.threads"]
    return time


def _forks(at: Condition, way: Way, least: float) -> int:
    """In how many steps the authors' library combines by all threads: those of blocks of at least so many bytes."""
    if at.collective not in ("allreduce", "reduce", "reduce_scatter"):
        return 0
    steps = math.ceil(math.log2(at.ranks))
    part = at.size_bytes / _parallel(at, way)
    if way.algorithm in WHOLE or not way.divided:
        return steps if part >= least else 0
    return max(0, min(steps, math.floor(math.log2(part / least)))) if part >= least else 0
