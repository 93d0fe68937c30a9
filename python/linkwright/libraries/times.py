"""Predict a condition: simulate its library's plan for each size on its machine.

    setting -> machine file -> --nodes, --fabric -> machine
            -> library, version, forced algorithm -> plan of a collective and size -> simulated time

A process that drives g GPUs starts them one after another, so a call takes at least g host launches of
`facts.launch_each` each. An MPI library is predicted as in `mpi.py`; another library without a
model (oneCCL) as a plain ring.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from linkwright import _native, machines
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.ask.question import Collective
from linkwright.libraries import library, mpi
from linkwright.libraries.questions import collective_question
from linkwright.machines import Variant

from .settings import Setup

DTYPE = "f32"
ELEMENT_BYTES = 4
MACHINES = 64  # size of the cache
# Numbers of a machine that a fit or an ablation changes: key -> value as in a machine file.
Changes = Mapping[str, str]
NOTHING: Changes = {}


@dataclass(frozen=True)
class Predicted:
    """One predicted time, and the library's choice."""

    time_us: float
    choice: str


class Model:
    """The described machines, with some of their numbers changed; caches what it has simulated."""

    def __init__(self, changes: Changes = NOTHING) -> None:
        self._changes = changes
        self._machines: dict[tuple[str, int, str | None], _native.Machine] = {}
        self._cells: dict[tuple[Setup, int], Predicted] = {}

    def time(self, setup: Setup, size_bytes: int) -> Predicted:
        """Return the time of a collective, size as nccl-tests counts it; raise if the library cannot do it there."""
        key = (setup, size_bytes)
        if key not in self._cells:
            self._cells[key] = predicted(self.machine(setup), setup, size_bytes)
        return self._cells[key]

    def machine(self, setup: Setup) -> _native.Machine:
        """The composed machine."""
        key = (setup.machine, setup.nodes, setup.fabric)
        if key not in self._machines:
            found, known = _composed(*key)
            for name, value in self._changes.items():
                found = found.with_value(name, value) if name in known else found
            self._machines[key] = found
        return self._machines[key]


@functools.lru_cache(MACHINES)
def _composed(machine: str, nodes: int, fabric: str | None) -> tuple[_native.Machine, frozenset[str]]:
    """Return a machine as described, and the keys of its numbers; a fit changes it hundreds of times."""
    found = machines.load(machine, Variant(nodes, fabric) if nodes > 1 else Variant())
    return found, frozenset(row["key"] for row in found.numbers())


def predicted(machine: _native.Machine, setup: Setup, size_bytes: int) -> Predicted:
    """Return the time of a collective on the machine of a setup; raise if the library cannot do it there."""
    if machine.library() is None:
        found = _plain(machine, setup, size_bytes)
    else:
        found = (_neighbours if setup.collective == "sendrecv" else _planned)(machine, setup, size_bytes)
    floor = setup.gpus_per_node * launch_each_us(machine) if setup.one_process else 0.0
    return found if found.time_us > floor or not setup.one_process else Predicted(floor, f"{found.choice}; launches")


def launch_each_us(machine: _native.Machine) -> float:
    """Return the time that a process needs to start a collective on one of its GPUs."""
    rows = {row["key"]: float(row["value"]) for row in machine.numbers() if row["key"] == "facts.launch_each"}
    return rows.get("facts.launch_each", 0.0)


def _planned(machine: _native.Machine, setup: Setup, size_bytes: int) -> Predicted:
    plan = library.plan(machine, question(machine, setup, size_bytes))
    return Predicted(schedules.time(plan.question, machine).us, plan.words)


def question(machine: _native.Machine, setup: Setup, size_bytes: int) -> Collective:
    """Return what simulates a collective on a machine with a library; ranks are on the first GPUs of each node."""
    asked = collective_question(
        "", setup.collective, setup.algorithm, setup.ranks, _whole(setup, size_bytes), DTYPE, "sum"
    )
    return replace(asked, placement=places(machine, setup))


def places(machine: _native.Machine, setup: Setup) -> tuple[int, ...] | None:
    """Return the endpoint of each rank: the first GPUs of each node; None if all GPUs take part."""
    per_node = machine.ranks // setup.nodes
    if per_node == setup.gpus_per_node:
        return None
    return tuple(node * per_node + gpu for node in range(setup.nodes) for gpu in range(setup.gpus_per_node))


def _whole(setup: Setup, size_bytes: int) -> int:
    """Round the size up to whole elements, at least one for each rank if the collective divides them among ranks."""
    least = setup.ranks if setup.collective in ("allgather", "reduce_scatter", "alltoall", "gather", "scatter") else 1
    return max(least, -(-size_bytes // ELEMENT_BYTES)) * ELEMENT_BYTES


def _neighbours(machine: _native.Machine, setup: Setup, size_bytes: int) -> Predicted:
    """Predict a test of sends and receives: every rank sends to the next and receives from the previous one."""
    plan = library.plan(machine, question(machine, replace(setup, collective="alltoall"), size_bytes))
    schedule = _native.Schedule.pattern("pattern/neighbour", setup.ranks, size_bytes, count=1)
    # An alltoall ends with local copies; this pattern has none.
    how = schedules.how(plan.question, launch_ps=(machine.library() or {})["launch_ps"])
    choice = plan.planned.choice
    return Predicted(ask(machine, schedule, how).time.us, choice.words if choice else plan.words)


# Algorithms in place of a library that is not modelled.
PLAIN = {"allreduce": "ring", "allgather": "ring", "reduce_scatter": "ring", "broadcast": "ring", "reduce": "ring"}


def _plain(machine: _native.Machine, setup: Setup, size_bytes: int) -> Predicted:
    """Predict the choice of an MPI library; elsewhere a ring in rank order, or all messages at once."""
    size = _whole(setup, size_bytes)
    if mpi.serves(machine, setup.collective):
        healthy = _composed(setup.machine, setup.nodes, setup.fabric)[0]
        name = mpi.chosen(healthy, setup.collective, setup.ranks, size, ELEMENT_BYTES)
        made = mpi.schedule(setup.collective, name, setup.ranks, size, ELEMENT_BYTES)
        return Predicted(ask(machine, made).time.us, f"{name}, the fastest that MPI libraries have")
    if setup.collective == "sendrecv":
        schedule = _native.Schedule.pattern("pattern/neighbour", setup.ranks, size, count=1)
    else:
        key = f"{setup.collective}/{PLAIN.get(setup.collective, 'linear')}"
        schedule = _native.Schedule.build(key, setup.ranks, size // ELEMENT_BYTES, element_bytes=ELEMENT_BYTES)
    how = How(placement=places(machine, setup))
    return Predicted(
        ask(machine, schedule, how).time.us, "a plain ring" if setup.collective in PLAIN else "all at once"
    )
