"""Which schedules carry an allreduce: a registered algorithm, the best of all, or the rings that NCCL would build.

ring, swing_bandwidth, ...   one algorithm on the path asked for
best                         the fastest of all that work on it
hierarchical                 not here: one node and one column of devices tell the whole (hierarchical.py)
nccl-1.3.4, nccl-2.3.5       rings, slices and mode of that version, from the machine's links; they choose the path
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwright import _native, nccl, schedules
from linkwright.errors import ScheduleError, ShapeError, UsageError, unknown
from linkwright.predict.training.workload import BYTES_PER_NUMBER
from linkwright.suite.expand import algorithms_of, collective_experiment

VERSIONS = {f"nccl-{version}": version for version in nccl.VERSIONS}
LINKS = "dma"  # the network whose one-link pairs NCCL treats as neighbours
LOW_LATENCY, NORMAL = "low_latency", "flags"


@dataclass(frozen=True)
class Recipe:
    """One way to do an allreduce, ready to be simulated."""

    name: str
    schedule: _native.Schedule
    path: str | None
    issue: str | None = None


def recipes(machine: _native.Machine, ranks: int, size: int, algorithm: str, path: str | None) -> list[Recipe]:
    """Ways of an allreduce of `size` bytes; more than one for `best` only."""
    whole = -(-size // BYTES_PER_NUMBER) * BYTES_PER_NUMBER
    if algorithm in VERSIONS:
        return [_nccl(machine, ranks, whole, algorithm, path)]
    if algorithm.startswith("nccl"):
        raise unknown("version of NCCL", algorithm, VERSIONS)
    found = list(_registered(machine, ranks, whole, algorithm, path))
    if not found:
        raise UsageError(f"{machine.name}: no allreduce algorithm works on {ranks} devices; choose another --algorithm")
    return found


def _registered(machine: _native.Machine, ranks: int, size: int, algorithm: str, path: str | None) -> Iterator[Recipe]:
    names = algorithms_of("allreduce", ("all",) if algorithm == "best" else (algorithm,))
    for name in names:
        experiment = collective_experiment("app", "allreduce", name, ranks, size, "f32", "sum")
        try:
            schedule = schedules.of(experiment)
        except (ScheduleError, ShapeError):
            if algorithm != "best":
                raise
            continue
        if schedule.memories <= machine.memories:
            yield Recipe(f"allreduce/{name}", schedules.lowered(schedule, machine, path), path)


def _nccl(machine: _native.Machine, ranks: int, size: int, algorithm: str, path: str | None) -> Recipe:
    version = VERSIONS[algorithm]
    if path is not None:
        raise UsageError(f"--algorithm {algorithm} chooses its path itself; leave --path {path} out")
    missing = {LOW_LATENCY, NORMAL} - set(machine.paths)
    if LINKS not in machine.networks or missing:
        raise UsageError(
            f"machine {machine.name}: {algorithm} needs a network `{LINKS}` and paths `{NORMAL}` and `{LOW_LATENCY}`; "
            "describe them, or use --algorithm ring"
        )
    rings = nccl.rings(version, [row[:ranks] for row in nccl.nvlinks(machine)[:ranks]])
    few = nccl.low_latency(size, ranks, len(rings)) if version == "2.3.5" else None
    rings = rings[:few] if few else rings
    plan = nccl.plan(version, "allreduce", size, ranks, len(rings))
    schedule = _native.Schedule.build("allreduce/ring", ranks, size // BYTES_PER_NUMBER, rings=rings)
    mode = LOW_LATENCY if few else NORMAL
    lowered = schedules.lowered(schedule.pipeline(plan.slices), machine, mode)
    number = f"{len(rings)} ring{'s' if len(rings) > 1 else ''}"
    return Recipe(f"{algorithm} ({number}, {mode})", lowered, mode, plan.issue)
