"""What RCCL would choose on AMD's GPUs: ring or tree, and the protocol.

    seen = nccl.hardware(machine, tuple(range(machine.ranks)))
    choice = rccl.chooser("2.22", seen).choose("allreduce", 1 << 20)

Its model has the shape of NCCL's; the constants are its own (`constants.toml`). Schedules are made by `nccl.shapes`.
"""

from __future__ import annotations

import functools

from linkwright import _native
from linkwright.ask.question import Collective
from linkwright.base.errors import check_known
from linkwright.libraries.nccl.choice import TUNERS, Chooser
from linkwright.libraries.nccl.hardware import Hardware, hardware
from linkwright.libraries.nccl.plans import COLLECTIVES, OPTIONAL, REQUIRED, SENT, Planned, carried_out
from linkwright.libraries.rccl import constants
from linkwright.libraries.rccl.rates import SERVED, Tuner

NAME = "RCCL"
VERSIONS = constants.versions()
MODES = (*REQUIRED, *OPTIONAL)

__all__ = [
    "MODES", "NAME", "VERSIONS", "alternatives", "chooser", "collectives", "planned", "required_modes", "summary",
]  # fmt: skip


def collectives(version: str) -> tuple[str, ...]:
    """The collectives that a version plans."""
    return COLLECTIVES


def summary(version: str) -> str:
    """What is planned, in words."""
    return f"what RCCL {version} chooses, by the constants of {constants.documented()}"


def required_modes(version: str) -> tuple[str, ...]:
    """The modes that a machine must have a path for."""
    return REQUIRED


@functools.lru_cache(TUNERS)
def chooser(version: str, seen: Hardware) -> Chooser:
    """The library of this version on this hardware."""
    check_known("version of RCCL", version, VERSIONS)
    tuner = Tuner.of(version, seen)
    return Chooser(tuner, SERVED, constants.common().threads)


def alternatives(machine: _native.Machine, version: str, collective: str) -> list[tuple[str, str]]:
    """(algorithm, protocol) of all that a version could choose on a whole machine."""
    if collective in SENT:
        return []
    return list(chooser(version, hardware(machine, tuple(range(machine.ranks)))).table(collective))


def planned(
    machine: _native.Machine, version: str, forced: tuple[str | None, str | None], question: Collective
) -> Planned:
    """The plan of a collective; `forced` are an algorithm and a protocol that are not left to the library."""
    seen = hardware(machine, question.placement or tuple(range(question.ranks)))
    choice = chooser(version, seen).choose(question.collective, int(question.size_bytes or 0), *forced)
    return carried_out(choice, seen, question)
