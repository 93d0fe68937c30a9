"""Which schedules carry an allreduce: the library's plan, a registered algorithm, or the best of all.

no name                      the plan of the machine's library for training; `ring` without one, or with a path
ring, swing_bandwidth, ...   one algorithm on the path asked for
nccl-1.3.4, nccl-2.3.5       a plan of the machine's library, which chooses the path
best                         the fastest of all that work on the path; plans of the library too, unless a path is named
hierarchical                 not here: one node and one column of devices tell the whole (hierarchical.py)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwright import _native
from linkwright.advise.predict.training.workload import BYTES_PER_NUMBER
from linkwright.ask import schedules
from linkwright.ask.answer import How
from linkwright.ask.question import Collective
from linkwright.base.errors import ScheduleError, ShapeError, UsageError
from linkwright.libraries import library
from linkwright.libraries.questions import collective_question
from linkwright.session.suite.expand import algorithms_of

BEST, USUAL = "best", "ring"


@dataclass(frozen=True)
class Recipe:
    """One way to do an allreduce, ready to be simulated."""

    name: str
    schedule: _native.Schedule
    how: How


def recipes(machine: _native.Machine, ranks: int, size: int, algorithm: str | None, path: str | None) -> list[Recipe]:
    """Ways of an allreduce of `size` bytes; more than one for `best` only."""
    whole = -(-size // BYTES_PER_NUMBER) * BYTES_PER_NUMBER
    found = list(_found(machine, ranks, whole, algorithm or _default(machine, path), path))
    if not found:
        raise UsageError(f"{machine.name}: no allreduce algorithm works on {ranks} devices; choose another --algorithm")
    return found


def _default(machine: _native.Machine, path: str | None) -> str:
    return USUAL if path else library.of_training(machine) or USUAL


def _found(machine: _native.Machine, ranks: int, size: int, algorithm: str, path: str | None) -> Iterator[Recipe]:
    best = algorithm == BEST
    own = [] if best and path else library.algorithms(machine, "allreduce")
    for name in algorithms_of("allreduce", ("all",) if best else (algorithm,), own):
        try:
            made = (_planned if name in own else _registered)(machine, ranks, size, name, path)
        except (ScheduleError, ShapeError):
            if not best:
                raise
            continue
        if made.schedule.memories <= machine.memories:
            yield made


def _registered(machine: _native.Machine, ranks: int, size: int, name: str, path: str | None) -> Recipe:
    question = _asked(ranks, size, name)
    schedule = schedules.of(question)
    if schedule.memories <= machine.memories:
        schedule = schedules.lowered(schedule, machine, path)
    return Recipe(question.algorithm_key, schedule, How(path=path))


def _planned(machine: _native.Machine, ranks: int, size: int, name: str, path: str | None) -> Recipe:
    if path is not None:
        raise UsageError(f"--algorithm {name} chooses its path itself; leave --path {path} out")
    plan = library.plan(machine, _asked(ranks, size, name))
    schedule = schedules.lowered(plan.planned.schedule, machine, plan.question.path)
    return Recipe(f"{name} ({plan.words})", schedule, schedules.how(plan.question))


def _asked(ranks: int, size: int, name: str) -> Collective:
    return collective_question("app", "allreduce", name, ranks, size, "f32", "sum")
