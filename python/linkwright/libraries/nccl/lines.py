"""Times that are continued in a straight line from few simulations, because a whole one would be too long.

**Rings over many nodes.** A ring over equal nodes does the same in every node. With the same block per rank it takes as
much longer for each further node as for the one before:

    T(N) = T(n) + (N - n) / (n - m) (T(n) - T(m))        m, n: nodes of the short rings

The blocks of the short rings are those of the long one, so that of a vector of S bytes they carry S n / N. Left out:
nodes that are farther apart than the first n, such as in another group of the network.

**Alltoalls over many nodes.** Each further node adds as many messages to every port as the one before: the same line,
with the same block per pair.

**Pipelines of many slices**: trees, broadcasts, reduces. A pipeline of k slices over d stages takes (d - 1 + k) / k of
the time for which its slowest stage is busy, which is a straight line in 1 / k:

    T(K) = T(k) + (1/k - 1/K) / (2/k - 1/k) (T(k) - T(k/2))

Left out: what each slice takes to start, where that is not hidden behind the one before.

**Pipelines of many slices over many nodes.** Once full, a tree adds the same for each further slice, however many nodes
it has: its busiest port has two children and a parent. A few slices fill the tree of all N nodes, and two longer
pipelines over n nodes say what each further one adds, all with slices of the same bytes:

    T(N, K) = T(N, f) + (K - f) / (k - k/2) (T(n, k) - T(n, k/2))        f, k/2, k: slices

A continued time is never below what the links of the longer schedule need, the limit of the whole problem (cuts through
groups of nodes are in it), and S / c if all channels carry c of the vector between nodes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from linkwright import _native
from linkwright.base.units import PS_PER_S
from linkwright.libraries.nccl.choice import Choice
from linkwright.libraries.nccl.graphs import GIGA
from linkwright.libraries.nccl.hardware import Hardware
from linkwright.libraries.nccl.shapes import ROOTED_PIPELINES, Shape, slices

MOST_MESSAGES = 300_000  # of a ring that is simulated whole
MOST_SENDS = 60_000  # of an alltoall that is simulated whole
SHORT = (6, 12)  # nodes of the short rings
STEADY = 8  # nodes of the trees that say what a slice adds
FULL, FEW = 64, 2  # slices of such a tree, and those that fill the tree of all nodes


@dataclass(frozen=True)
class Line:
    """A schedule in place of a longer one: add `times` what `longer` takes longer than `shorter`."""

    own: _native.Schedule
    shorter: _native.Schedule
    times: float
    words: str
    least_ps: int = 0  # what the threads of all channels need for the vector
    longer: _native.Schedule | None = None  # `own` if None


def line(choice: Choice, hardware: Hardware, made: Shape, elements: int, element_bytes: int) -> Line | None:
    """Two short schedules for a long one; None of what is simulated whole."""
    collective = made.key.partition("/")[0]
    if collective == "alltoall":
        few = hardware.nodes <= SHORT[1] or made.ranks != hardware.ranks or made.ranks**2 <= MOST_SENDS
        return None if few else _nodes(hardware, made, elements, element_bytes, "alltoalls")
    if choice.algorithm == "ring" and collective not in ROOTED_PIPELINES:
        return _ring(hardware, made, elements, element_bytes)
    wanted = slices(choice, hardware, collective, elements * element_bytes)
    if wanted <= made.slices:
        return None
    # Of the vector, and not of what a port sends: an allreduce by a tree passes it once each way.
    least = elements * element_bytes / choice.across * PS_PER_S / GIGA if choice.across else 0.0
    over_many = made.grid is not None and made.slices < FULL and hardware.nodes > STEADY
    found = _filled(hardware, made, wanted, elements, element_bytes) if over_many else None
    return dataclasses.replace(found or _pipeline(made, wanted, elements, element_bytes), least_ps=round(least))


def _pipeline(made: Shape, wanted: int, elements: int, element_bytes: int) -> Line:
    few, more = made.slices // 2, made.slices
    shorter, longer = (dataclasses.replace(made, slices=cut).of(elements, element_bytes) for cut in (few, more))
    words = f"pipelines of {few} and {more} slices continued to {wanted}"
    return Line(longer, shorter, (1 / more - 1 / wanted) / (1 / few - 1 / more), words)


def _filled(hardware: Hardware, made: Shape, wanted: int, elements: int, element_bytes: int) -> Line:
    """A few slices over all nodes, and two longer pipelines over the first ones."""

    def part(of: Shape, cut: int) -> _native.Schedule:
        return dataclasses.replace(of, slices=cut).of(max(1, elements * cut // wanted), element_bytes)

    short = _short(made, hardware, STEADY)
    more = min(FULL, wanted)
    words = f"pipelines of {more // 2} and {more} slices over {STEADY} nodes continued to {wanted} over"
    times = (wanted - FEW) / (more - more // 2)
    longer = part(short, more)
    return Line(part(made, FEW), part(short, more // 2), times, f"{words} {hardware.nodes}", longer=longer)


def _ring(hardware: Hardware, made: Shape, elements: int, element_bytes: int) -> Line | None:
    if not made.rings or hardware.nodes <= SHORT[1] or _messages(made) <= MOST_MESSAGES:
        return None
    return _nodes(hardware, made, elements, element_bytes, "rings")


def _nodes(hardware: Hardware, made: Shape, elements: int, element_bytes: int, what: str) -> Line:
    """The same over fewer nodes, twice."""
    few, more = SHORT
    shorter, longer = (
        _short(made, hardware, nodes).of(max(1, elements * nodes // hardware.nodes), element_bytes) for nodes in SHORT
    )
    words = f"{what} of {few} and {more} nodes continued to {hardware.nodes}"
    return Line(longer, shorter, (hardware.nodes - more) / (more - few), words)


def _messages(made: Shape) -> int:
    rounds = 2 if made.key.startswith("allreduce") else 1
    return rounds * made.ranks**2 * len(made.rings or (0,)) * made.slices


def _short(made: Shape, hardware: Hardware, nodes: int) -> Shape:
    """The same over the first nodes."""
    ranks = nodes * hardware.gpus
    rings = made.rings and tuple(tuple(rank for rank in ring if rank < ranks) for ring in made.rings)
    grid = made.grid and (made.grid[0], nodes)
    return dataclasses.replace(made, ranks=ranks, rings=rings, grid=grid, root=made.root % hardware.gpus)
