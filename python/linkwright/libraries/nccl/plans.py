"""A whole collective as NCCL does it, in the version of a machine: what `linkwright.libraries.library` asks for.

early versions (1.3.4, 2.3.5)   rings of links, `early.py`
since 2.18                      the library's own model chooses, `choice.py`, and `shapes.py` makes the schedule
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright import _native
from linkwright.ask.question import Collective
from linkwright.base.errors import FileError
from linkwright.libraries.nccl import constants, early, shapes
from linkwright.libraries.nccl.choice import Choice, chooser
from linkwright.libraries.nccl.hardware import Hardware, hardware
from linkwright.libraries.nccl.lines import Line, line
from linkwright.libraries.nccl.search import VERSIONS as EARLY

VERSIONS = (*EARLY, *reversed(constants.versions()))
REDUCED = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")
SENT = ("alltoall", "gather", "scatter")  # grouped sends and receives
COLLECTIVES = (*REDUCED, *SENT)
REQUIRED = (constants.SIMPLE, constants.LL)
OPTIONAL = (constants.LL128, "nvls", "collnet")
MODES = (*early.MODES, *REQUIRED, *OPTIONAL)


@dataclass(frozen=True)
class Planned:
    """A schedule, and what the library chose for it."""

    schedule: _native.Schedule
    mode: str
    issue: str
    rings: int  # of the schedule
    channels: int | None = None  # that each message stands for
    choice: Choice | None = None
    line: Line | None = None  # in place of a schedule that is too long
    across: int | None = None  # bytes per second that a message carries from node to node, if more than links limit it
    sends: float | None = None  # messages of the library that each between nodes stands for; None: one for each channel
    drain_ps: int = 0  # from the last message to the last byte in its place

    @property
    def words(self) -> str | None:
        """What a model of the library chose, in words."""
        if self.choice is None:
            return None
        return f"{self.choice.words}; {self.line.words}" if self.line else self.choice.words


def collectives(version: str) -> tuple[str, ...]:
    """The collectives that a version plans."""
    return REDUCED if version in EARLY else COLLECTIVES


def summary(version: str) -> str:
    """What is planned, in words."""
    if version in EARLY:
        return f"the rings, chunks and mode of NCCL {version}"
    known = constants.constants(version).version
    return f"what NCCL {version} chooses, by the constants of {known}"


def required_modes(version: str) -> tuple[str, ...]:
    """The modes that a machine must have a path for."""
    return early.MODES if version in EARLY else REQUIRED


def planned(
    machine: _native.Machine, version: str, forced: tuple[str | None, str | None], question: Collective
) -> Planned:
    """The plan of a collective; `forced` are an algorithm and a protocol that are not left to the library."""
    if version in EARLY:
        return _early(machine, version, question)
    places = question.placement or tuple(range(question.ranks))
    seen = hardware(machine, places)
    choice = chooser(version, seen).choose(question.collective, int(question.size_bytes or 0), *forced)
    return carried_out(choice, seen, question)


def alternatives(machine: _native.Machine, version: str, collective: str) -> list[tuple[str, str]]:
    """(algorithm, protocol) of all that a version could choose on a whole machine."""
    if version in EARLY or collective in SENT:
        return []
    seen = hardware(machine, tuple(range(machine.ranks)))
    return list(chooser(version, seen).table(collective))


def carried_out(choice: Choice, seen: Hardware, question: Collective) -> Planned:
    """The schedule of a choice."""
    made = shapes.shape(choice, seen, question)
    replaced = line(choice, seen, made, question.elements, question.element_bytes)
    schedule = replaced.own if replaced else made.of(question.elements, question.element_bytes)
    return Planned(
        schedule,
        mode(choice),
        shapes.issue(choice, question.collective),
        len(made.rings or (0,)),
        shapes.bundle(choice, made),
        choice,
        replaced,
        shapes.across(choice, made),
        shapes.sends(choice, seen, made, question),
        shapes.drain_ps(choice, seen, question),
    )


def mode(choice: Choice) -> str:
    """The word for how a choice moves data."""
    if choice.algorithm in ("nvls", "nvls_tree"):
        return "nvls"
    return "collnet" if choice.algorithm.startswith("collnet") else choice.protocol


def _early(machine: _native.Machine, version: str, question: Collective) -> Planned:
    stated = machine.library()
    assert stated is not None
    if stated["links"] is None:
        raise FileError(f"{machine.name}: library: rings of NCCL {version} follow links; add `links`, a network")
    return Planned(*early.planned(machine, stated["links"], version, question))
