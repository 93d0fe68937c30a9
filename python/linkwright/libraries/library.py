"""The communication library of a described machine: the schedule, path and issue policy that it would choose.

    [library] of the machine file         which library, which versions, the path for each of its modes
      + collective, ranks, size  ->  Plan  the schedule as the library cuts it, the path of its mode, its issue policy

A plan is an algorithm that belongs to the machine, such as `nccl-2.27`; the first version listed is the default for a
collective there. `nccl-2.27/tree/ll` forces algorithm and protocol. A library is one module with
`NAME`, `VERSIONS`, `MODES` and the functions `summary`, `collectives`, `required_modes`, `alternatives` and `planned`,
and one line in `LIBRARIES`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwright import _native
from linkwright.ask.answer import limits_of
from linkwright.ask.question import Collective, Continued, Own, Question
from linkwright.base.errors import FileError, WaivedError, check_known, unknown
from linkwright.base.units import counted
from linkwright.libraries import nccl, rccl
from linkwright.libraries.nccl.lines import Line
from linkwright.libraries.nccl.plans import Planned

if TYPE_CHECKING:
    from linkwright.base.native_types import LibraryRow

LIBRARIES = {"nccl": nccl, "rccl": rccl}
ALTERNATIVES = "all"  # after a slash: the choice of the library, and everything that it did not choose


@dataclass(frozen=True)
class Plan:
    """One collective as a library carries it out: with schedule, path and issue policy, and what the library chose."""

    question: Collective
    planned: Planned

    @property
    def words(self) -> str:
        """The choice, such as `8 rings, flags` or `Tree LL, 16 channels`."""
        return self.planned.words or f"{counted(self.planned.rings, 'ring')}, {self.question.path}"


def algorithms(machine: _native.Machine, collective: str | None = None) -> list[str]:
    """Return the library's algorithms for a collective, or for any, the default first; none without a library."""
    stated = machine.library()
    if stated is None:
        return []
    found = _checked(machine, stated)
    return [
        f"{stated['name']}-{version}"
        for version in stated["versions"]
        if collective is None or collective in found.collectives(version)
    ]


def entries() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return (library, version, summary, collectives) for all that libraries can plan."""
    return [
        (name, version, found.summary(version), found.collectives(version))
        for name, found in LIBRARIES.items()
        for version in found.VERSIONS
    ]


@functools.cache
def is_plan(algorithm: str | None) -> bool:
    """Whether an algorithm is a library's plan, which includes path and issue policy."""
    stem = (algorithm or "").partition("/")[0]
    return any(stem == f"{name}-{version}" for name, version, *_ in entries())


def alternatives(machine: _native.Machine, collective: str, algorithm: str) -> list[str]:
    """Return the choice of a version and all its alternatives, by names such as `nccl-2.27/tree/ll`."""
    name, _, version = algorithm.partition("-")
    forced = LIBRARIES[name].alternatives(machine, version, collective)
    return [algorithm, *("/".join((algorithm, *one)) for one in forced)]


def default(machine: _native.Machine, collective: str) -> str | None:
    """Return the default algorithm of a collective; None without a library."""
    return next(iter(algorithms(machine, collective)), None)


def of_training(machine: _native.Machine) -> str | None:
    """Return the default plan for gradients; None without a library."""
    stated = machine.library()
    return f"{stated['name']}-{stated['training']}" if stated and default(machine, "allreduce") else None


def plan(machine: _native.Machine, asked: Collective) -> Plan:
    """Plan a collective whose algorithm belongs to the library.

    `nccl-2.27` leaves the choice to the library; `nccl-2.27/tree` and `nccl-2.27//ll` force it in part,
    `nccl-2.27/tree/ll` wholly.
    """
    stem, *forced = asked.algorithm.split("/")
    known = algorithms(machine, asked.collective)
    if not _serves(machine, asked.collective, stem) or len(forced) > 2:
        raise unknown(f"plan of {asked.collective}", asked.algorithm, known, where=machine.name)
    stated = machine.library()
    name, _, version = stem.partition("-")
    if asked.ranks < 2 and version not in nccl.EARLY:
        raise WaivedError(f"{asked.algorithm}: takes no time on 1 rank; ask for more ranks")
    made = LIBRARIES[name].planned(machine, version, (*(part or None for part in forced), None, None)[:2], asked)
    if made.mode not in stated["modes"]:
        raise WaivedError(f"{asked.algorithm}: {machine.name} has no path for mode `{made.mode}` of {stated['name']}")
    path = stated["modes"][made.mode]
    continued = _continued(machine, replace(asked, path=path), made.line) if made.line else None
    launch_ps = stated["launch_ps"] + made.drain_ps
    own = Own(made.schedule, None, launch_ps, made.channels, made.words, continued, made.across, made.sends)
    return Plan(replace(asked, path=path, issue=made.issue, own=own), made)


def _continued(machine: _native.Machine, asked: Collective, line: Line) -> Continued:
    """Return the line, which no time may be below what every schedule of the whole collective needs."""
    limits = (limit.time.ps for limit in limits_of(machine, asked))
    return Continued(line.shorter, line.times, max(line.least_ps, *limits), line.longer)


def published(machine: _native.Machine, asked: Question) -> tuple[float, float] | None:
    """Return between which factors of the time of a library's own choice eight published systems in ten are.

    None of what a user forces, and of other algorithms. `asked` has the endpoint of each rank; without a placement they
    are the first ones.
    """
    if not asked.chosen or "/" in asked.algorithm or not asked.size_bytes:
        return None
    from linkwright.libraries import tolerance  # a plain schedule is asked for without its table

    seen = nccl.hardware(machine, asked.placement or tuple(range(asked.ranks)))
    return tolerance.spread(seen.nodes, asked.size_bytes)


def nearest(machine: _native.Machine, collective: str, version: str) -> str | None:
    """Return the plan of a version such as `2.19.3`, or of the nearest version that is known; None without a library.

    `library.nearest(machine, "allreduce", "2.16.2")` is `nccl-2.18`.
    """
    name = (machine.library() or {"name": ""})["name"]
    known = LIBRARIES[name].VERSIONS if name in LIBRARIES else ()
    wanted = _places(version)
    plans = [f"{name}-{one}" for one in known if _serves(machine, collective, f"{name}-{one}")]
    # Of two that are as near, the newer one: VERSIONS has those first.
    return min(plans, key=lambda one: [abs(a - b) for a, b in zip(_places(one), wanted, strict=True)], default=None)


def _places(version: str) -> tuple[int, ...]:
    """Return the two numbers that constants follow: (2, 19) of `2.19.3`, or of a plan."""
    return tuple(map(int, [*version.rpartition("-")[2].split("."), "0"][:2]))


def _serves(machine: _native.Machine, collective: str, stem: str) -> bool:
    """Whether the library can plan a collective in this version, which the file names or already has all modes for."""
    if stem in algorithms(machine, collective):
        return True
    stated, (name, _, version) = machine.library(), stem.partition("-")
    if not stated or name != stated["name"] or version not in (found := LIBRARIES[name]).VERSIONS:
        return False
    return collective in found.collectives(version) and set(found.required_modes(version)) <= stated["modes"].keys()


def _checked(machine: _native.Machine, stated: LibraryRow):
    """Return the module of the library, after checking its versions and that each mode has a path."""
    where = f"{machine.name}: library"
    check_known("library", stated["name"], LIBRARIES, where=where)
    found = LIBRARIES[stated["name"]]
    for version in stated["versions"]:
        check_known(f"version of {stated['name']}", version, found.VERSIONS, where=where)
    for mode in stated["modes"]:
        check_known(f"mode of {stated['name']}", mode, found.MODES, where=where)
    for mode in dict.fromkeys(mode for version in stated["versions"] for mode in found.required_modes(version)):
        if mode not in stated["modes"]:
            raise FileError(f"{where}: no path for mode `{mode}` of {stated['name']}; add `{mode}` to `modes`")
    return found
