"""A schedule on a described machine: what its time is spent on, what binds it, and which known algorithm is faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import Answer, ask
from linkwright.ask.question import Collective, Scheduled
from linkwright.base import units
from linkwright.base.errors import LinkwrightError, UnsuitedError
from linkwright.base.units import PS_PER_US
from linkwright.libraries import library, questions
from linkwright.machines import Variant
from linkwright.machines.variant import grid_of

from . import faster
from .faster import Faster
from .sensitivity import Effect, effects

SHOWN = 5
# What an answer simulates: each number of the machine, and each other algorithm. Larger schedules take minutes.
SIMULATIONS = 30
SECONDS_PER_OPERATION = 4e-6
MOST_OPERATIONS = 1 << 21
LEAST = 0.01  # share of the time, to be shown


@dataclass(frozen=True)
class Found:
    """What is said of a schedule.

    Attributes:
        name: of the schedule.
        machine: on which it runs.
        question: as it runs.
        time_us: the simulated time.
        limit_us: what no schedule beats; None where none is known.
        limit: which limit that is.
        spent: (part, share) of the critical path.
        busiest: (link, share of the time that it is busy).
        binds: the numbers of the machine that it depends on.
        better: (algorithm, us) of faster known ones.
        faster: what a search found; None where none was asked for.
    """

    name: str
    machine: _native.Machine
    question: Scheduled
    time_us: float
    limit_us: float | None
    limit: str | None
    spent: Sequence[tuple[str, float]]
    busiest: Sequence[tuple[str, float]]
    binds: Sequence[Effect]
    better: Sequence[tuple[str, float]]
    faster: Faster | None = None

    @property
    def size(self) -> int:
        """Bytes of the message."""
        return self.question.size_bytes or 0


def explain(name: str, question: Scheduled, machine: _native.Machine) -> Found:
    """What is to be said of a schedule.

    Args:
        name: what it is called.
        question: as it runs; of a library, as it planned it.
        machine: described, with a size.

    Raises:
        LinkwrightError: the machine cannot carry it out, or it is too large to be simulated many times.
    """
    if (count := schedules.expected_operations(question)) > MOST_OPERATIONS:
        raise UnsuitedError(
            f"{name}: has about {count:,} operations on {question.ranks:,} ranks, and an answer simulates it some "
            f"{SIMULATIONS} times, about {count * SIMULATIONS * SECONDS_PER_OPERATION / 60:.0f} minutes; at most "
            f"{MOST_OPERATIONS:,} operations are explained: ask for fewer ranks"
        )
    schedule = schedules.of(question)
    schedule.verify()
    whole = ask(machine, schedule, schedules.how(question, links=True))
    if not whole.time.ps:
        raise UnsuitedError(f"{name}: takes no time on {units.counted(question.ranks, 'rank')}; ask for more ranks")
    time_us, limit = schedules.time(question, machine).us, whole.limit
    return Found(
        name, machine, question, time_us, limit and limit.time_us, limit and limit.name,
        [(part, share) for part, share in sorted(whole.critical.items(), key=lambda one: -one[1]) if share >= LEAST],
        _busiest(whole), effects(machine, lambda on: schedules.time(question, on).us)[:SHOWN],
        _better(question, machine, time_us) if isinstance(question, Collective) else [],
    )  # fmt: skip


def _busiest(whole: Answer) -> list[tuple[str, float]]:
    links = whole.links
    busy = sorted(zip(links.name, links.busy_ps.tolist(), strict=True), key=lambda one: (-one[1], one[0]))
    return [(name, time / whole.time.ps) for name, time in busy[:3] if time]


def launch_ps(question: Scheduled) -> int:
    """What a library takes to start it."""
    return question.own.launch_ps if question.own else 0


def by_algorithm(machine: _native.Machine, asked: Collective, algorithm: str) -> Collective:
    """The same by another algorithm of the registry, on the machine's first path, or by a plan of its library.

    Nodes that only `asked` needed as a grid would change others, such as `two_shot`.
    """
    grid = grid_of(machine, asked.ranks)
    other = replace(asked, algorithm=algorithm, path=None, issue=None, own=None, grid=grid)
    return questions.planned(machine, None, other)


def _better(asked: Collective, machine: _native.Machine, time_us: float) -> list[tuple[str, float]]:
    """The known algorithms that are faster: registered ones on the machine's first path, and those of its library.

    Beside a plan of a library, all others are started as it is.
    """
    launch_us = launch_ps(asked) / PS_PER_US
    found = []
    for algorithm in _known(machine, asked.collective):
        try:
            other = by_algorithm(machine, asked, algorithm)
            stop_ps = None if other.own else round((time_us - launch_us) * PS_PER_US)  # a slower one is not shown
            takes = schedules.time(other, machine, stop_ps=stop_ps).us + (0 if other.own else launch_us)
        except LinkwrightError:
            continue
        if takes < time_us * (1 - LEAST):
            found.append((other.algorithm_key, takes))
    return sorted(found, key=lambda one: one[1])[:SHOWN]


def _known(machine: _native.Machine, collective: str) -> Iterator[str]:
    yield from library.algorithms(machine, collective)[:1]
    for entry in _native.algorithms():
        if entry["collective"] == collective:
            yield entry["key"].partition("/")[2]


def searched(found: Found, on: str, variant: Variant, search_s: float) -> Found:
    """The same with what a search on this machine finds; nothing for traffic."""
    asked = found.question
    if not isinstance(asked, Collective):
        return found
    looked = faster.search(on, variant, asked.collective, asked.ranks, found.size, search_s, launch_ps(asked))
    return replace(found, faster=looked)
