"""Which schedules carry an allreduce: the library's plan, a registered algorithm, or the best of all.

no name                      the plan of the machine's library for training; `ring` without one, or with a path
ring, swing_bandwidth, ...   one algorithm on the path asked for
nccl-1.3.4, nccl-2.3.5       a plan of the machine's library, which chooses the path
best                         the fastest of all that work on the path; plans of the library too, unless a path is named
hierarchical                 not here: one node and one column of devices tell the whole (hierarchical.py)
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright import _native
from linkwright.advise.predict.training.workload import BYTES_PER_NUMBER
from linkwright.ask import schedules
from linkwright.ask.answer import How
from linkwright.base.errors import ScheduleError, ShapeError, UsageError
from linkwright.libraries import library
from linkwright.libraries.questions import collective_question, planned
from linkwright.session.suite.expand import algorithms_of

BEST, USUAL = "best", "ring"


def recipes(
    machine: _native.Machine, ranks: int, size: int, algorithm: str | None, path: str | None
) -> dict[str, tuple[_native.Schedule, How]]:
    """Ways of an allreduce of `size` bytes by their names, ready to be simulated; several for `best` only."""
    whole = -(-size // BYTES_PER_NUMBER) * BYTES_PER_NUMBER
    found = dict(_found(machine, ranks, whole, algorithm or _default(machine, path), path))
    if not found:
        raise UsageError(f"{machine.name}: no allreduce algorithm works on {ranks} devices; choose another --algorithm")
    return found


def _default(machine: _native.Machine, path: str | None) -> str:
    return USUAL if path else library.of_training(machine) or USUAL


def _found(
    machine: _native.Machine, ranks: int, size: int, algorithm: str, path: str | None
) -> Iterator[tuple[str, tuple[_native.Schedule, How]]]:
    best = algorithm == BEST
    own = [] if best and path else library.algorithms(machine, "allreduce")
    for name in algorithms_of("allreduce", ("all",) if best else (algorithm,), own):
        asked = collective_question("app", "allreduce", name, ranks, size, "f32", "sum", path=path)
        told = asked.algorithm_key
        try:
            if name in own:
                if path is not None:
                    raise UsageError(f"--algorithm {name} chooses its own path; omit --path {path}")
                plan = library.plan(machine, asked)
                asked, told = plan.question, f"{name} ({plan.words})"
            else:
                asked = planned(machine, None, asked)
            schedule = schedules.of(asked)
            if schedule.memories <= machine.memories:
                yield told, (schedules.lowered(schedule, machine, asked.path, asked.placement), schedules.how(asked))
        except (ScheduleError, ShapeError):
            if not best:
                raise
