"""The communication library of a described machine: the schedule, path and issue policy that it would choose.

    [library] of the machine file         which library, which versions, what its words mean on this machine
      + collective, ranks, size  ->  Plan  the schedule as the library cuts it, the path of its mode, its issue policy

A plan is an algorithm of the machine's own, such as `nccl-1.3.4`: the first version is what a collective takes there
unless another algorithm is named. A library is one module with `NAME`, `VERSIONS`, `COLLECTIVES`, `MODES` and a
function `planned`, and one line in `LIBRARIES`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwright import nccl
from linkwright.errors import FileError, WaivedError, unknown
from linkwright.experiment import Own

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.experiment import Experiment

LIBRARIES = {"nccl": nccl}


@dataclass(frozen=True)
class Plan:
    """One collective as a library carries it out."""

    algorithm: str
    schedule: _native.Schedule
    path: str
    issue: str
    rings: int
    launch_ps: int  # to start it on every rank
    channels: int | None = None  # equal ones that each message stands for

    @property
    def options(self) -> dict[str, str | int | None]:
        """How it runs, by the options of the native `simulate`."""
        return {"path": self.path, "issue": self.issue, "launch_ps": self.launch_ps, "channels": self.channels}

    @property
    def words(self) -> str:
        """What was chosen, such as `8 rings, flags`."""
        return f"{self.rings} ring{'s' if self.rings > 1 else ''}, {self.path}"


def algorithms(machine: _native.Machine, collective: str | None = None) -> list[str]:
    """The library's algorithms for a collective, or for any; the default first, none without a library."""
    stated = machine.library()
    if stated is None:
        return []
    found = _checked(machine, stated)
    served = collective is None or collective in found.COLLECTIVES
    return [f"{stated['name']}-{version}" for version in stated["versions"]] if served else []


def entries() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """(library, version, summary, collectives) of all that libraries can plan."""
    return [
        (name, version, f"the rings, chunks and mode of {found.NAME} {version}", found.COLLECTIVES)
        for name, found in LIBRARIES.items()
        for version in found.VERSIONS
    ]


@functools.cache
def is_plan(algorithm: str | None) -> bool:
    """Whether an algorithm is a library's plan, of which path and issue policy are a part."""
    return any(algorithm == f"{name}-{version}" for name, version, *_ in entries())


def default(machine: _native.Machine, collective: str) -> str | None:
    """The algorithm that a collective takes unless another one is named; None where there is no library."""
    return next(iter(algorithms(machine, collective)), None)


def of_training(machine: _native.Machine) -> str | None:
    """The plan that carries gradients unless another algorithm is named; None where there is no library."""
    stated = machine.library()
    return f"{stated['name']}-{stated['training']}" if stated and default(machine, "allreduce") else None


def plan(machine: _native.Machine, experiment: Experiment) -> Plan:
    """How the library carries out a collective, whose algorithm is one of those of the library."""
    known = algorithms(machine, experiment.collective)
    if experiment.algorithm not in known:
        raise unknown(f"plan of {experiment.collective}", experiment.algorithm, known, where=machine.name)
    stated = machine.library()
    name, _, version = experiment.algorithm.partition("-")
    schedule, mode, issue, rings = LIBRARIES[name].planned(machine, stated["links"], version, experiment)
    return Plan(experiment.algorithm, schedule, stated["modes"][mode], issue, rings, stated["launch_ps"])


def planned(machine: _native.Machine, sample: Sequence[int] | None, asked: Experiment) -> Experiment:
    """`asked` with the schedule, path and issue policy of the library, if its algorithm is one of the library's.

    With a `sample` of a large machine, rank r is at endpoint `sample[r]`.
    """
    if not asked.collective or asked.algorithm not in algorithms(machine, asked.collective):
        return asked
    if asked.path or asked.issue:
        error = WaivedError(f"{asked.algorithm}: chooses path and issue policy itself; leave --path and --issue out")
        return replace(asked, own=Own(error=error))
    at = tuple(sample[: asked.ranks]) if sample else asked.placement
    made = plan(machine, replace(asked, placement=at))
    return replace(asked, path=made.path, issue=made.issue, own=Own(made.schedule, None, made.launch_ps, made.channels))


def _checked(machine: _native.Machine, stated: _native._Library):
    """The module of the library, which knows all its versions and has a path for each of its modes."""
    where = f"{machine.name}: library"
    if stated["name"] not in LIBRARIES:
        raise unknown("library", stated["name"], LIBRARIES, where=where)
    found = LIBRARIES[stated["name"]]
    for version in stated["versions"]:
        if version not in found.VERSIONS:
            raise unknown(f"version of {stated['name']}", version, found.VERSIONS, where=where)
    for mode in stated["modes"]:
        if mode not in found.MODES:
            raise unknown(f"mode of {stated['name']}", mode, found.MODES, where=where)
    for mode in found.MODES:
        if mode not in stated["modes"]:
            raise FileError(f"{where}: no path for mode `{mode}` of {stated['name']}; add `{mode}` to `modes`")
    return found
