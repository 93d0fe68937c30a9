"""A schedule on a described machine: what its time is spent on, what binds it, and which known algorithm is faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import Answer, ask
from linkwright.ask.experiment import Experiment, continued
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import PS_PER_US
from linkwright.libraries import library
from linkwright.machines import Variant

from . import faster
from .faster import Faster
from .sensitivity import Effect, effects

SHOWN = 5
LEAST = 0.01  # share of the time, to be shown


@dataclass(frozen=True)
class Found:
    """What is said of a schedule.

    Attributes:
        name: of the schedule.
        machine: on which it runs.
        experiment: as it runs.
        words: what a library chose, or "".
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
    experiment: Experiment
    words: str
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
        return self.experiment.size_bytes or 0


def explain(name: str, experiment: Experiment, machine: _native.Machine) -> Found:
    """What is to be said of a schedule.

    Args:
        name: what it is called.
        experiment: as it runs; of a library, as it planned it.
        machine: described, with a size.

    Raises:
        LinkwrightError: the machine cannot carry it out.
    """
    schedule = schedules.of(experiment)
    schedule.verify()
    experiment = replace(experiment, size_bytes=experiment.size_bytes or schedule.size_bytes)
    whole = _simulated(schedule, experiment, machine, links=True)
    time_us, limit = time(schedule, experiment, machine), whole.limit
    return Found(
        name, machine, experiment, (experiment.own and experiment.own.words) or "", time_us,
        limit and limit.time_us, limit and limit.name,
        [(part, share) for part, share in sorted(whole.critical.items(), key=lambda one: -one[1]) if share >= LEAST],
        _busiest(whole), effects(machine, lambda on: time(schedule, experiment, on))[:SHOWN],
        _better(replace(experiment, collective=schedule.collective), machine, time_us),
    )  # fmt: skip


def time(schedule: _native.Schedule, experiment: Experiment, machine: _native.Machine) -> float:
    """How long it takes, in us; of a schedule that stands for a longer one, what the longer one takes."""
    longer = _simulated(schedule, experiment, machine).time.us
    line = experiment.own.continued if experiment.own else None
    if line is None:
        return longer
    return continued(_simulated(line.shorter, experiment, machine).time.us, longer, line.times)


def _simulated(schedule: _native.Schedule, experiment: Experiment, machine: _native.Machine, **more: object) -> Answer:
    return ask(machine, schedule, schedules.how(experiment, **more))


def _busiest(whole: Answer) -> list[tuple[str, float]]:
    links = whole.links
    busy = sorted(zip(links.name, links.busy_ps.tolist(), strict=True), key=lambda one: (-one[1], one[0]))
    return [(name, time / whole.time.ps) for name, time in busy[:3] if time]


def launch_ps(experiment: Experiment) -> int:
    """What a library takes to start it."""
    return experiment.own.launch_ps if experiment.own else 0


def _better(asked: Experiment, machine: _native.Machine, time_us: float) -> list[tuple[str, float]]:
    """The known algorithms that are faster: registered ones on the machine's first path, and those of its library.

    Beside a plan of a library, all others are started as it is.
    """
    if asked.collective is None:
        return []
    launch = launch_ps(asked)
    found = []
    for algorithm in _known(machine, asked.collective):
        other = replace(asked, algorithm=algorithm, path=None, issue=None, own=None)
        try:
            planned = library.planned(machine, None, other)
            takes = time(schedules.of(planned), planned, machine) + (0 if planned.own else launch / PS_PER_US)
        except LinkwrightError:
            continue
        if takes < time_us * (1 - LEAST):
            found.append((f"{asked.collective}/{algorithm}", takes))
    return sorted(found, key=lambda one: one[1])[:SHOWN]


def _known(machine: _native.Machine, collective: str) -> Iterator[str]:
    yield from library.algorithms(machine, collective)[:1]
    for entry in _native.algorithms():
        if entry["collective"] == collective:
            yield entry["key"].partition("/")[2]


def searched(found: Found, on: str, variant: Variant, search_s: float) -> Found:
    """The same with what a search on this machine finds; nothing for a pattern."""
    asked = found.experiment
    collective = schedules.of(asked).collective
    if collective is None:
        return found
    looked = faster.search(on, variant, collective, asked.ranks, found.size, search_s, launch_ps(asked))
    return replace(found, faster=looked)
