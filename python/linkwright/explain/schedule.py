"""A schedule on a described machine: what its time is spent on, what binds it, and which known algorithm is faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwright import _native
from linkwright.errors import LinkwrightError

from .sensitivity import Effect, effects

SHOWN = 5
LEAST = 0.01  # share of the time, to be shown


@dataclass(frozen=True)
class Found:
    """What is said of a schedule.

    Attributes:
        name: of the schedule.
        machine: its name.
        ranks: how many.
        size: bytes of the message.
        time_us: the simulated time.
        limit_us: what no schedule beats; None where none is known.
        limit: which limit that is.
        spent: (part, share) of the critical path.
        busiest: (link, share of the time that it is busy).
        binds: the numbers of the machine that it depends on.
        better: (algorithm, us) of faster known ones.
    """

    name: str
    machine: str
    ranks: int
    size: int
    time_us: float
    limit_us: float | None
    limit: str | None
    spent: Sequence[tuple[str, float]]
    busiest: Sequence[tuple[str, float]]
    binds: Sequence[Effect]
    better: Sequence[tuple[str, float]]


def explain(name: str, schedule: _native.Schedule, machine: _native.Machine, size: int, path: str | None) -> Found:
    """What is to be said of a schedule.

    Args:
        name: what it is called.
        schedule: verified.
        machine: described, with a size.
        size: bytes of the message, of the schedule.
        path: the path of the machine that messages take; None: its first.

    Raises:
        LinkwrightError: the machine cannot carry it out.
    """
    options = {"path": path} if path else {}

    def time(on: _native.Machine) -> float:
        return float(_native.simulate(_native.lower(schedule, on, path), on, options)["makespan_ps"]) / 1e6

    whole = _native.simulate(_native.lower(schedule, machine, path), machine, {**options, "links": True})
    limit = whole["limit_ps"]
    return Found(
        name, machine.name, schedule.ranks, size, whole["makespan_ps"] / 1e6, None if limit is None else limit / 1e6,
        whole["limit_name"],
        [(part, share) for part, share in sorted(whole["critical"].items(), key=lambda one: -one[1]) if share >= LEAST],
        _busiest(whole), effects(machine, time)[:SHOWN], _better(schedule, machine, size, whole["makespan_ps"] / 1e6),
    )  # fmt: skip


def _busiest(whole: _native._Simulation) -> list[tuple[str, float]]:
    links = whole["links"]
    busy = sorted(zip(links["name"], links["busy_ps"].tolist(), strict=True), key=lambda one: (-one[1], one[0]))
    return [(name, time / whole["makespan_ps"]) for name, time in busy[:3] if time]


def _better(schedule: _native.Schedule, machine: _native.Machine, size: int, time_us: float) -> list[tuple[str, float]]:
    """The registered algorithms that are faster, each on the machine's first path."""
    found, elements = [], size // schedule.element_bytes
    for entry in _native.algorithms():
        if entry["collective"] != schedule.collective:
            continue
        try:
            other = _native.Schedule.build(
                entry["key"], schedule.ranks, elements, element_bytes=schedule.element_bytes, root=schedule.root
            )
            time = _native.simulate(_native.lower(other, machine), machine, {})["makespan_ps"] / 1e6
        except LinkwrightError:
            continue
        if time < time_us * (1 - LEAST):
            found.append((entry["key"], time))
    return sorted(found, key=lambda one: one[1])[:SHOWN]
